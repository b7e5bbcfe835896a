"""Where the cluster is and who we are, from the files a pod or a person has."""

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml

from alineod.errors import Refused
from alineod.kube.access import ClusterAccess, read_access, read_kubeconfig


def write_account(directory: Path) -> Path:
    (directory / "token").write_text("first\n")
    (directory / "ca.crt").write_text("the authority")
    return directory


def write_kubeconfig(path: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    config = {
        "current-context": "here",
        "contexts": [
            {"name": "there", "context": {"cluster": "none", "user": "none"}},
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://host:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")]
)
def test_in_a_pod_the_service_account_speaks_for_us(tmp_path: Path, host: str, server: str) -> None:
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
    access = read_access(env, write_account(tmp_path))
    assert (access.server, access.authority) == (server, "the authority")
    assert access.build_headers()["Authorization"] == "Bearer first"


def test_a_token_is_read_again_at_every_use(tmp_path: Path) -> None:
    access = read_access({"KUBERNETES_SERVICE_HOST": "h"}, write_account(tmp_path))
    assert access.read_token() == "first"
    (tmp_path / "token").write_text("second")
    assert access.read_token() == "second"
    (tmp_path / "token").unlink()
    with pytest.raises(Refused, match="token cannot be read"):
        access.read_token()


def test_a_kubeconfig_that_is_named_goes_first(tmp_path: Path) -> None:
    config = write_kubeconfig(tmp_path / "config", {"token": "t"})
    env = {"KUBECONFIG": f"{config}:/other", "KUBERNETES_SERVICE_HOST": "h"}
    assert read_access(env, write_account(tmp_path)).server == "https://host:6443"


def test_the_home_of_a_person_goes_last(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube" / "config", {"token": "t"})
    assert read_access({"HOME": str(tmp_path)}, tmp_path / "none").read_token() == "t"


def test_without_any_it_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        read_access({"HOME": str(tmp_path)}, tmp_path / "none")
    assert caught.value.reason == "NoCredentials"
    assert "set KUBECONFIG to a file" in caught.value.message


def test_certificates_are_taken_from_the_file_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_text("certificate")
    user = {"client-certificate": "client.crt", "client-key-data": base64.b64encode(b"key").decode()}
    cluster = {"certificate-authority-data": base64.b64encode(b"authority").decode()}
    access = read_kubeconfig(write_kubeconfig(tmp_path / "config", user, cluster))
    assert (access.authority, access.certificate, access.private_key) == ("authority", "certificate", "key")
    assert "Authorization" not in access.build_headers()
    assert "key" not in repr(access).replace("private_key", "")


def test_a_token_file_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("from a file")
    access = read_kubeconfig(write_kubeconfig(tmp_path / "config", {"tokenFile": "t"}))
    assert access.read_token() == "from a file"


@pytest.mark.parametrize(
    "text", ["", "[]", "current-context: x", "{current-context: x, contexts: []}", ": :", "a: b: c"]
)
def test_a_kubeconfig_without_a_context_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(Refused, match="has no current context"):
        read_kubeconfig(tmp_path / "config")
    with pytest.raises(Refused, match="cannot be read"):
        read_kubeconfig(tmp_path / "absent")


def test_plain_http_has_no_tls() -> None:
    assert ClusterAccess("http://127.0.0.1:8001").build_ssl_context() is None


def test_tls_checks_the_server() -> None:
    context = ClusterAccess("https://host").build_ssl_context()
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
