"""A real API server with its etcd, and nothing else: no node, no controller, no root needed. Seconds to start.

The binary is the development cluster's (`kube`, in the cache or named by ALINEOD_KUBE). All state is in one directory.
"""

import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

PATIENCE = 90.0
TOKEN = "admin-of-a-test"


@dataclass(frozen=True)
class Answer:
    """What kubectl said."""

    ok: bool
    text: str


@dataclass(frozen=True)
class ApiServer:
    """A running API server. `kubeconfig` makes its bearer the cluster's admin."""

    kube: str
    url: str
    kubeconfig: Path

    def kubectl(self, *words: str, stdin: str | None = None) -> Answer:
        """Run kubectl; what it said to both of its outputs."""
        done = subprocess.run(
            [self.kube, "kubectl", f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Answer(done.returncode == 0, done.stdout + done.stderr)

    def apply(self, *objects: Mapping[str, Any]) -> Answer:
        """Server-side apply."""
        stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stdin)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """One call; the text is the object, or the server's sentence, which is what kubectl prints."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        call = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(call, context=_trusting(), timeout=60) as answer:
                return Answer(True, answer.read().decode())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(False, json.loads(refusal.read())["message"])


def find_kube(env: Mapping[str, str] = os.environ) -> str | None:
    """The binary, or None where nobody has built it."""
    cache = env.get("ALINEOD_CACHE") or f"{env.get('XDG_CACHE_HOME') or str(Path.home() / '.cache')}/alineod"
    return shutil.which(env.get("ALINEOD_KUBE") or f"{cache}/bin/kube")


@contextlib.contextmanager
def run_apiserver(kube: str, directory: Path) -> Iterator[ApiServer]:
    """Start both processes and end them afterwards."""
    etcd, peer, secure = _free_ports(3)
    _write_keys(directory)
    store = f"http://127.0.0.1:{etcd}"
    own = f"http://127.0.0.1:{peer}"
    with (
        _process(directory, "etcd", [
            kube, "etcd", f"--data-dir={directory / 'etcd'}", "--unsafe-no-fsync", "--log-level=error",
            f"--listen-client-urls={store}", f"--advertise-client-urls={store}", f"--listen-peer-urls={own}",
            f"--initial-advertise-peer-urls={own}", f"--initial-cluster=default={own}",
        ]),
        _process(directory, "apiserver", [
            kube, "kube-apiserver", f"--etcd-servers={store}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", f"--secure-port={secure}", f"--cert-dir={directory / 'certs'}",
            f"--token-auth-file={directory / 'tokens'}", "--authorization-mode=RBAC",
            f"--service-account-key-file={directory / 'sa.pub'}",
            f"--service-account-signing-key-file={directory / 'sa.key'}",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
        ]) as process,
    ):  # fmt: skip
        url = f"https://127.0.0.1:{secure}"
        _wait(url, process, directory)
        yield ApiServer(kube, url, _write_kubeconfig(directory, url))


def _trusting() -> ssl.SSLContext:
    """The server made its certificate itself."""
    return ssl._create_unverified_context()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _write_keys(directory: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (directory / "sa.key").write_bytes(private)
    (directory / "sa.pub").write_bytes(public)
    (directory / "tokens").write_text(f"{TOKEN},admin,admin,system:masters\n")


def _write_kubeconfig(directory: Path, url: str) -> Path:
    path = directory / "kubeconfig"
    authority = directory / "certs" / "apiserver.crt"  # the server makes it, and its own authority with it
    path.write_text(json.dumps({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "admin", "user": {"token": TOKEN}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }))  # fmt: skip
    return path


@contextlib.contextmanager
def _process(directory: Path, name: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(request, context=_trusting()):
            return
        time.sleep(0.2)
    raise AssertionError(f"the API server did not start: {(directory / 'apiserver.log').read_text()[-2000:]}")
