"""The bucket's keys as a mounted Secret shows them: read anew for every request, so that new ones need no restart.

Without such a directory the S3 client's own chain finds the keys. Must not know who signs what.
"""

from collections.abc import Mapping
from pathlib import Path

VARIABLE = "ALINEOD_BUCKET_KEYS"
"""Names the directory. Its files are called as the variables that S3 clients know."""
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_DATA = "..data"  # the kubelet's link to the values of the moment; all of them change with it
_TRIES = 3


def find_directory(env: Mapping[str, str]) -> Path | None:
    """Where the keys are mounted; None where they come from elsewhere."""
    return Path(named) if (named := env.get(VARIABLE, "").strip()) else None


def read_keys(directory: Path | None) -> dict[str, str]:
    """Both keys, of one moment, by their names; empty while they are not there."""
    for _ in range(_TRIES if directory is not None else 0):
        try:
            return _read(_follow(directory or Path()))
        except (OSError, UnicodeDecodeError):
            continue  # the kubelet has just put others in their place
    return {}


def _follow(directory: Path) -> Path:
    data = directory / _DATA
    return data.resolve(strict=True) if data.is_symlink() else directory


def _read(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text("utf-8").strip() for name in NAMES}
