"""A leader in a process of its own that loses its lease: it ends at once, with the code and the word for it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from alineod.kube.exits import LEASE_LOST
from alineod.kube.objects import LEASES
from tests.support.fakeapi import FakeApi, serve

ROOT = Path(__file__).parents[3]
FIGURES = ("4", "3", "0.1")


@asynccontextmanager
async def leading(api: FakeApi, address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that leads in epoch 1."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "tests/support/contender.py"),
        *(address, "lease", "first", *FIGURES),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator")},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"1\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def read_end(process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(60):
        _, words = await process.communicate()
    assert process.returncode == LEASE_LOST == 75
    return words.decode()


async def test_a_leader_that_was_stopped_and_replaced_ends_when_it_goes_on() -> None:
    api = FakeApi()
    async with serve(api) as address, leading(api, address) as process:
        os.kill(process.pid, signal.SIGSTOP)
        lease = api.read(LEASES, "lease")
        lease["spec"] |= {"holderIdentity": "second", "leaseTransitions": 2}
        api.put(LEASES, lease)
        os.kill(process.pid, signal.SIGCONT)
        assert "second holds the lease in epoch 2" in await read_end(process)
        assert api.read(LEASES, "lease")["spec"]["holderIdentity"] == "second"


async def test_a_leader_that_slept_past_its_deadline_ends_before_it_asks_anyone() -> None:
    api = FakeApi()
    async with serve(api) as address, leading(api, address) as process:
        os.kill(process.pid, signal.SIGSTOP)
        await asyncio.sleep(3.5)

        async def hang(request: web.Request) -> web.StreamResponse | None:
            await asyncio.Event().wait()
            return None

        api.obstacles.append(hang)
        os.kill(process.pid, signal.SIGCONT)
        assert "could not be renewed for 3 s" in await read_end(process)


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "refuses"])
async def test_a_leader_without_a_server_ends_by_itself(hangs: bool) -> None:
    api = FakeApi()
    async with serve(api) as address, leading(api, address) as process:

        async def fail(request: web.Request) -> web.StreamResponse | None:
            if hangs:
                await asyncio.Event().wait()
            return web.Response(status=500)

        api.obstacles.append(fail)
        assert "could not be renewed for 3 s" in await read_end(process)
