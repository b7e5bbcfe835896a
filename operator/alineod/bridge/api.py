"""The bridge's HTTP routes: each makes one call of a request, and a status of its answer."""

from collections.abc import Callable
from typing import assert_never

from alineod.bridge.epochs import Epochs
from alineod.bridge.journal import Journal
from alineod.bridge.memory import Answer
from alineod.bridge.prepare import DRAINING, Preparation, Standing
from alineod.bridge.turns import Turns
from alineod.errors import Refused
from alineod.httpd import Request, Response, Route, Stream, build_json, build_problem
from alineod.wire.base import decode
from alineod.wire.turns import AbortRequest, BridgeState, TurnRequest

_MAX_PROMPT = 16 * 1024 * 1024
_RETRY = [("retry-after", "1")]


class Api:
    """The routes over one pod's turns."""

    def __init__(
        self,
        turns: Turns,
        journal: Journal,
        preparation: Preparation,
        epochs: Epochs,
        build_state: Callable[[Standing], BridgeState],
    ) -> None:
        self._turns = turns
        self._journal = journal
        self._preparation = preparation
        self._epochs = epochs
        self._build_state = build_state

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/livez", self.livez, open=True),
            Route("GET", "/healthz", self.healthz, open=True),
            Route("GET", "/v1/state", self.state),
            Route("POST", "/v1/turns", self.post_turn, max_body=_MAX_PROMPT),
            Route("POST", "/v1/turns/{turn_id}/abort", self.abort),
            Route("GET", "/v1/journal", self.journal),
        ]

    async def livez(self, _: Request) -> Response:
        """That the loop turns, whatever else is so: who does not hear it starts the bridge again."""
        return build_json({"ok": True})

    async def healthz(self, _: Request) -> Response:
        """Whether turns are taken here; one that runs does not change that, so that readiness does not flap."""
        standing = DRAINING if self._turns.draining else self._preparation.standing
        return build_json({"ok": True}) if standing.ready else build_problem(503, standing.reason, standing.message)

    async def state(self, _: Request) -> Response:
        return build_json(self._build_state(self._preparation.standing))

    async def post_turn(self, request: Request) -> Response:
        wanted = decode(TurnRequest, request.body)
        self._epochs.admit(wanted.epoch)
        answer = self._turns.decide(wanted)
        match answer:
            case Answer.KNOWN:
                return build_json(self._turns.memory.turns[wanted.turn].accepted)
            case Answer.START:
                return build_json(self._turns.start(wanted), 202)
            case Answer.JOURNAL_RESET:
                self._turns.lose(wanted)
                return self._refuse(answer, wanted)
            case _:
                return self._refuse(answer, wanted)

    async def abort(self, request: Request) -> Response:
        wanted = decode(AbortRequest, request.body)
        self._epochs.admit(wanted.epoch)
        return build_json(await self._turns.abort(request.params["turn_id"], wanted.reason))

    async def journal(self, request: Request) -> Stream:
        after = _parse_number(request.query.get("after", "0"))
        self._journal.check_cursor(after)
        follow = request.query.get("follow", "") in ("1", "true")
        return Stream(self._journal.follow(after) if follow else self._journal.read(after))

    def _refuse(self, answer: Answer, wanted: TurnRequest) -> Response:
        latest = self._turns.memory.latest
        newest = f"turn {latest.turn}" if latest else "no turn"
        match answer:
            case Answer.OTHER_PROMPT:
                return build_problem(409, answer, f"turn {wanted.turn} was given here with another prompt")
            case Answer.OTHER_TURN:
                return build_problem(409, answer, f"number {wanted.turn} belongs to a turn with another id")
            case Answer.JOURNAL_RESET:
                detail = f"the journal of turn {wanted.turn} is gone: it may have run, and does not run again"
                return build_problem(409, answer, detail)
            case Answer.STALE:
                return build_problem(409, answer, f"turn {wanted.turn} is older than {newest}, the newest here")
            case Answer.BUSY:
                return build_problem(409, answer, f"{newest} is running; one turn runs at a time")
            case Answer.GATE_SHUT:
                return build_problem(423, answer, f"the archive of {newest} is being cut; try again", _RETRY)
            case Answer.DRAINING:
                return build_problem(503, answer, "the sandbox is shutting down", _RETRY)
            case Answer.NOT_READY:
                standing = self._preparation.standing
                return build_problem(503, standing.reason, standing.message, _RETRY)
            case Answer.KNOWN | Answer.START:
                raise AssertionError(answer)
            case _:
                assert_never(answer)


def _parse_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Refused("InvalidCursor", f"after={text!r} is no number; give the seq of the last record you have, or 0")
    return int(text)
