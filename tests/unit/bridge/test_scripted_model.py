"""The scripted model, asked as a client of its protocols asks."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "hack/model/scripted_model.py"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    port = tmp_path_factory.mktemp("model") / "port"
    argv = [sys.executable, str(PROGRAM), "--port", "0", "--port-file", str(port), "--api-key", "sk-right"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("scripted model")
    while not port.exists():
        time.sleep(0.01)
    headers = {"authorization": "Bearer sk-right", "x-api-key": "sk-right"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port.read_text()}", headers=headers, trust_env=False) as client:
        yield client
    process.kill()
    process.wait()
    process.stdout.close()


def chat(model: httpx.Client, *messages: tuple[str, str], stream: bool = False, **headers: str) -> httpx.Response:
    body = {"model": "m", "stream": stream, "messages": [{"role": role, "content": text} for role, text in messages]}
    return model.post("/v1/chat/completions", json=body, headers=headers)


def script(*steps: dict[str, Any]) -> str:
    return f"<<{json.dumps(steps)}>>"


def said(answer: httpx.Response) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def test_without_a_script_it_says_what_it_sees(model: httpx.Client) -> None:
    answer = chat(model, ("system", "be good"), ("user", "one"), ("assistant", "hm"), ("user", "two"))
    assert said(answer) == "SEEN 2: one | two"


def test_a_script_is_played_step_by_step(model: httpx.Client) -> None:
    prompt = "go " + script({"tool": "bash", "args": {"command": "ls"}}, {"text": "done"})
    first = chat(model, ("user", prompt)).json()["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    assert json.loads(first["message"]["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}
    assert said(chat(model, ("user", prompt), ("assistant", ""), ("tool", "a b"))) == "done"
    assert said(chat(model, ("user", prompt), ("assistant", ""), ("tool", "a b"), ("user", "hurry"))) == "done"
    later = chat(model, ("user", prompt), ("assistant", "done"), ("user", "and?"))
    assert said(later) == "SEEN 2: go | and?"


def test_a_counted_step_is_stepped_over_in_the_end(model: httpx.Client) -> None:
    prompt = script({"http": 429, "times": 2, "message": "slow down", "retry_after": 3}, {"text": "fine"})
    answers = [chat(model, ("user", prompt)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].json()["error"]["message"] == "slow down"
    assert answers[0].headers["retry-after"] == "3"
    assert said(answers[2]) == "fine"


def test_streams(model: httpx.Client) -> None:
    prompt = script({"text": "hello world", "chunk": 4, "usage": {"input": 7, "output": 3}})
    lines = [line[6:] for line in chat(model, ("user", prompt), stream=True).text.split("\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk["choices"]]
    assert [delta for delta in deltas if delta] == ["hell", "o wo", "rld"]
    assert chunks[-1]["usage"]["total_tokens"] == 10


def test_a_drop_breaks_the_stream(model: httpx.Client) -> None:
    with pytest.raises(httpx.TransportError):
        chat(model, ("user", script({"text": "hello world", "chunk": 2, "disconnect": 2})), stream=True)


def test_messages(model: httpx.Client) -> None:
    prompt = script({"text": "look", "tool": "bash", "args": {"command": "ls"}}, {"text": "ok", "finish": "length"})
    result = {"type": "tool_result", "tool_use_id": "x", "content": "a b"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    first = model.post("/v1/messages", json={"model": "m", "messages": messages}).json()
    assert [block["type"] for block in first["content"]] == ["text", "tool_use"]
    assert first["stop_reason"] == "tool_use"
    messages += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": [result]}]
    second = model.post("/v1/messages", json={"model": "m", "messages": messages, "stream": True}).text
    assert '"text": "ok"' in second
    assert '"stop_reason": "max_tokens"' in second
    assert second.rstrip().endswith('data: {"type": "message_stop"}')


def test_another_key_is_refused_as_the_providers_do(model: httpx.Client) -> None:
    answer = chat(model, ("user", "hi"), authorization="Bearer sk-wrong", **{"x-api-key": ""})
    assert answer.status_code == 401
    assert "Incorrect API key provided" in answer.json()["error"]["message"]
    answer = model.post("/v1/messages", json={"messages": []}, headers={"x-api-key": "sk-wrong"})
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


def test_it_logs_what_it_saw_and_says_what_it_is(model: httpx.Client) -> None:
    model.post("/_reset")
    chat(model, ("user", "note me " + script({"text": "ok"})))
    (entry,) = model.get("/_log").json()
    assert (entry["id"], entry["users"], entry["outcome"]) == (1, ["note me"], "sent")
    assert "scripted model" in model.get("/healthz").json()["what"]
    assert "scripted model" in model.get("/v1/models").text


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"messages":[1]}', b'{"messages":[{"role":"user","content":"<<[{]>>"}]}']
)
def test_what_cannot_be_read_is_refused(model: httpx.Client, body: bytes) -> None:
    answer = model.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert "cannot read" in answer.json()["error"]["message"]


def test_an_answer_waits_for_its_gate_and_what_comes_before_is_said(model: httpx.Client) -> None:
    step = {"text": "before and after", "chunk": 1, "until": "door", "after": 7}
    assert model.get("/_gates/door").status_code == 404
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": script(step)}]}
    with model.stream("POST", "/v1/chat/completions", json=body) as answer:
        frames = (line for line in answer.iter_lines() if line.startswith("data: "))
        early = "".join(next(frames) for _ in range(7))
        assert '"e"' in early
        time.sleep(0.3)
        assert model.get("/_log").json()[-1]["outcome"] == "running"
        assert httpx.post(model.base_url.join("/_gates/door"), trust_env=False).status_code == 200
        assert "[DONE]" in list(frames)[-1]
    assert model.get("/_gates/door").status_code == 200
