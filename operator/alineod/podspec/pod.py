"""The sandbox pod of one incarnation of an agent."""

from math import ceil

from alineod.crd.base import API_VERSION
from alineod.crd.harness import CredentialRef
from alineod.crd.sandbox import OnNodeLost
from alineod.domain.ends import NODE_LOST_AFTER
from alineod.domain.facts import AgentObject
from alineod.podspec import names
from alineod.podspec.containers import build_agent, build_checkpointer, build_restore
from alineod.podspec.context import Json, PodContext
from alineod.podspec.overlay import lay_over
from alineod.podspec.volumes import build_volumes

POD_FIELDS = ("sandbox", "harness")  # what a spec says of its pod
LAST_WORDS = 5  # s in which what has ended says so


def build_pod(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> Json:
    """The pod, with the person's overlay on it.

    Args:
        key: `namespace/name` of the Agent.
        incarnation: counts from 1; the pod's name is derived from it.
    """
    namespace, name = key.split("/")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": names.build_pod_name(name, incarnation),
            "namespace": namespace,
            "labels": names.build_labels(name, agent) | {names.INCARNATION: str(incarnation)},
            "annotations": {
                names.EPOCH: str(context.epoch),
                names.MADE_OF: agent.spec.digest(*POD_FIELDS),
                "kubectl.kubernetes.io/default-container": "agent",
            },
            "ownerReferences": [_build_owner(name, agent.uid)],
        },
        "spec": _build_spec(key, agent, incarnation, context),
    }
    return lay_over(pod, agent.spec.sandbox.pod_template)


def _build_owner(name: str, uid: str) -> Json:
    return {"apiVersion": API_VERSION, "kind": "Agent", "name": name, "uid": uid, "controller": True}


def _build_patience(policy: OnNodeLost) -> list[Json]:
    """How long the cluster leaves the pod where its node is silent; without these it would be five minutes."""
    limit = {} if policy is OnNodeLost.WAIT else {"tolerationSeconds": int(NODE_LOST_AFTER)}
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", **limit} for key in keys]


def _build_spec(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> Json:
    sandbox = agent.spec.sandbox
    credentials: tuple[CredentialRef, ...] = agent.spec.harness.credentials
    spec: Json = {
        "restartPolicy": "Always",
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": ceil(sandbox.drain_grace)
        + context.cut_grace
        + context.upload_grace
        + LAST_WORDS,
        "securityContext": {
            "fsGroup": sandbox.run_as_group,
            "seccompProfile": {"type": "RuntimeDefault"},
            **context.defaults.security_context,
        },
        "initContainers": [
            build_restore(key, agent, incarnation, context),
            build_checkpointer(key, agent, incarnation, context),
        ],
        "containers": [build_agent(key, agent, incarnation, context)],
        "volumes": build_volumes(sandbox, credentials),
        "tolerations": [*map(dict, context.defaults.tolerations), *_build_patience(sandbox.on_node_lost)],
    }
    if context.defaults.pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in context.defaults.pull_secrets]
    return spec
