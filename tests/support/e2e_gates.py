"""Steps of a turn that last until the test lets them go on: a shell that waits for a file in its sandbox."""

from tests.support.e2e_objects import Json, bash
from tests.support.e2e_world import World

CONTAINER = "--container=agent"


def hold_script(gate: str) -> str:
    """A shell's words for standing at a gate; what stands there is seen by a file of its own."""
    return f"touch /tmp/{gate}.reached; until [ -e /tmp/{gate} ]; do sleep 0.2; done"


def hold(gate: str = "gate", before: str = "") -> Json:
    """The model calls its shell, which does `before` and waits at the gate."""
    return bash(f"{before}{'; ' if before else ''}{hold_script(gate)}")


def wait_at_gate(world: World, space: str, pod: str, gate: str = "gate") -> None:
    """Until somebody in the sandbox waits at the gate."""
    look = ["exec", pod, CONTAINER, "--", "ls", "/tmp"]
    world.until(
        f"somebody in {pod} should wait at {gate}",
        lambda: f"{gate}.reached" in world.kubectl(space, *look, check=False).split(),
        space,
    )


def open_gate(world: World, space: str, pod: str, gate: str = "gate") -> None:
    """Let who waits there go on."""
    world.kubectl(space, "exec", pod, CONTAINER, "--", "touch", f"/tmp/{gate}")


def cut_off(world: World, space: str, pod: str) -> None:
    """End a sandbox in the middle of its turn: a second is too short for any."""
    world.kubectl(space, "delete", "pod", pod, "--grace-period=1", "--wait=false")
