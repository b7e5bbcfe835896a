"""The CustomResourceDefinitions: names, columns, and the rules that need an object's name."""

from dataclasses import dataclass
from typing import Any

from alineod.crd.agent import AgentSpec
from alineod.crd.base import GROUP, VERSION, Record, Rule
from alineod.crd.schema import Json, build_rules, build_schema
from alineod.crd.status import UNSEEN, AgentStatus, SwarmStatus
from alineod.crd.swarm import SwarmSpec
from alineod.crd.types import DNS_LABEL, INCARNATION_ROOM, MAX_OBJECT_NAME, NAME_SENTENCE

CATEGORY = "alineo"


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`; `wide` ones are shown with `-o wide` only."""

    name: str
    path: str
    description: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True)
class Definition:
    """All that makes a kind."""

    kind: str
    plural: str
    short: str
    description: str
    spec: type[Record]
    status: type[Record]
    columns: tuple[Column, ...]
    rules: tuple[Rule, ...]


def _condition(kind: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].status'


AGE = Column("Age", ".metadata.creationTimestamp", "How long ago the object was made.", "date")

NAME_FIELD = ".metadata.name"

NAME_RULES = (
    Rule(f"self.metadata.name.matches('^{DNS_LABEL}$')", f"this is no name: {NAME_SENTENCE}", NAME_FIELD),
    Rule(
        f"self.metadata.name.size() <= {MAX_OBJECT_NAME}",
        f"the name is too long: shorten it to {MAX_OBJECT_NAME} characters, since pods' names have "
        f"{INCARNATION_ROOM} more",
        NAME_FIELD,
    ),
)

SWARM = Definition(
    kind="Swarm",
    plural="swarms",
    short="sw",
    description="One run: a tree of agents that work on one task.",
    spec=SwarmSpec,
    status=SwarmStatus,
    columns=(
        Column("Ready", _condition("Ready"), "Whether this generation was seen and no agent is stuck."),
        Column("Agents", ".status.agents.progress", "Agents that are done, of all."),
        Column("Interrupted", _condition("Interrupted"), "Whether the last turn of any agent was cut off."),
        Column("Lost", _condition("Lost"), "Whether any agent is lost."),
        AGE,
    ),
    rules=(
        *NAME_RULES,
        Rule(
            "!has(self.spec.agents) || self.spec.agents.all(a, "
            f"self.metadata.name.size() + a.name.size() + 1 <= {MAX_OBJECT_NAME})",
            f"an agent's object is named <swarm>-<name>, with at most {MAX_OBJECT_NAME} characters: shorten the "
            "swarm's name or the agent's",
            ".spec.agents",
        ),
    ),
)

AGENT = Definition(
    kind="Agent",
    plural="agents",
    short="ag",
    description="One agent of a swarm: what it is to do, its sandbox, its conversation.",
    spec=AgentSpec,
    status=AgentStatus,
    columns=(
        Column("Phase", ".status.phase", "Where the agent is."),
        Column("Swarm", ".spec.swarm", "The swarm it belongs to."),
        Column("Parent", ".spec.parent", "The agent it is a child of."),
        Column("Turn", ".status.turn.number", "Its latest turn.", "integer"),
        Column("Checkpoint", ".status.checkpoint.turn", "The turn of its newest checkpoint.", "integer"),
        Column("Saved", ".status.checkpoint.time", "How long ago that was saved.", "date"),
        Column("Rung", ".status.restore.rung", "How it last came back."),
        Column("Restarts", ".status.sandbox.restarts", "Restarts of the sandbox.", "integer"),
        AGE,
        Column("Pod", ".status.sandbox.pod", "Its pod.", wide=True),
        Column("Node", ".status.sandbox.node", "The node of its pod.", wide=True),
        Column("Outcome", ".status.outcome", "What came of its last turn.", wide=True),
    ),
    rules=(
        *NAME_RULES,
        Rule(
            "!has(self.spec.parent) || "
            "self.spec.parent != (has(self.spec.alias) ? self.spec.alias : self.metadata.name)",
            "an agent cannot be its own parent: name another agent",
            ".spec.parent",
        ),
    ),
)

DEFINITIONS = (SWARM, AGENT)


def build_crd(definition: Definition) -> Json:
    """The CustomResourceDefinition of a kind."""
    names = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": definition.plural,
        "singular": definition.kind.lower(),
        "shortNames": [definition.short],
        "categories": [CATEGORY],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {"openAPIV3Schema": _root(definition)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "alineod"}},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _root(definition: Definition) -> Json:
    status = {**build_schema(definition.status), "default": {"observedGeneration": UNSEEN}}
    return {
        "type": "object",
        "description": definition.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{definition.kind}."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": build_schema(definition.spec),
            "status": status,
        },
        **build_rules(definition.rules),
    }


def _column(column: Column) -> dict[str, Any]:
    wide = {"priority": 1} if column.wide else {}
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
        "description": column.description,
        **wide,
    }
