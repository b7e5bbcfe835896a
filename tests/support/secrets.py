"""A Secret as the kubelet mounts it: files that are links into a directory, which changes as a whole."""

import itertools
import shutil
from collections.abc import Mapping
from pathlib import Path

_COUNT = itertools.count(1)


def mount(directory: Path, values: Mapping[str, str]) -> None:
    """Mount these values, or put them in the place of those before, as the kubelet's atomic writer does."""
    directory.mkdir(parents=True, exist_ok=True)
    data = directory / "..data"
    former = data.resolve() if data.is_symlink() else None
    fresh = directory / f"..2026_11_30_{next(_COUNT)}"
    fresh.mkdir()
    for name, value in values.items():
        (fresh / name).write_text(value)
    (directory / "..data_tmp").symlink_to(fresh.name)
    (directory / "..data_tmp").replace(data)
    for name in values:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    if former is not None:
        shutil.rmtree(former)
