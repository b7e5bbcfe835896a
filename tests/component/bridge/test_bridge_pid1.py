"""The bridge as PID 1 of a process namespace, as in its container."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.component.bridge.bridge_rig import Bridge, Cutter, script, until

UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.fixture
def pid1(make_bridge: Callable[..., Bridge]) -> Bridge:
    if os.geteuid() != 0:
        pytest.fail("a process namespace is needed here: run these tests as root")
    return make_bridge().start(*UNSHARE)


def inside(bridge: Bridge) -> list[int]:
    """Pids, as seen from outside, of everyone in the bridge's namespace but itself."""
    namespace = Path(f"/proc/{bridge_pid(bridge)}/ns/pid").readlink()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "ns/pid").readlink() == namespace:
                found.append(int(path.name))
        except OSError:
            continue
    return [pid for pid in found if pid != bridge_pid(bridge)]


def bridge_pid(bridge: Bridge) -> int:
    assert bridge.process is not None
    parent = bridge.process.pid
    return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stand_still(pids: list[int]) -> bool:
    """Whether none of these can write: stopped, over, or waiting inside vfork() for a child that is stopped itself."""
    still = {pid for pid in pids if state_of(pid) in "TZ"}
    children = {pid: Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in set(pids) - still}
    return all(state_of(pid) == "D" and still & set(map(int, below)) for pid, below in children.items())


@pytest.mark.behaviour("11.14")
def test_a_signal_from_inside_is_no_shutdown_and_one_from_outside_is(pid1: Bridge) -> None:
    command = "for s in TERM INT HUP QUIT USR1 STOP KILL; do kill -$s 1; done; echo sent"
    result = pid1.turn(1, script({"tool": "bash", "args": {"command": command}}, {"text": "still here"}))
    assert result["text"] == "still here"
    assert not pid1.state().get("draining")
    assert pid1.turn(2, "hello")["state"] == "clean"
    assert pid1.process is not None
    os.kill(bridge_pid(pid1), signal.SIGTERM)
    assert pid1.process.wait(60) == 0


@pytest.mark.behaviour("11.13")
def test_orphans_are_reaped_and_no_status_is_taken(pid1: Bridge) -> None:
    orphans = "for n in $(seq 60); do (sleep 0.0$n; exit $((n % 7))) & done"
    # Whoever waits for a child of its own gets that child's status, whatever ends beside it.
    waits = "for n in $(seq 1 40); do (exit 9); [ $? = 9 ] || echo stolen; done; sh -c 'exit 5'; echo code=$?"
    command = f"setsid sh -c '{orphans.replace('$n', '${n}')}' >/dev/null 2>&1; {waits}"
    result = pid1.turn(1, script({"tool": "bash", "args": {"command": command}}, {"text": "done"}))
    assert result["state"] == "clean"
    said = pid1.wait_for("tool.ended")["data"]["text"]
    assert "code=5" in said
    assert "stolen" not in said
    until("every orphan to be reaped", lambda: not inside(pid1))


@pytest.mark.behaviour("11.15")
def test_an_orphan_of_the_agent_stands_still_while_the_archive_is_cut(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    still: set[bool] = set()
    sizes: set[int] = set()

    def on_cut(_: object) -> None:
        for _ in range(30):
            sizes.add((bridge.workspace / "grows").stat().st_size)
            still.add(stand_still(inside(bridge)))
            time.sleep(0.01)

    cutter.on_cut = on_cut
    bridge.start(*UNSHARE)
    loop = "setsid sh -c 'while :; do date +%s%N >> grows; sleep 0.01; done' >/dev/null 2>&1 &"
    stopped = "setsid sh -c 'kill -STOP $$; sleep 1000' > /dev/null 2>&1 &"
    command = f"{loop} {stopped} sleep 0.5"
    bridge.turn(1, script({"tool": "bash", "args": {"command": command}}, {"text": "left them"}), checkpoint=True)
    bridge.wait_for("checkpoint.cut")
    assert still == {True}
    assert len(sizes) == 1
    frozen = sizes.pop()
    until("it to write again", lambda: (bridge.workspace / "grows").stat().st_size > frozen)
    assert "T" in [state_of(pid) for pid in inside(bridge)]  # who had stopped by itself was not woken


@pytest.mark.behaviour("11.15")
def test_a_process_that_starts_another_stands_still_too_while_the_archive_is_cut(
    make_bridge: Callable[..., Bridge], cutter: Cutter
) -> None:
    bridge = make_bridge(ALINEO_CHECKPOINTER=cutter.serve())
    seen: list[tuple[bool, set[str]]] = []

    def on_cut(_: object) -> None:
        pids = inside(bridge)
        seen.append((stand_still(pids), {state_of(pid) for pid in pids}))

    cutter.on_cut = on_cut
    bridge.start(*UNSHARE)
    # The child opens the pipe before it becomes a program of its own; its parent cannot be stopped until it has.
    opens = "[(os.POSIX_SPAWN_OPEN, 0, 'pipe', os.O_RDONLY, 0)]"
    spawn = f"import os; os.posix_spawn('/bin/true', ['true'], {{}}, file_actions={opens}); open('went-on', 'w')"
    command = f"""mkfifo pipe; setsid {sys.executable} -c "{spawn}" > /dev/null 2>&1 & sleep 0.5"""
    bridge.turn(1, script({"tool": "bash", "args": {"command": command}}, {"text": "left it"}), checkpoint=True)
    bridge.wait_for("checkpoint.cut")
    assert seen == [(True, {"T", "D"})]
    (bridge.workspace / "pipe").write_text("")
    until("the parent to go on", (bridge.workspace / "went-on").exists)
