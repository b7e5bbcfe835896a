"""The environment of the bridge, parsed once. All paths come from it, so that a bridge runs anywhere."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from alineod.wire.archives import CHECKPOINTER_PORT
from alineod.wire.environment import read_address, read_json, read_path, read_required
from alineod.wire.turns import BRIDGE_PORT

# What the harness and its tools are told of our own variables; the rest is the bridge's business.
SHOWN = frozenset({"ALINEO_AGENT", "ALINEO_ALIAS", "ALINEO_RUN", "ALINEO_INCARNATION"})


class Credential(msgspec.Struct, frozen=True):
    """A value the harness needs: in the environment under `name`, from key `key` of Secret `secret`."""

    name: str
    secret: str = ""
    key: str = ""


class Model(msgspec.Struct, frozen=True):
    """The model as the Agent's spec names it."""

    provider: str = ""
    id: str = ""
    base_url: str = msgspec.field(name="baseURL", default="")
    api: str = ""


class HarnessSpec(msgspec.Struct, frozen=True):
    """Which harness, how it is started where that is not the usual way, and its model."""

    type: str = "Pi"
    command: tuple[str, ...] = ()
    model: Model = Model()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where things are and how long they may take; times are seconds."""

    agent: str
    incarnation: int
    home: Path
    workspace: Path
    control: Path
    credentials: Path
    credential_names: tuple[Credential, ...]
    harness: HarnessSpec
    setup: str
    environment: dict[str, str]  # of every process the bridge starts
    host: str = "0.0.0.0"  # noqa: S104  the operator asks from another pod
    port: int = BRIDGE_PORT
    checkpointer: str = f"http://127.0.0.1:{CHECKPOINTER_PORT}"
    drain_grace: float = 20.0
    cut_grace: float = 30.0
    cut_limit: float = 600.0
    cut_retry: float = 30.0

    @property
    def namespace(self) -> str:
        return self.agent.partition("/")[0]


def parse_settings(env: Mapping[str, str]) -> Settings:
    """Read the settings from `env`.

    Raises:
        Refused: reason `InvalidEnvironment`; the message names the variable.
    """
    home = read_path(env, "ALINEO_HOME")
    host, port = read_address(env, "ALINEO_BRIDGE_LISTEN", f"0.0.0.0:{BRIDGE_PORT}")
    return Settings(
        agent=read_required(env, "ALINEO_AGENT"),
        incarnation=read_json(env, "ALINEO_INCARNATION", int, "1"),
        home=home,
        workspace=read_path(env, "ALINEO_WORKSPACE"),
        control=read_path(env, "ALINEO_CONTROL"),
        credentials=Path(env.get("ALINEO_CREDENTIALS", "/run/alineo-credentials")),
        credential_names=read_json(env, "ALINEO_CREDENTIAL_NAMES", tuple[Credential, ...], "[]"),
        harness=read_json(env, "ALINEO_HARNESS", HarnessSpec, "{}"),
        setup=env.get("ALINEO_SETUP", ""),
        environment={**{k: v for k, v in env.items() if k in SHOWN or not k.startswith("ALINEO_")}, "HOME": str(home)},
        host=host,
        port=port,
        checkpointer=env.get("ALINEO_CHECKPOINTER", f"http://127.0.0.1:{CHECKPOINTER_PORT}"),
        drain_grace=read_json(env, "ALINEO_DRAIN_GRACE", float, "20"),
        cut_grace=read_json(env, "ALINEO_CUT_GRACE", float, "30"),
        cut_limit=read_json(env, "ALINEO_CUT_LIMIT", float, "600"),
        cut_retry=read_json(env, "ALINEO_CUT_RETRY", float, "30"),
    )
