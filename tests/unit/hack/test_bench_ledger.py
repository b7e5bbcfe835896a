"""The ledger's bench: its arithmetic, its verdicts, its clients, and the proxy that makes answers late."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec
import pytest

from alineod.domain.events import Entry
from alineod.errors import Unavailable
from hack.bench.ledger_load import Cell, Sample, build_beginning, build_clients, run_closed, run_paced
from hack.bench.ledger_report import (
    GOAL_CELL,
    Figures,
    build_table,
    compute_figures,
    compute_median,
    compute_minutes,
    decide_goals,
)
from hack.bench.proxy import HOST, Proxy

SAMPLES = [Sample(at=number / 10, took=number / 1000) for number in range(1, 101)]


def test_figures_are_of_what_was_acknowledged_in_the_time_that_is_measured() -> None:
    found = compute_figures(SAMPLES, batch=10, begin=5.0, end=10.0)
    assert (found.rate, found.p50) == (pytest.approx(100.0), pytest.approx(74.5))
    assert 98 < found.p99 < 99


def test_too_few_appends_are_no_figure() -> None:
    with pytest.raises(ValueError, match=r"1 appends were acknowledged in 0\.1 s: too few"):
        compute_figures(SAMPLES, batch=1, begin=5.0, end=5.1)


def test_each_minute_has_its_own_median() -> None:
    assert compute_minutes(SAMPLES, begin=0.1, minute=3.3, count=3) == pytest.approx([17.0, 50.0, 83.0])


def test_the_median_of_rounds_is_each_figure_s_own() -> None:
    assert compute_median([Figures(1, 30, 5), Figures(2, 10, 9), Figures(9, 20, 7)]) == Figures(2, 20, 7)


@pytest.mark.parametrize(
    ("found", "minutes", "verdicts"),
    [
        (Figures(5800, 60, 99), [50, 99, 57.5], ["met", "met", "met"]),
        (Figures(5799, 60, 99), [50, 50, 42.5], ["NOT MET", "met", "met"]),
        (Figures(9000, 60.1, 99), [50, 50, 57.6], ["met", "NOT MET", "NOT MET"]),
        (Figures(9000, 9, 9), [50, 50, 42.4], ["met", "met", "NOT MET"]),
    ],
)
def test_goals(found: Figures, minutes: Sequence[float], verdicts: list[str]) -> None:
    said = decide_goals(found, minutes)
    assert [line.split("  ")[0].strip() for line in said] == verdicts
    assert said[0].endswith(f"acknowledged events/s at 32 × 10: {found.rate:,.0f}")
    assert said[2].endswith(f"ms ({minutes[-1] / minutes[0] - 1:+.1%})")


def test_the_table_has_both_variants_of_each_cell_in_a_row() -> None:
    rows = build_table({GOAL_CELL: [Figures(5000, 61, 90)]}, {GOAL_CELL: [Figures(9000, 4, 8), Figures(9100, 5, 9)]})
    assert [cell.split() for cell in rows[-1].split("|")] == [
        ["32", "10"], ["5,000", "5,000", "5,000", "61.0", "90.0"], ["9,050", "9,000", "9,100", "4.5", "8.5"],
    ]  # fmt: skip


class Log:
    """Keeps what is appended; turns away as many appends as it is told first."""

    def __init__(self, busy: int = 0) -> None:
        self.busy = busy
        self.appends: list[Sequence[Entry]] = []

    async def append(self, entries: Sequence[Entry]) -> None:
        await asyncio.sleep(0)
        if self.busy:
            self.busy -= 1
            raise Unavailable("QueueFull", "Later.")
        self.appends.append(entries)


async def test_clients_append_batches_of_new_events_of_300_bytes() -> None:
    log, clients = Log(), build_clients()
    samples = await run_closed(log.append, clients[:2], batch=3, seconds=0.01)
    samples += await run_closed(log.append, clients[:2], batch=3, seconds=0.01)
    assert len(samples) == len(log.appends)
    entries = [entry for append in log.appends for entry in append]
    assert len({entry.id for entry in entries}) == len(entries) == 3 * len(samples)
    assert {entry.agent for entry in entries} == {clients[0].agent, clients[1].agent}
    assert all(290 <= len(msgspec.json.encode(entry.body)) <= 310 for entry in entries)
    begun = {entry.agent for entry in build_beginning(clients)}
    assert {client.agent for client in clients} <= begun


async def test_a_client_that_is_turned_away_asks_again_with_the_same_events() -> None:
    log, clients = Log(busy=2), build_clients()
    samples = await run_closed(log.append, clients[:1], batch=1, seconds=0.001)
    assert [entry.id for [entry] in log.appends] == ["bench/load-0/1/1"]
    assert len(samples) == 1


async def test_a_steady_client_appends_as_often_as_it_is_due() -> None:
    log = Log()
    samples = await run_paced(log.append, build_clients()[:4], batch=2, every=0.02, seconds=0.1)
    assert len(samples) == len(log.appends) == 4 * 5


def test_the_cell_of_the_goals_is_measured() -> None:
    from hack.bench.ledger import CELLS

    assert GOAL_CELL in CELLS
    assert len(CELLS) == 9
    assert {cell.clients for cell in CELLS} == {1, 32, 256}
    assert Cell(256, 100) in CELLS


@contextmanager
def answering() -> Iterator[tuple[int, threading.Event]]:
    """A server that says everything it hears back, and whether it heard anything."""
    heard = threading.Event()
    with closing(socket.create_server((HOST, 0))) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                while data := connection.recv(1000):
                    heard.set()
                    connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], heard


@contextmanager
def connected(late: float) -> Iterator[tuple[socket.socket, threading.Event]]:
    with answering() as (port, heard):
        proxy = Proxy(port, late)
        threading.Thread(target=proxy.serve, daemon=True).start()
        with closing(proxy), socket.create_connection((HOST, proxy.port), timeout=20) as near:
            yield near, heard


def test_the_proxy_passes_everything_on_in_order_and_the_end_too() -> None:
    sent = bytes(range(256)) * 4000
    with connected(late=0.0) as (near, _):

        def send() -> None:
            near.sendall(sent)
            near.shutdown(socket.SHUT_WR)

        threading.Thread(target=send, daemon=True).start()
        got = bytearray()
        while data := near.recv(1 << 16):
            got += data
    assert got == sent


def test_the_proxy_is_late_with_answers_only() -> None:
    with connected(late=3600.0) as (near, heard):
        near.sendall(b"x")
        assert heard.wait(20)
        near.settimeout(0.05)
        with pytest.raises(TimeoutError):
            near.recv(1)
