"""What the kernel says of the processes of the container."""

from pathlib import Path

import pytest

from alineod.bridge.proc import count_killed_for_memory


@pytest.mark.parametrize(
    ("files", "killed"),
    [
        ({"memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 1\n"}, 2),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"}, 7),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, 0),  # of an older kernel
        ({"memory.events": "what is\nthis\n", "memory.oom_control": "oom_kill 1\n"}, 1),
        ({}, 0),
    ],
)
def test_who_was_killed_for_memory_is_counted(tmp_path: Path, files: dict[str, str], killed: int) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert count_killed_for_memory(tmp_path / name for name in ("memory.events", "memory.oom_control")) == killed
