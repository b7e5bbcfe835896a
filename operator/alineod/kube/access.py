"""How this process reaches the API server, and as whom: in a pod by its service account, elsewhere by kubeconfig.

Shared by everything that talks to the API. Tokens are read from their file at every use, since the kubelet replaces
them. It must not know what is asked of the server.
"""

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from alineod.errors import Refused

ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The API server's address and our credentials; PEM texts are empty where there are none."""

    server: str
    authority: str = ""
    certificate: str = ""
    private_key: str = field(default="", repr=False)
    token_file: Path | None = None
    token: str = field(default="", repr=False)

    def read_token(self) -> str:
        """The bearer token as it is now; empty when a certificate speaks for us.

        Raises:
            Refused: reason `NoCredentials`, when the token's file cannot be read.
        """
        if self.token_file is None:
            return self.token
        try:
            return self.token_file.read_text().strip()
        except OSError as error:
            raise Refused("NoCredentials", f"The token {self.token_file} cannot be read: {error.strerror}.") from error

    def build_headers(self) -> dict[str, str]:
        """What every request carries."""
        token = self.read_token()
        return {"User-Agent": "alineod", **({"Authorization": f"Bearer {token}"} if token else {})}

    def build_ssl_context(self) -> ssl.SSLContext | None:
        """TLS that trusts the cluster's authority and shows our certificate; None for plain HTTP."""
        if not self.server.startswith("https://"):
            return None
        context = ssl.create_default_context(cadata=self.authority or None)
        # Authorities of clusters are often made without the extensions that the strict mode asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.certificate:
            # The ssl module takes a certificate from a file only.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write(f"{self.certificate}\n{self.private_key}\n")
                pem.flush()
                context.load_cert_chain(pem.name)
        return context


def read_access(env: Mapping[str, str], account: Path = ACCOUNT_DIR) -> ClusterAccess:
    """Find the cluster: `KUBECONFIG` if it is set, the pod's service account if there is one, `~/.kube/config`.

    Raises:
        Refused: reason `NoCredentials`; the message says what was looked for and what to set.
    """
    if env.get("KUBECONFIG"):
        return read_kubeconfig(Path(env["KUBECONFIG"].split(os.pathsep)[0]))
    host = env.get("KUBERNETES_SERVICE_HOST", "")
    if host and (account / "token").exists():
        address = f"[{host}]" if ":" in host else host
        return ClusterAccess(
            server=f"https://{address}:{env.get('KUBERNETES_SERVICE_PORT', '443')}",
            authority=_read_file(account / "ca.crt"),
            token_file=account / "token",
        )
    home = Path(env.get("HOME", "/")) / ".kube" / "config"
    if home.exists():
        return read_kubeconfig(home)
    raise Refused(
        "NoCredentials",
        f"There is no cluster to talk to: no service account in {account}, no {home}; set KUBECONFIG to a file.",
    )


def read_kubeconfig(path: Path) -> ClusterAccess:
    """The cluster and user of the file's current context. Certificates and tokens only: no plugins are run.

    Raises:
        Refused: reason `NoCredentials`.
    """
    try:
        config = yaml.safe_load(_read_file(path))
        context = _find(config, "contexts", config["current-context"])["context"]
        cluster = _find(config, "clusters", context["cluster"])["cluster"]
        user = _find(config, "users", context["user"])["user"] or {}
        server = str(cluster["server"]).rstrip("/")
    except (KeyError, TypeError, StopIteration, yaml.YAMLError) as error:
        raise Refused(
            "NoCredentials", f"{path} has no current context with a cluster, a server and a user ({error!r})."
        ) from error
    token_file = user.get("tokenFile")
    return ClusterAccess(
        server=server,
        authority=_read_pem(path, cluster, "certificate-authority"),
        certificate=_read_pem(path, user, "client-certificate"),
        private_key=_read_pem(path, user, "client-key"),
        token_file=path.parent / token_file if token_file else None,
        token=user.get("token", ""),
    )


def _find(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(entry for entry in config[kind] if entry["name"] == name)
    return found


def _read_pem(config: Path, section: Mapping[str, Any], name: str) -> str:
    inline = section.get(f"{name}-data")
    if inline:
        return base64.b64decode(inline).decode()
    return _read_file(config.parent / section[name]) if section.get(name) else ""


def _read_file(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise Refused("NoCredentials", f"{path} cannot be read: {error.strerror}.") from error
