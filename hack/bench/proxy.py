"""`python3 -m hack.bench.proxy --to PORT [--late SECONDS]`: a TCP proxy on 127.0.0.1 whose answers come late.

Stands for the distance to a bucket and for nothing else of it: not for bandwidth, TLS, throttling or a long tail.
Prints the port it listens on. Knows nothing of what it passes on.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

CHUNK = 1 << 16
HOST = "127.0.0.1"


async def start_proxy(to: int, late: float, port: int = 0) -> asyncio.Server:
    """Pass what comes to `port` (0: any free one) on to the port `to` at once, and what comes back `late` seconds after
    it came."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            back, onward = await asyncio.open_connection(HOST, to)
            await asyncio.gather(_pass_on(reader, onward, 0.0), _pass_on(back, writer, late), return_exceptions=True)
            onward.close()
        writer.close()

    return await asyncio.start_server(serve, HOST, port)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late: float) -> None:
    """Until the end, which is passed on too. Every piece is late by itself: what follows does not wait for it."""
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop()

    async def write() -> None:
        data = b"-"
        while data:
            due, data = await pieces.get()
            if (left := due - clock.time()) > 0:
                await asyncio.sleep(left)
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    writing = asyncio.ensure_future(write())
    data = b"-"
    while data:
        try:
            data = await reader.read(CHUNK)
        except OSError:
            data = b""
        pieces.put_nowait((clock.time() + late, data))
    await writing


async def _run(to: int, late: float) -> None:
    server = await start_proxy(to, late)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.bench.proxy", description=__doc__)
    parser.add_argument("--to", type=int, required=True, help="the port of the server")
    parser.add_argument("--late", type=float, default=0.02, help="seconds by which each answer is late")
    options = parser.parse_args(arguments)
    asyncio.run(_run(options.to, options.late))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
