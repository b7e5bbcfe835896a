#!/usr/bin/env python3
"""A scripted model: it speaks the providers' protocols and thinks nothing. For tests, the demo, and trying things out.

    python3 scripted_model.py [--host 127.0.0.1] [--port 8080] [--api-key KEY | --api-key-file PATH] [--port-file PATH]

It serves OpenAI chat completions (POST /v1/chat/completions) and Anthropic messages (POST /v1/messages), streamed or
whole, GET /v1/models and GET /healthz. GET /_log lists the requests it saw, each with an id and the user's texts;
POST /_reset forgets them and every count. POST /_gates/NAME opens a gate, and GET /_gates/NAME is 404 until then.

What it answers is written in the conversation, so that it answers the same to an agent that was killed and came back
elsewhere. A user's message may hold a script between `<<` and `>>`: a JSON list of steps. The step played is the one at
the number of assistant messages since that message, so that a tool loop walks down the list. A step is an object:

    {"text": "..", "chunk": 8, "delay": 0.1}         say it, so many characters at a time, seconds between them
    {"reasoning": "..", "text": ".."}                think first, then say
    {"tool": "bash", "args": {..}, "text": ".."}     call a tool, after saying something or nothing
    {"tools": [{"tool": "..", "args": {..}}, ..]}    call several at once; "raw_args" sends arguments that are no JSON
    {"recall": true}                                 say which user texts are in the context
    {"http": 429, "message": "..", "retry_after": 2} refuse with that status
    {"disconnect": 3, "reset": true, "text": ".."}   drop the connection after three pieces, with an RST if asked
    {"no_finish": true, "text": ".."}                end the stream without saying that it ended
    {"stream_error": "..", "text": ".."}             an error object in the middle of the stream
    {"stall": 30, "after": 2, "text": ".."}          fall silent for seconds after two pieces
    {"hang": 30}                                     fall silent before the first byte
    {"until": "gate", "after": 3, "text": ".."}      fall silent after three frames (or none) until the gate is open
    {"finish": "length", "text": ".."}               end for another reason

Any step may hold "usage": {"input": 10, "output": 5} and "times": n. A step with "times" is played n times and then
stepped over, which is how "refuse twice, then answer" is written. Without a script, or past its end, the answer is
`SEEN n: first | second | ..`, the user's texts in the context: it shows what an agent remembers.
"""

import argparse
import contextlib
import hmac
import json
import socket
import struct
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from protocols import Dropped, OpenAI, Protocol, Reply, build_reply, protocol_for
from script import Memory, Said, Step, choose_step, user_texts

BANNER = "scripted model: answers by script, no real model behind it"
GATES = "/_gates/"
GATE_LIMIT = 900.0  # s
MODELS = {"object": "list", "data": [{"id": "scripted-1", "object": "model", "owned_by": "scripted model"}]}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.startswith(GATES):
            is_open = path in self.server.memory.opened
            self._json(200 if is_open else 404, {"open": is_open})
        elif path == "/_log":
            with self.server.memory.lock:
                log = [dict(entry) for entry in self.server.memory.log]
            self._json(200, log)
        elif path.endswith("/models"):
            self._json(200, MODELS)
        elif path in ("/", "/healthz"):
            self._json(200, {"ok": True, "what": BANNER})
        else:
            self._json(404, OpenAI.refuse(404, f"the scripted model has nothing at {path}"))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/_reset":
            with self.server.memory.lock:
                self.server.memory.log.clear()
                self.server.memory.played.clear()
            return self._json(200, {"ok": True})
        if self.path.startswith(GATES):
            self.server.memory.opened.add(self.path)
            return self._json(200, {"open": True})
        protocol = protocol_for(self.path)
        if protocol is None:
            return self._json(404, OpenAI.refuse(404, f"the scripted model has nothing at {self.path}"))
        try:
            body = json.loads(raw)
            said = protocol.parse(body)
            step = choose_step(said, self.server.memory) if self._key_is_right() else {}
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return self._json(400, protocol.refuse(400, f"the scripted model cannot read this request: {error!r}"))
        entry = self._note(body, said, step)
        try:
            entry["outcome"] = self._reply(
                protocol, build_reply(entry["id"], str(body.get("model", "")), step, said), body
            )
        except (ConnectionError, TimeoutError) as error:
            entry["outcome"] = f"the client went away: {type(error).__name__}"
            self.close_connection = True

    def _note(self, body: dict[str, Any], said: list[Said], step: Step) -> dict[str, Any]:
        with self.server.memory.lock:
            log = self.server.memory.log
            entry = {
                "id": len(log) + 1,
                "time": time.time(),
                "path": self.path,
                "model": body.get("model"),
                "users": [text[:4000] for text in user_texts(said)],
                "roles": [message.role for message in said],
                "tool_results": [message.text[:500] for message in said if message.role == "tool"],
                "step": step,
                "key": self._given_key()[:4],
                "outcome": "running",
            }
            log.append(entry)
            return entry

    def _reply(self, protocol: Protocol, reply: Reply, body: dict[str, Any]) -> str:
        step = reply.step
        if not self._key_is_right():
            self._json(401, protocol.wrong_key(self._given_key()))
            return "wrong key"
        time.sleep(step.get("hang", 0))
        if "http" in step:
            message = step.get("message", f"scripted refusal {step['http']}")
            headers = {"retry-after": str(step["retry_after"])} if "retry_after" in step else {}
            self._json(step["http"], protocol.refuse(step["http"], message, code=step.get("code")), headers)
            return f"refused {step['http']}"
        if not body.get("stream"):
            self._json(200, protocol.whole(reply))
            return "sent"
        return self._stream(protocol.stream(reply), step)

    def _stream(self, frames: Iterator[bytes], step: Step) -> str:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for sent, frame in enumerate(frames):
                if "until" in step and sent == step.get("after", 0):
                    self._wait_open(step["until"])
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
                self.wfile.flush()
        except Dropped:
            if step.get("reset"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return "dropped"
        self.wfile.write(b"0\r\n\r\n")
        return "sent"

    def _wait_open(self, gate: str) -> None:
        self.wfile.flush()
        end = time.monotonic() + GATE_LIMIT
        while f"{GATES}{gate}" not in self.server.memory.opened and time.monotonic() < end:
            time.sleep(0.1)

    def _given_key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    def _key_is_right(self) -> bool:
        wanted = self.server.api_key()
        return not wanted or hmac.compare_digest(self._given_key().encode(), wanted.encode())

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(raw)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Say nothing: /_log has it."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], api_key: str = "", api_key_file: Path | None = None) -> None:
        super().__init__(address, Handler)
        self.memory = Memory()
        self._key = api_key
        self._key_file = api_key_file

    def api_key(self) -> str:
        """The key to ask for; read anew each time, so that a rotated one counts at once."""
        return self._key_file.read_text().strip() if self._key_file else self._key

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what the tests want; anything else is worth a line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError | ValueError):
            print(f"scripted model: {error!r}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=BANNER)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="0: any free one")
    parser.add_argument("--port-file", type=Path, help="write the port there once it listens")
    parser.add_argument("--api-key", default="", help="refuse every other key")
    parser.add_argument("--api-key-file", type=Path, help="the same, from a file that may change")
    arguments = parser.parse_args()
    server = Server((arguments.host, arguments.port), arguments.api_key, arguments.api_key_file)
    if arguments.port_file:
        part = arguments.port_file.with_suffix(".part")
        part.write_text(str(server.server_port))
        part.rename(arguments.port_file)
    print(f"{BANNER}; http://{arguments.host}:{server.server_port}/v1", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
