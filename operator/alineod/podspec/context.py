"""What a pod is built from beside its agent: the release's images and defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class SandboxDefaults:
    """The chart's `sandboxDefaults`: laid under every sandbox pod. Parts of a PodSpec, as Kubernetes has them."""

    tolerations: tuple[Mapping[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    security_context: Mapping[str, Any] = field(default_factory=dict)  # of the pod
    resources: Mapping[str, Any] = field(default_factory=dict)  # of our own two containers


@dataclass(frozen=True)
class PodContext:
    """`operator_url` is where the sandbox reaches the operator.

    Seconds that a sandbox which is asked to end has after its turn's own: `cut_grace` to cut the archive,
    `upload_grace` to bring it into the bucket.
    """

    agent_image: str
    sandbox_image: str
    pull_policy: str
    operator_url: str
    epoch: int
    keep: int = 3
    cut_grace: int = 30
    upload_grace: int = 45
    defaults: SandboxDefaults = field(default_factory=SandboxDefaults)


def parse_sandbox_defaults(raw: Mapping[str, Any]) -> SandboxDefaults:
    """The chart's value, with unknown keys left out."""
    return SandboxDefaults(
        tolerations=tuple(raw.get("tolerations") or ()),
        pull_secrets=tuple(raw.get("pullSecrets") or ()),
        security_context=raw.get("securityContext") or {},
        resources=raw.get("resources") or {},
    )
