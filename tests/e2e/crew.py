"""A dozen agents in every state at once, one of which gathers what the others found.

What an agent does next, it does when the test opens its gate: nothing here depends on how fast the machine is.
"""

from tests.support.e2e_gates import hold, hold_script
from tests.support.e2e_objects import Json, bash, build_defaults, build_swarm, play, slow, text

NAME = "crew"
ENDED = ("done", "failed")
AT_GATES = ("lead", "forked", "tool", "blank", "speaking", "ending")
WORKERS = ("done", "failed", "forked", "tool", "blank", "speaking", "ending", "setup", "held")
WAITING = ("held", "gather", "first")
ALIASES = ("lead", *WORKERS, "gather", "first")
SECOND = "Lead on."
SPOKEN = "What is said while the leader changes " + "." * 20


def find(alias: str) -> str:
    """What a worker's turn comes to."""
    return f"Found by {alias}."


def ask(alias: str) -> str:
    """The words of a prompt that nobody else has."""
    return f"Task of {alias}."


def build_crew() -> Json:
    """Workers that have ended, work, speak, are made ready or are held; then who waits for all of them."""
    entries = [
        _entry("lead", bash("echo chart > /workspace/chart"), text("Work.")),
        _entry("done", bash("echo kept > /workspace/kept"), text(find("done"))),
        _entry("failed", {"http": 400, "message": "no such thing"}),
        _entry("forked", bash("cat /workspace/kept"), hold(), text(find("forked")), parent="done", waitFor=["done"]),
        _entry("tool", hold(), text(find("tool"))),
        _entry("blank", hold(), text(find("blank")), checkpoint=False),
        _entry("speaking", hold(), slow(SPOKEN, 20)),
        _entry("ending", hold(), text(find("ending"))),
        _entry("setup", text(find("setup")), sandbox={"setup": hold_script("gate")}),
        _entry("held", bash("cat /inputs/tool.txt"), text(find("held")), waitFor=["tool"]),
        _entry(
            "gather", bash("cat /inputs/*.txt; cat /inputs.json"), text("All gathered."),
            waitFor={"agents": list(WORKERS), "mode": "Settled"},
        ),
        _entry(
            "first", bash("cat /inputs/*.txt"), text("One came."),
            waitFor={"agents": ["tool", "ending"], "mode": "Any"},
        ),
    ]  # fmt: skip
    return build_swarm(NAME, entries, defaults=build_defaults())


def build_second() -> str:
    """The lead's next prompt, which it works at when its leader goes."""
    return play(hold(), bash("cat /workspace/chart"), text("Led on."), say=SECOND)


def _entry(alias: str, *steps: Json, **more: object) -> Json:
    return {"name": alias, "prompt": play(*steps, say=ask(alias)), **more}
