"""`python3 -m hack.bench.recovery_bridges`: the bridges of many sandboxes, each on a loopback address of its own.

They speak the bridge's HTTP API as far as a leader uses it. Every turn they are given goes on for ever, as one does
that waits for a model; a journal says it began, and that a tool did.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass, field

from aiohttp import web

from alineod.wire.base import decode, encode
from alineod.wire.turns import BRIDGE_PORT, BridgeState, JournalRecord, TurnAccepted, TurnRequest, TurnState

HEARTBEAT = 10.0  # s between empty lines of a journal that is followed
TOOL = {"name": "bash"}


@dataclass
class Bridge:
    """What one sandbox knows."""

    turn: TurnAccepted | None = None
    journal: list[JournalRecord] = field(default_factory=list)

    def begin(self, request: TurnRequest) -> TurnAccepted:
        """Take the turn; the same one again begins nothing, and there is no other."""
        if self.turn is None:
            self.turn = TurnAccepted(turn=request.turn, turn_id=request.turn_id, state=TurnState.RUNNING)
            self.journal += [_build(self.turn, "turn.started", 1, {}), _build(self.turn, "tool.started", 2, TOOL)]
        return self.turn

    def describe(self, address: str) -> BridgeState:
        """How it stands; every pod here is its agent's first."""
        return BridgeState(
            agent=address, incarnation=1, boot="1", ready=True, turn=self.turn, journal_seq=len(self.journal)
        )


def _build(turn: TurnAccepted, event: str, seq: int, data: dict[str, str]) -> JournalRecord:
    return JournalRecord(time=time.time(), turn=turn.turn, turn_id=turn.turn_id, event=event, data=data, seq=seq)


class Bridges:
    """All of them, by the address they were asked at."""

    def __init__(self) -> None:
        self._known: dict[str, Bridge] = {}

    def build_app(self) -> web.Application:
        """One application for every address."""
        app = web.Application()
        app.router.add_get("/v1/state", self._tell_state)
        app.router.add_post("/v1/turns", self._take_turn)
        app.router.add_get("/v1/journal", self._tell_journal)
        return app

    def _find(self, request: web.Request) -> tuple[str, Bridge]:
        assert request.transport is not None
        address = str(request.transport.get_extra_info("sockname")[0])
        return address, self._known.setdefault(address, Bridge())

    async def _tell_state(self, request: web.Request) -> web.Response:
        address, bridge = self._find(request)
        return web.Response(body=encode(bridge.describe(address)), content_type="application/json")

    async def _take_turn(self, request: web.Request) -> web.Response:
        turn = self._find(request)[1].begin(decode(TurnRequest, await request.read()))
        return web.Response(body=encode(turn), content_type="application/json")

    async def _tell_journal(self, request: web.Request) -> web.StreamResponse:
        after = int(request.query.get("after", "0"))
        answer = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await answer.prepare(request)
        for record in self._find(request)[1].journal[after:]:
            await answer.write(encode(record) + b"\n")
        with contextlib.suppress(ConnectionResetError):  # whoever listened is gone
            while True:
                await answer.write(b"\n")
                await asyncio.sleep(HEARTBEAT)
        return answer


if __name__ == "__main__":
    web.run_app(Bridges().build_app(), host="0.0.0.0", port=BRIDGE_PORT, print=None, handle_signals=True)
