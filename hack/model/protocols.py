"""The providers' protocols: a conversation in, an answer out, in the form each of them gives it."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from script import Said, Step, text_of, user_texts


class Dropped(Exception):
    """The script asks for the connection to go away here."""


def parse_openai(body: dict[str, Any]) -> list[Said]:
    return [Said(message.get("role", ""), text_of(message.get("content"))) for message in body.get("messages", [])]


def parse_anthropic(body: dict[str, Any]) -> list[Said]:
    said: list[Said] = []
    for message in body.get("messages", []):
        role, content = message.get("role", ""), message.get("content")
        if role == "assistant" or isinstance(content, str):
            said.append(Said(role, text_of(content)))
            continue
        for block in content or []:  # one message may carry tool results and several texts of the user
            if block.get("type") == "tool_result":
                said.append(Said("tool", text_of(block.get("content"))))
            elif block.get("type") == "text":
                said.append(Said("user", block.get("text", "")))
    return said


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """What is to be said, before a protocol gives it its form."""

    id: str
    model: str
    step: Step
    text: str
    calls: tuple[Call, ...]
    input_tokens: int
    output_tokens: int

    @property
    def finish(self) -> str:
        return str(self.step.get("finish") or ("tool_calls" if self.calls else "stop"))


def build_reply(number: int, model: str, step: Step, said: list[Said]) -> Reply:
    users = user_texts(said)
    recall = not step or step.get("recall")
    text = f"SEEN {len(users)}: {' | '.join(users)}" if recall else step.get("text", "")
    wanted = step.get("tools") or ([step] if "tool" in step else [])
    calls = tuple(
        Call(f"call_{number}_{n}", one["tool"], one.get("raw_args") or json.dumps(one.get("args", {})))
        for n, one in enumerate(wanted)
    )
    usage = step.get("usage", {})
    read = sum(len(message.text) for message in said) // 4
    return Reply(
        f"scripted-{number}",
        model,
        step,
        text,
        calls,
        usage.get("input", read),
        usage.get("output", len(text) // 4 + 1),
    )


def play(step: Step, kind: str, text: str, sent: int = 0) -> Iterator[str]:
    """The text in pieces, with the waits and drops the step asks for between them."""
    size = max(1, int(step.get("chunk", 8)))
    for start in range(0, len(text), size):
        yield text[start : start + size]
        sent += 1
        if step.get("disconnect") == sent:
            raise Dropped
        if "stall" in step and step.get("after", 1) == sent and kind == "text":
            time.sleep(step["stall"])
        time.sleep(step.get("delay", 0))


class OpenAI:
    """The chat completions protocol."""

    path = "/chat/completions"
    parse = staticmethod(parse_openai)

    @staticmethod
    def refuse(
        status: int, message: str, kind: str = "invalid_request_error", code: str | None = None
    ) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": None, "code": code or str(status)}}

    @classmethod
    def wrong_key(cls, given: str) -> dict[str, Any]:
        return cls.refuse(401, f"Incorrect API key provided: {given[:4]}***.", code="invalid_api_key")

    @staticmethod
    def _usage(reply: Reply) -> dict[str, int]:
        total = reply.input_tokens + reply.output_tokens
        return {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens, "total_tokens": total}

    @staticmethod
    def _call(call: Call, arguments: str) -> dict[str, Any]:
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    @classmethod
    def whole(cls, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = [cls._call(call, call.arguments) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        base = {"id": reply.id, "object": "chat.completion", "created": int(time.time()), "model": reply.model}
        return {**base, "choices": [choice], "usage": cls._usage(reply)}

    @classmethod
    def stream(cls, reply: Reply) -> Iterator[bytes]:
        base = {"id": reply.id, "object": "chat.completion.chunk", "created": int(time.time()), "model": reply.model}

        def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
            return cls._frame({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield frame({"role": "assistant", "content": ""})
        for name, kind, text in (
            ("reasoning_content", "reasoning", reply.step.get("reasoning", "")),
            ("content", "text", reply.text),
        ):
            for piece in play(reply.step, kind, text):
                yield frame({name: piece})
        if "stream_error" in reply.step:
            yield cls._frame(cls.refuse(500, reply.step["stream_error"], "server_error"))
            return
        for index, call in enumerate(reply.calls):
            yield frame({"tool_calls": [{"index": index, **cls._call(call, "")}]})
            yield frame({"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]})
        if not reply.step.get("no_finish"):
            yield frame({}, reply.finish)
            yield cls._frame({**base, "choices": [], "usage": cls._usage(reply)})
            yield b"data: [DONE]\n\n"

    @staticmethod
    def _frame(body: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps(body).encode() + b"\n\n"


class Anthropic:
    """The messages protocol."""

    path = "/v1/messages"
    parse = staticmethod(parse_anthropic)
    stops: ClassVar[dict[str, str]] = {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}

    @staticmethod
    def refuse(status: int, message: str, kind: str = "api_error", code: str | None = None) -> dict[str, Any]:
        return {"type": "error", "error": {"type": code or kind, "message": message}}

    @classmethod
    def wrong_key(cls, given: str) -> dict[str, Any]:
        return cls.refuse(401, "invalid x-api-key", "authentication_error")

    @classmethod
    def _message(cls, reply: Reply, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        base = {"id": reply.id, "type": "message", "role": "assistant", "model": reply.model, "usage": usage}
        return {**base, "content": content, "stop_reason": stop, "stop_sequence": None}

    @classmethod
    def whole(cls, reply: Reply) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
        for call in reply.calls:
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)})
        return cls._message(reply, content, cls.stops.get(reply.finish, reply.finish))

    @classmethod
    def stream(cls, reply: Reply) -> Iterator[bytes]:
        yield cls._frame("message_start", message=cls._message(reply, [], None))
        index = 0
        for kind, text in (("thinking", reply.step.get("reasoning", "")), ("text", reply.text)):
            if not text:
                continue
            yield cls._frame("content_block_start", index=index, content_block={"type": kind, kind: ""})
            for piece in play(reply.step, kind, text):
                yield cls._frame("content_block_delta", index=index, delta={"type": f"{kind}_delta", kind: piece})
            yield cls._frame("content_block_stop", index=index)
            index += 1
        if "stream_error" in reply.step:
            yield cls._frame("error", error={"type": "api_error", "message": reply.step["stream_error"]})
            return
        for at, call in enumerate(reply.calls, index):
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            yield cls._frame("content_block_start", index=at, content_block=block)
            delta = {"type": "input_json_delta", "partial_json": call.arguments}
            yield cls._frame("content_block_delta", index=at, delta=delta)
            yield cls._frame("content_block_stop", index=at)
        if not reply.step.get("no_finish"):
            stop = cls.stops.get(reply.finish, reply.finish)
            end = {"stop_reason": stop, "stop_sequence": None}
            yield cls._frame("message_delta", delta=end, usage={"output_tokens": reply.output_tokens})
            yield cls._frame("message_stop")

    @staticmethod
    def _frame(kind: str, **body: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode()


Protocol = type[OpenAI] | type[Anthropic]


def protocol_for(path: str) -> Protocol | None:
    return next((kind for kind in (OpenAI, Anthropic) if path.split("?")[0].endswith(kind.path)), None)
