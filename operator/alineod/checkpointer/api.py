"""The checkpointer's routes: what `wire.archives` says of them, by the packer and the store."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from alineod.checkpointer.packer import Packer
from alineod.checkpointer.uploads import Uploader
from alineod.checkpoints.store import Store
from alineod.errors import Denied, NotFound
from alineod.httpd import Request, Response, Route, Stream, build_json, read_file, same_token
from alineod.wire.archives import CutRequest, CutResult, ForkRequest
from alineod.wire.base import decode

T = TypeVar("T")


class Api:
    """The handlers. Packing goes on in threads, so that /healthz answers meanwhile."""

    def __init__(self, packer: Packer, store: Store, uploader: Uploader) -> None:
        self._packer = packer
        self._store = store
        self._uploader = uploader

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/healthz", self.health, open=True),
            Route("POST", "/v1/cut", self.cut),
            Route("POST", "/v1/forks", self.fork),
            Route("GET", "/v1/forks/{fork_id}", self.read_fork, open=True),
        ]

    async def health(self, _: Request) -> Response:
        return build_json({})

    async def cut(self, request: Request) -> Response:
        """A checkpoint; the upload is not waited for."""
        wanted = decode(CutRequest, request.body)
        stored = await run_detached(lambda: self._packer.cut(wanted))
        self._uploader.wake()
        report = stored.report
        return build_json(CutResult(turn=report.turn, sha256=report.sha256, bytes=report.bytes))

    async def fork(self, request: Request) -> Response:
        """A copy of the files as they are."""
        wanted = decode(ForkRequest, request.body)
        stored = await run_detached(lambda: self._packer.fork(wanted))
        return build_json(stored.result)

    async def read_fork(self, request: Request) -> Stream:
        """A fork's bytes, for who holds its own token."""
        fork_id = request.params["fork_id"]
        stored, path = self._store.find_fork(fork_id), self._store.get_fork_path(fork_id)
        if stored is None or not path.exists():
            raise NotFound("ForkNotFound", f"there is no fork {fork_id} here; it may have been uploaded or pushed out")
        if not same_token(request.bearer, stored.read_token):
            raise Denied("WrongToken", f"fork {fork_id} is read with its own token")
        return Stream(read_file(path), "application/zstd", stored.result.bytes)


async def run_detached(act: Callable[[], T]) -> T:
    """Run it in a thread that the process does not wait for when it ends."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failure = None, None
        try:
            result = act()
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, daemon=True).start()
    return await future
