"""Asks the checkpointer to cut an archive, and does not let a dead one hold anything up."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from alineod.bridge.post import Answer, post
from alineod.errors import Unavailable
from alineod.wire.archives import CutRequest, CutResult
from alineod.wire.base import decode, encode

_PAUSE = 0.5  # s between attempts
_BUSY = 503  # it is there and cannot yet


@dataclass(frozen=True)
class Packer:
    """Where the checkpointer is and how long it may take; times are seconds."""

    url: str
    token: Callable[[], str]
    limit: float = 600.0
    retry: float = 30.0


async def cut(packer: Packer, request: CutRequest) -> CutResult:
    """Have it cut. A connection that is refused or breaks is tried again for `retry` seconds in a row.

    Raises:
        Unavailable: reason `CutFailed`; the message says why there is no archive.
    """
    try:
        async with asyncio.timeout(packer.limit):
            answer = await _ask(packer, encode(request))
    except TimeoutError:
        raise Unavailable("CutFailed", f"the checkpointer did not finish within {packer.limit:g} s") from None
    if answer.status != 200:
        raise Unavailable("CutFailed", f"the checkpointer answered {answer.status}: {_detail(answer.body)}")
    return decode(CutResult, answer.body)


async def _ask(packer: Packer, body: bytes) -> Answer:
    clock = asyncio.get_running_loop().time
    deadline = clock() + packer.retry
    while True:
        begun = clock()
        try:
            answer = await post(packer.url, "/v1/cut", packer.token(), body)
            if answer.status != _BUSY or clock() > deadline:
                return answer
        except OSError as error:
            if clock() - begun > packer.retry:  # it had been working: being cut off begins the count anew
                deadline = clock() + packer.retry
            if clock() > deadline:
                message = f"the checkpointer at {packer.url} does not answer: {error}"
                raise Unavailable("CutFailed", message) from error
        await asyncio.sleep(_PAUSE)


def _detail(body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body).get("detail"))
    except (msgspec.DecodeError, AttributeError):
        return body[:200].decode("utf-8", "replace")
