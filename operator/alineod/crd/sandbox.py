"""The pod an agent runs in, as a person writes it."""

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from alineod.crd.base import Record, Rule, Schema
from alineod.crd.types import Duration, Quantity

RESERVED = (
    "workspace",
    "inputs",
    "inputs.json",
    "checkpoints",
    "sandbox",
    "run",
    "proc",
    "sys",
    "dev",
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib64",
    "etc",
    "opt",
    "var",
    "tmp",
    "boot",
)
PATH = r"(/[A-Za-z0-9._-]+)+"
PATH_SENTENCE = "write an absolute path of plain names, such as /root or /home/agent"
DOTS_SENTENCE = "write the home without . and .. in it"
LONGEST_DRAIN = 24 * 3600.0  # s
DRAIN_SENTENCE = "a drain may wait 24h at most: write a shorter time"
RESERVED_SENTENCE = f"the home cannot be within /{', /'.join(RESERVED)}: write another path"


def _check_home(value: str) -> str:
    if not re.fullmatch(PATH, value):
        raise ValueError(f"cannot be {value!r}: {PATH_SENTENCE}")
    if not {".", ".."}.isdisjoint(value.split("/")):
        raise ValueError(f"cannot be {value!r}: {DOTS_SENTENCE}")
    if value.split("/")[1] in RESERVED:
        raise ValueError(f"cannot be {value!r}: {RESERVED_SENTENCE}")
    return value


HomePath = Annotated[
    str,
    Field(max_length=128),
    AfterValidator(_check_home),
    Rule(f"self.matches('^{PATH}$')", PATH_SENTENCE),
    Rule("!(self + '/').contains('/./') && !(self + '/').contains('/../')", DOTS_SENTENCE),
    Rule(f"self.split('/').size() < 2 || !(self.split('/')[1] in {list(RESERVED)})", RESERVED_SENTENCE),
]


def _check_drain(value: float) -> float:
    if value > LONGEST_DRAIN:
        raise ValueError(f"cannot be {value:g} s: {DRAIN_SENTENCE}")
    return value


DrainGrace = Annotated[
    Duration, AfterValidator(_check_drain), Rule("duration(self) <= duration('24h')", DRAIN_SENTENCE)
]

Quantities = Annotated[dict[str, Quantity], Field(max_length=16)]
OpenObject = Annotated[dict[str, Any], Schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
Strings = Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=32)]


class ResourcesSpec(Record):
    """What the agent's container asks for and may use."""

    requests: Quantities = Field(default={}, description="What the scheduler sets aside, by resource name.")
    limits: Quantities = Field(default={}, description="What the container may use at most, by resource name.")


class VolumeSpec(Record):
    """One volume of the sandbox."""

    size_limit: Quantity = Field(
        default="5Gi",
        description="How large the volume may grow. A sandbox that outgrows it is evicted and comes back by Restore.",
    )
    storage_class_name: str = Field(
        default="",
        max_length=253,
        description="With a class the volume is a claim of that class and of size `sizeLimit`; without, an emptyDir.",
    )


class CheckpointVolumeSpec(Record):
    """The volume the newest checkpoints lie in, beside the bucket."""

    size_limit: Quantity = Field(default="10Gi", description="How large the volume may grow.")


class StorageSpec(Record):
    """The sandbox's volumes."""

    home: VolumeSpec = Field(default=VolumeSpec(), description="Holds the agent's home directory.")
    workspace: VolumeSpec = Field(default=VolumeSpec(), description="Holds /workspace.")
    checkpoints: CheckpointVolumeSpec = Field(
        default=CheckpointVolumeSpec(), description="Holds the newest checkpoints; the agent does not see it."
    )


class PodMetadataSpec(Record):
    """What is added to the metadata of the sandbox's pods."""

    labels: Strings = Field(default={}, description="Labels to add. Ours, under alineo.dev, cannot be replaced.")
    annotations: Strings = Field(
        default={}, description="Annotations to add. Ours, under alineo.dev, cannot be replaced."
    )


class PodTemplateSpec(Record):
    """A strategic overlay over the sandbox's pod.

    It may add a node selector, tolerations, a runtime class, volumes and containers; it never changes our own
    containers, volumes or tokens.
    """

    metadata: PodMetadataSpec = Field(default=PodMetadataSpec(), description="Labels and annotations to add.")
    spec: OpenObject = Field(default={}, description="Fields of a Kubernetes PodSpec.")


class OnNodeLost(StrEnum):
    REPLACE = "Replace"
    WAIT = "Wait"


class SandboxSpec(Record):
    """The pod the agent runs in. A change applies at the agent's next incarnation."""

    image: str = Field(
        default="", max_length=512, description="The agent's image. Empty: the release's own, with Pi in it."
    )
    home: HomePath = Field(
        default="/root", description="The home directory of the agent's user; it is what is checkpointed."
    )
    run_as_user: int = Field(
        default=0, ge=0, le=2_147_483_647, description="User id of the agent; 0 is root in its container."
    )
    run_as_group: int = Field(default=0, ge=0, le=2_147_483_647, description="Group id of the agent.")
    setup: str = Field(
        default="",
        max_length=65_536,
        description="A shell script, run once per incarnation in the agent's container before the harness starts. "
        "A prebuilt image is the faster way.",
    )
    checkpoint_exclude: tuple[Annotated[str, Field(max_length=512)], ...] = Field(
        default=(),
        max_length=64,
        description="Paths that checkpoints leave out, below the home directory or /workspace.",
    )
    resources: ResourcesSpec = Field(default=ResourcesSpec(), description="Resources of the agent's container.")
    storage: StorageSpec = Field(default=StorageSpec(), description="The sandbox's volumes.")
    pod_template: PodTemplateSpec = Field(default=PodTemplateSpec(), description="A strategic overlay over the pod.")
    drain_grace: DrainGrace = Field(
        default=600.0,
        description="How long a turn that runs may go on when its sandbox is to end, such as when its node is drained. "
        "No new turn is begun meanwhile. A turn that takes longer is interrupted.",
    )
    on_node_lost: OnNodeLost = Field(
        default=OnNodeLost.REPLACE,
        description="Replace: a sandbox whose node cannot be reached any more is replaced on another one, and what the "
        "former still does has no effect. Wait: the node is waited for.",
    )
