"""The environment of checkpointer and restore, parsed once. All paths come from it, so that both run anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from alineod.errors import Refused
from alineod.wire.archives import CHECKPOINTER_PORT

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owner:
    """The agent's user: what restore writes is given to it, where restore may."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Environment:
    """Where things are, and what the operator decided for this pod. `drain_grace` is seconds."""

    agent: str
    run: str
    incarnation: int
    home: Path
    workspace: Path
    inputs: Path
    checkpoints: Path
    control: Path
    operator_url: str
    token_file: Path
    keep: int
    exclude: tuple[str, ...]
    owner: Owner | None
    termination_log: Path
    host: str
    port: int
    drain_grace: float


def parse_environment(env: Mapping[str, str]) -> Environment:
    """Read the `ALINEO_*` variables.

    Raises:
        Refused: reason `InvalidEnvironment`; the message names the variable.
    """
    host, _, port = env.get("ALINEO_CHECKPOINTER_LISTEN", f"0.0.0.0:{CHECKPOINTER_PORT}").rpartition(":")
    return Environment(
        agent=_required(env, "ALINEO_AGENT"),
        run=env.get("ALINEO_RUN", ""),
        incarnation=_json(env, "ALINEO_INCARNATION", int, "1"),
        home=_path(env, "ALINEO_HOME", ""),
        workspace=_path(env, "ALINEO_WORKSPACE", ""),
        inputs=_path(env, "ALINEO_INPUTS", "/sandbox/inputs"),
        checkpoints=_path(env, "ALINEO_CHECKPOINTS", "/checkpoints"),
        control=_path(env, "ALINEO_CONTROL", "/run/alineo"),
        operator_url=_required(env, "ALINEO_OPERATOR_URL").rstrip("/"),
        token_file=_path(env, "ALINEO_TOKEN_FILE", "/run/alineo-token/token"),
        keep=max(1, _json(env, "ALINEO_KEEP", int, "3")),
        exclude=_json(env, "ALINEO_EXCLUDE", tuple[str, ...], "[]"),
        owner=_parse_owner(env.get("ALINEO_OWNER", "")),
        termination_log=_path(env, "ALINEO_TERMINATION_LOG", "/dev/termination-log"),
        host=host,
        port=int(port),
        drain_grace=_json(env, "ALINEO_DRAIN_GRACE", float, "30"),
    )


def _required(env: Mapping[str, str], name: str) -> str:
    if not (value := env.get(name, "")):
        raise Refused("InvalidEnvironment", f"the variable {name} is needed and not set")
    return value


def _path(env: Mapping[str, str], name: str, default: str) -> Path:
    path = Path(env.get(name, "") or default or _required(env, name))
    if not path.is_absolute():
        raise Refused("InvalidEnvironment", f"{name} must be an absolute path, not {str(path)!r}")
    return path


def _parse_owner(text: str) -> Owner | None:
    uid, _, gid = text.partition(":")
    if not text:
        return None
    if not (uid.isdigit() and gid.isdigit()):
        raise Refused("InvalidEnvironment", f"ALINEO_OWNER must be uid:gid in digits, not {text!r}")
    return Owner(int(uid), int(gid))


def _json(env: Mapping[str, str], name: str, kind: type[T], default: str) -> T:
    try:
        return msgspec.json.decode((env.get(name) or default).encode(), type=kind)
    except msgspec.DecodeError as error:
        raise Refused("InvalidEnvironment", f"the variable {name} cannot be read: {error}") from error
