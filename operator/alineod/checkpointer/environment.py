"""The environment of checkpointer and restore, parsed once. All paths come from it, so that both run anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from alineod.errors import Refused
from alineod.wire.archives import CHECKPOINTER_PORT
from alineod.wire.environment import read_address, read_json, read_path, read_required


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
    host, port = read_address(env, "ALINEO_CHECKPOINTER_LISTEN", f"0.0.0.0:{CHECKPOINTER_PORT}")
    return Environment(
        agent=read_required(env, "ALINEO_AGENT"),
        run=env.get("ALINEO_RUN", ""),
        incarnation=read_json(env, "ALINEO_INCARNATION", int, "1"),
        home=read_path(env, "ALINEO_HOME"),
        workspace=read_path(env, "ALINEO_WORKSPACE"),
        inputs=read_path(env, "ALINEO_INPUTS", "/sandbox/inputs"),
        checkpoints=read_path(env, "ALINEO_CHECKPOINTS", "/checkpoints"),
        control=read_path(env, "ALINEO_CONTROL", "/run/alineo"),
        operator_url=read_required(env, "ALINEO_OPERATOR_URL").rstrip("/"),
        token_file=read_path(env, "ALINEO_TOKEN_FILE", "/run/alineo-token/token"),
        keep=max(1, read_json(env, "ALINEO_KEEP", int, "3")),
        exclude=read_json(env, "ALINEO_EXCLUDE", tuple[str, ...], "[]"),
        owner=_parse_owner(env.get("ALINEO_OWNER", "")),
        termination_log=read_path(env, "ALINEO_TERMINATION_LOG", "/dev/termination-log"),
        host=host,
        port=port,
        drain_grace=read_json(env, "ALINEO_DRAIN_GRACE", float, "30"),
    )


def _parse_owner(text: str) -> Owner | None:
    uid, _, gid = text.partition(":")
    if not text:
        return None
    if not (uid.isdigit() and gid.isdigit()):
        raise Refused("InvalidEnvironment", f"ALINEO_OWNER must be uid:gid in digits, not {text!r}")
    return Owner(int(uid), int(gid))
