"""Places to pack from."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def anywhere() -> Iterator[Path]:
    """A directory that every user may enter."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A sandbox that holds something, with something outside that must stay as it is."""
    for name, body in (("outside/secret", "secret"), ("home/old", "old"), ("workspace/old", "old")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(body)
    return tmp_path
