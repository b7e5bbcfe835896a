"""Reading the variables by which the operator tells a sandbox's processes what they are. Pure.

Each function raises `Refused`, reason `InvalidEnvironment`; the message names the variable.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from alineod.errors import Refused

T = TypeVar("T")
INVALID = "InvalidEnvironment"


def read_required(env: Mapping[str, str], name: str) -> str:
    """A variable that has to be there and say something."""
    if not (value := env.get(name, "")):
        raise Refused(INVALID, f"the variable {name} is needed and not set")
    return value


def read_path(env: Mapping[str, str], name: str, default: str = "") -> Path:
    """An absolute path; required where there is no default."""
    path = Path(env.get(name, "") or default or read_required(env, name))
    if not path.is_absolute():
        raise Refused(INVALID, f"{name} must be an absolute path, not {str(path)!r}")
    return path


def read_address(env: Mapping[str, str], name: str, default: str) -> tuple[str, int]:
    """Where to listen: a host, which may be an IPv6 address in brackets, and a port."""
    host, _, port = (env.get(name) or default).rpartition(":")
    if not host or not port.isdigit():
        raise Refused(INVALID, f"{name} must be host:port, such as {default}, not {env[name]!r}")
    return host.strip("[]"), int(port)


def read_json(env: Mapping[str, str], name: str, kind: type[T], default: str) -> T:
    """A value in JSON of that type."""
    try:
        return msgspec.json.decode((env.get(name) or default).encode(), type=kind)
    except msgspec.DecodeError as error:
        raise Refused(INVALID, f"the variable {name} cannot be read: {error}") from error
