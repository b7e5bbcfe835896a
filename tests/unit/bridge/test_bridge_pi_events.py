"""Pi's records, folded: what each series of them means for the turn."""

from typing import Any

import pytest

from alineod.bridge.pi_events import Delta, Event, PiTurn, Reset, Said, compute_outcome, observe
from alineod.wire.turns import ErrorKind, TurnState

Record = dict[str, Any]
START: list[Record] = [{"type": "agent_start"}, {"type": "turn_start"}]
USAGE = {"input": 10, "cacheRead": 5, "cacheWrite": 1, "output": 3, "cost": {"total": 0.25}}


def message(text: str, stop: str = "stop", error: str = "") -> list[Record]:
    """What Pi says of one assistant message."""
    whole: Record = {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "stopReason": stop,
        "usage": USAGE,
    }
    if error:
        whole["errorMessage"] = error
    update = {"type": "text_delta", "delta": text}
    return [
        {"type": "message_start", "message": {"role": "assistant"}},
        {"type": "message_update", "assistantMessageEvent": update},
        {"type": "message_end", "message": whole},
    ]


def end(retry: bool = False) -> list[Record]:
    return [{"type": "agent_end", "messages": [], "willRetry": retry}]


def settled(aborted: bool = False) -> list[Record]:
    return [{"type": "agent_settled", "aborted": aborted}]


RETRY = [{"type": "auto_retry_start", "attempt": 1, "errorMessage": "429"}]


def fold(records: list[Record], priced: bool = False) -> tuple[PiTurn, list[Said]]:
    turn, heard = PiTurn(priced=priced), list[Said]()
    for record in records:
        turn, said = observe(turn, record)
        heard += said
    return turn, heard


@pytest.mark.parametrize(
    ("records", "state", "kind", "text"),
    [
        ([*message("hello"), *end(), *settled()], TurnState.CLEAN, None, "hello"),
        ([*message("first", "toolUse"), *message("last"), *end(), *settled()], TurnState.CLEAN, None, "last"),
        ([*message("first", "toolUse"), *message(""), *end(), *settled()], TurnState.CLEAN, None, ""),
        ([*message("cut", "length"), *end(), *settled()], TurnState.FAILED, ErrorKind.TRUNCATED, "cut"),
        ([*message("", "error", "400"), *end(), *settled()], TurnState.FAILED, ErrorKind.PROVIDER, ""),
        (
            [*message("before", "toolUse"), *message("", "error", "400"), *end(), *settled()],
            TurnState.FAILED,
            ErrorKind.PROVIDER,
            "before",
        ),
        (
            [*message("par", "error", "500"), *end(True), *RETRY, *START, *message("whole"), *end(), *settled()],
            TurnState.CLEAN,
            None,
            "whole",
        ),
        (
            [*message("par", "error", "5"), *end(True), *RETRY, *START, *message("", "error", "5"), *end(), *settled()],
            TurnState.FAILED,
            ErrorKind.PROVIDER,
            "",
        ),
        ([*message("one two", "aborted"), *end(), *settled(True)], TurnState.ABORTED, ErrorKind.ABORTED, "one two"),
        ([*message("ok", "toolUse"), *end(), *settled(True)], TurnState.ABORTED, ErrorKind.ABORTED, "ok"),
        ([*end(), *settled()], TurnState.FAILED, ErrorKind.HARNESS, ""),
        ([*message("odd", "deferred"), *end(), *settled()], TurnState.FAILED, ErrorKind.HARNESS, "odd"),
    ],
)
def test_outcomes(records: list[Record], state: TurnState, kind: ErrorKind | None, text: str) -> None:
    turn, _ = fold([*START, *records])
    assert turn.settled
    outcome = compute_outcome(turn)
    assert (outcome.state, outcome.error and outcome.error.kind, outcome.text) == (state, kind, text)


def test_the_providers_words_are_kept() -> None:
    turn, _ = fold([*START, *message("", "error", "429: pay first"), *end(), *settled()])
    error = compute_outcome(turn).error
    assert error is not None
    assert error.message == "429: pay first"


@pytest.mark.parametrize(
    "records",
    [
        [*settled()],
        [*end(), *settled()],
        [*START, *settled()],
        [*START, *end(True), *RETRY, *START, *settled()],
        [*START, *message("hm"), *end()],
    ],
)
def test_not_settled_before_a_start_and_its_end(records: list[Record]) -> None:
    turn, _ = fold(records)
    assert not turn.settled


def test_what_is_heard_of_a_turn() -> None:
    tool = {"toolCallId": "c1", "toolName": "bash"}
    result = {"content": [{"type": "text", "text": "hi\n"}], "details": {"big": "x"}}
    turn, heard = fold(
        [
            *START,
            *message("let me", "toolUse"),
            {"type": "tool_execution_start", **tool, "args": {"command": "echo hi"}},
            {"type": "tool_execution_update", **tool, "partialResult": {}},
            {"type": "tool_execution_end", **tool, "result": result, "isError": False, "durationMs": 7},
            {"type": "something_new", "x": 1},
            {"type": "extension_ui_request", "id": "d1", "method": "confirm", "title": "Sure?"},
            {"type": "extension_ui_request", "id": "n1", "method": "notify", "message": "psst"},
        ]
    )
    assert turn.tools == ("bash",)
    assert heard[0] == Delta("let me")
    assert [one.name for one in heard if isinstance(one, Event)] == [
        "message",
        "tool.started",
        "tool.ended",
        "permission",
    ]
    ended = heard[3]
    assert isinstance(ended, Event)
    assert ended.data == {"id": "c1", "name": "bash", "text": "hi\n", "isError": False, "durationMs": 7}


def test_text_that_a_retry_gives_up_is_taken_back_once() -> None:
    _, heard = fold([*START, *message("par", "error", "500"), *end(True), *RETRY, *START, *message("whole")])
    assert [type(one) for one in heard if not isinstance(one, Event)] == [Delta, Reset, Delta]
    torn = [*START, *message("par")[:2], *RETRY, *START, *message("whole")]
    _, heard = fold(torn)
    assert [type(one) for one in heard if not isinstance(one, Event)] == [Delta, Reset, Delta]


def test_usage_is_summed_and_money_only_where_there_is_a_price() -> None:
    records = [*START, *message("a", "toolUse"), *message("b"), *end(), *settled()]
    compaction = {"type": "compaction_end", "result": {"summary": "..", "usage": USAGE}}
    priced = compute_outcome(fold([*records, compaction], priced=True)[0]).usage
    assert (priced.input_tokens, priced.output_tokens, priced.usd) == (48, 9, "0.75")
    assert compute_outcome(fold(records)[0]).usage.usd is None
    (said,) = [one for one in fold([*records, compaction])[1] if isinstance(one, Event) and one.name == "compaction"]
    assert said.data["usage"]["inputTokens"] > 0  # it is in the journal, should the turn be cut
