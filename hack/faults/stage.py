"""What a row is played on: the release, the parts beside it, and the namespace of the row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError
from pykube.objects import Pod

from hack.chaos.operators import Operator, parse_operator
from hack.demo.api import ControlApi
from hack.demo.install import Images
from hack.demo.target import Target
from hack.faults.scene import FIRST, Needs, name_of
from hack.faults.table import TODAY, Column, Row, find_cells
from tests.support.e2e_objects import Agent, Json
from tests.support.e2e_parts import Bucket, ScriptedModel
from tests.support.e2e_world import World

KEPT, STRUCK = "n1", "n2"
"""The node with the bucket and the model, which no row strikes alone, and the one that rows of a node strike."""


@dataclass
class Stage:
    """One row. `said` grows while agents are asked; `damaged` are keys of the bucket that a fault has spoilt."""

    world: World
    images: Images
    bucket: Bucket
    model: ScriptedModel
    api: ControlApi
    namespace: str
    tag: str
    row: Row
    needs: Needs
    columns: Sequence[Column] = TODAY
    say: Callable[[str], None] = print
    said: dict[str, dict[int, str]] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)
    asked_before: list[Json] = field(default_factory=list)
    release: Callable[[], None] = lambda: None  # lets go on what is held in its state

    @property
    def target(self) -> Target:
        return self.world.target

    @property
    def first(self) -> Sequence[Column]:
        """Those on it that work from the beginning."""
        return [column for column in FIRST if column in self.columns]

    @property
    def struck(self) -> Sequence[Column]:
        """Those whose cells are judged."""
        return find_cells(self.row, self.columns)

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        return self.world.kubectl(self.namespace, *words, stdin=stdin, check=check)

    def read_agents(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self.world.read_all(Agent, self.namespace)}

    def read_pods(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self.world.read_all(Pod, self.namespace)}

    def find_sandboxes(self) -> Mapping[Column, Operator]:
        """The pods of those that have one, by column."""
        agents, pods = self.read_agents(), self.read_pods()
        found: dict[Column, Operator] = {}
        for column in Column:
            sandbox = (agents.get(name_of(column), {}).get("status") or {}).get("sandbox") or {}
            if sandbox.get("pod") in pods:
                found[column] = parse_operator(pods[sandbox["pod"]])
        return found

    def note(self, column: Column, turn: int, say: str) -> None:
        """Remember what was said to an agent."""
        self.said.setdefault(name_of(column), {})[turn] = say

    def list_checkpoints(self) -> Mapping[Column, Sequence[str]]:
        """The agents' objects in the bucket, oldest first."""
        prefix = f"{self.world.release.name}/checkpoints/{self.namespace}/"
        try:
            keys = sorted(self.bucket.list(prefix))
        except BotoCoreError:
            self.bucket.reconnect()
            keys = sorted(self.bucket.list(prefix))
        return {column: [key for key in keys if key.startswith(f"{prefix}{name_of(column)}/")] for column in Column}
