"""The application that is replaced while it serves."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from alineod.app.serve import Switch

Sent = list[MutableMapping[str, Any]]


def build_app(name: str, begun: asyncio.Event | None = None, start: bool = False) -> ASGIApp:
    """Answers with its name: at once, or after it was `begun` and never."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun is not None:
            if start:
                await send({"type": "http.response.start", "by": name})
            begun.set()
            await asyncio.Event().wait()
        await send({"type": "http.response.start", "by": name})

    return app


def ask(switch: Switch) -> tuple["asyncio.Task[None]", Sent]:
    sent: Sent = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {}

    return asyncio.ensure_future(switch({"type": "http"}, receive, send)), sent


async def test_questions_go_to_the_application_of_now() -> None:
    switch = Switch(build_app("first"))
    task, sent = ask(switch)
    await task
    switch.turn_to(build_app("second"))
    task, later = ask(switch)
    await task
    assert [sent[0]["by"], later[0]["by"]] == ["first", "second"]


async def test_a_question_that_is_held_is_answered_by_the_next_application_when_the_first_is_cut() -> None:
    begun = asyncio.Event()
    switch = Switch(build_app("first", begun))
    task, sent = ask(switch)
    await begun.wait()
    switch.turn_to(build_app("second"))
    await asyncio.sleep(0)
    assert (sent, task.done()) == ([], False)
    switch.cut()
    async with asyncio.timeout(20):
        await task
    assert [message["by"] for message in sent] == ["second"]
    task, later = ask(switch)
    await task
    assert [message["by"] for message in later] == ["second"]


async def test_half_an_answer_is_not_gone_on_with_by_another_application() -> None:
    begun = asyncio.Event()
    switch = Switch(build_app("first", begun, start=True))
    task, sent = ask(switch)
    await begun.wait()
    switch.turn_to(build_app("second"))
    switch.cut()
    async with asyncio.timeout(20):
        await task
    assert [message["by"] for message in sent] == ["first"]


async def test_who_asked_gets_what_the_application_raised_and_a_cancelled_question_ends_it() -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("a bug")

    task, _ = ask(Switch(fail))
    with pytest.raises(ValueError, match="a bug"):
        await task
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hold(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task, _ = ask(Switch(hold))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
