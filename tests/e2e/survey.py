"""The tree that most tests look at: a lead, two workers that fork it, and a writer that waits for both."""

from tests.support.e2e_objects import Json, bash, build_swarm, play, text

NAME = "survey"
ALIASES = ("lead", "left", "right", "writer")
LEAD_SAYS = "Plan: left takes the north, right takes the south."
REPORT = "Report: north and south agree."


def build_survey() -> Json:
    """A swarm whose every fact a test can find again: in files, in the inputs, in the words of the agents."""
    return build_swarm(
        NAME,
        [
            {"name": "lead", "prompt": play(
                bash('echo "north|south" > /workspace/plan.md; echo remembered > ~/note; echo "id=$ALINEO_TURN_ID"'),
                text(LEAD_SAYS), say="Split the question in two."),
             },
            {"name": "left", "parent": "lead", "waitFor": ["lead"], "prompt": _work("left", 1)},
            {"name": "right", "parent": "lead", "waitFor": ["lead"], "prompt": _work("right", 2)},
            {"name": "writer", "parent": "lead",
             "waitFor": {"agents": ["left", "right"], "mode": "Quorum", "k": 2, "deadline": "10m"},
             "prompt": play(
                 bash("cat /inputs/left.txt /inputs/right.txt; cat /inputs.json"), text(REPORT),
                 say="Write the report."),
             },
        ],
    )  # fmt: skip


def _work(name: str, field: int) -> str:
    """A worker that finds its parent's files."""
    command = f'cut -d"|" -f{field} /workspace/plan.md; cat ~/note; echo {name} > ~/mine'
    return play(bash(command), text(f"Result of {name}."), say=f"Work on part {field}.")
