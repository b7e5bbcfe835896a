"""The person's cluster, through the person's kubectl: objects, a token, and a way to the operator's API.

Standard library only: the plugin starts at once and needs nothing but kubectl.
"""

import contextlib
import json
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alineod.errors import Refused, Unavailable

LISTENS = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
START_LIMIT = 20.0  # s for kubectl to open the way
API_PORT = 8080
NOBODY = (
    "your kubeconfig holds no token, and the operator cannot check certificates: "
    "pass --service-account NAME, one of your namespace that may do this"
)


@dataclass(frozen=True)
class Answer:
    """Of the operator's API; `body` is a problem where the status says so."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Cluster:
    """`flags` are kubectl's own: --context, --kubeconfig, --namespace."""

    flags: tuple[str, ...]
    kubectl: str = "kubectl"

    def read_json(self, *words: str) -> Any:
        """What a kubectl command prints as JSON."""
        return json.loads(self.run(*words, "--output=json"))

    def run(self, *words: str) -> str:
        """What a kubectl command prints.

        Raises:
            Refused: kubectl said no; the message is its own.
        """
        done = subprocess.run(self.build_command(words), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused("KubectlFailed", done.stderr.strip() or f"kubectl {words[0]} failed")
        return done.stdout

    def read_namespace(self) -> str:
        """The one that is meant: by flag, else by the context."""
        for flag in self.flags:
            if flag.startswith("--namespace="):
                return flag.partition("=")[2]
        config = self.read_json("config", "view", "--minify")
        return str(config["contexts"][0]["context"].get("namespace") or "default")

    def read_token(self, service_account: str) -> str:
        """A token that tells the operator who asks.

        Raises:
            Refused: the kubeconfig has none.
        """
        if service_account:
            return self.run("create", "token", service_account).strip()
        users = self.read_json("config", "view", "--minify", "--raw").get("users") or [{}]
        token = (users[0].get("user") or {}).get("token")
        if not token:
            raise Refused("NoToken", NOBODY)
        return str(token)

    @contextlib.contextmanager
    def forward(self, namespace: str, service: str) -> Iterator[str]:
        """A local URL that leads to the operator for as long as the block runs.

        Raises:
            Unavailable: kubectl could not open the way.
        """
        words = (
            f"--namespace={namespace}",
            "port-forward",
            "--address=127.0.0.1",
            f"service/{service}",
            f":{API_PORT}",
        )
        command = self.build_command(words)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield f"http://127.0.0.1:{_read_port(process, f'{namespace}/{service}')}"
            finally:
                process.kill()

    def build_command(self, words: Sequence[str]) -> list[str]:
        """A later --namespace wins over an earlier one, so ours stand after the person's."""
        return [self.kubectl, *self.flags, *words]


def _read_port(process: subprocess.Popen[str], where: str) -> int:
    late = threading.Timer(START_LIMIT, process.kill)
    late.start()
    try:
        found = LISTENS.search(process.stdout.readline() if process.stdout else "")
    finally:
        late.cancel()
    if found is None:
        process.kill()
        said = process.stderr.read().strip() if process.stderr else ""
        reason = said or f"kubectl port-forward did not start in {START_LIMIT:g} s"
        raise Unavailable("NoWay", f"there is no way to the operator at {where}: {reason}")
    return int(found[1])


def call_api(url: str, token: str, body: object = None) -> Answer:
    """One call: POST with a body, GET without.

    Raises:
        Refused: the URL is not of HTTP.
        Unavailable: nobody answers.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise Refused("InvalidUrl", f"{url} is not the URL of an API: begin it with https:// or http://")
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    # A forwarded port is on this machine, where no proxy leads.
    proxies = [urllib.request.ProxyHandler({})] if parts.hostname == "127.0.0.1" else []
    opener = urllib.request.build_opener(*proxies)
    try:
        with opener.open(urllib.request.Request(url, data, headers), timeout=300) as response:  # noqa: S310
            return Answer(response.status, _parse(response.read()))
    except urllib.error.HTTPError as error:
        return Answer(error.code, _parse(error.read()))
    except OSError as error:
        raise Unavailable("Unreachable", f"the operator does not answer at {parts.netloc}: {error}") from error


def _parse(raw: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(raw)
    except ValueError:
        return {"detail": raw.decode(errors="replace")}
    return parsed if isinstance(parsed, dict) else {"detail": str(parsed)}
