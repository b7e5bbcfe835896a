"""The three containers of a sandbox pod: restore, checkpointer, agent."""

import json
from collections.abc import Mapping

from alineod.crd.agent import AgentSpec
from alineod.crd.sandbox import SandboxSpec
from alineod.domain.facts import AgentObject
from alineod.podspec import volumes as at
from alineod.podspec.context import Json, PodContext
from alineod.wire.archives import CHECKPOINTER_PORT
from alineod.wire.turns import BRIDGE_PORT

# Packing and unpacking as root keeps owners and modes of files it does not own; nothing else is allowed to it.
ROOT_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"]
OWN_RESOURCES: Mapping[str, Mapping[str, str]] = {"requests": {"cpu": "10m", "memory": "48Mi"}}


# A bridge that hangs is restarted by its kubelet in about a minute, whatever the operator can reach. It answers from
# its loop alone, during setup and a cut too; six silences of 10 s in a row are no busy node, on which one answer would
# get through. A start among hundreds on one machine may be slow: it has a minute more. Who hangs hears no SIGTERM.
LIVENESS: Json = {
    "httpGet": {"path": "/livez", "port": "bridge"},
    "initialDelaySeconds": 60,
    "periodSeconds": 10,
    "timeoutSeconds": 10,
    "failureThreshold": 6,
    "terminationGracePeriodSeconds": 5,
}


def _env(values: Mapping[str, str]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _identity(key: str, agent: AgentObject, incarnation: int) -> dict[str, str]:
    return {
        "ALINEO_AGENT": key,
        "ALINEO_ALIAS": agent.alias,
        "ALINEO_RUN": f"{key.split('/')[0]}/{agent.swarm}",
        "ALINEO_INCARNATION": str(incarnation),
        "ALINEO_CONTROL": at.CONTROL,
    }


def _sandbox_env(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> list[Json]:
    sandbox = agent.spec.sandbox
    return _env(
        _identity(key, agent, incarnation)
        | {
            "ALINEO_HOME": at.HOME_INSIDE,
            "ALINEO_WORKSPACE": at.WORKSPACE_INSIDE,
            "ALINEO_INPUTS": at.INPUTS_INSIDE,
            "ALINEO_CHECKPOINTS": at.CHECKPOINTS,
            "ALINEO_OPERATOR_URL": context.operator_url,
            "ALINEO_TOKEN_FILE": f"{at.TOKENS}/token",
            "ALINEO_KEEP": str(context.keep),
            "ALINEO_EXCLUDE": json.dumps(list(sandbox.checkpoint_exclude)),
            "ALINEO_OWNER": f"{sandbox.run_as_user}:{sandbox.run_as_group}",
            "ALINEO_DRAIN_GRACE": str(context.upload_grace),
        }
    )


def build_own_security(sandbox: SandboxSpec) -> Json:
    """Of restore and checkpointer: the agent's own user, or root with what keeps owners."""
    base: Json = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, **_build_user(sandbox)}
    add = [] if sandbox.run_as_user else ROOT_CAPABILITIES
    return base | {"capabilities": {"drop": ["ALL"], **({"add": add} if add else {})}}


def build_agent_security(sandbox: SandboxSpec) -> Json:
    """Of the agent: root in its container as shipped, `restricted` for any other user."""
    if sandbox.run_as_user:
        return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, **_build_user(sandbox)}
    return _build_user(sandbox)


def _build_user(sandbox: SandboxSpec) -> Json:
    user, group = sandbox.run_as_user, sandbox.run_as_group
    return {"runAsUser": user, "runAsGroup": group, "runAsNonRoot": user != 0}


def build_restore(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> Json:
    """The init container that fills home, workspace and inputs."""
    return {
        "name": "restore",
        "image": context.sandbox_image,
        "imagePullPolicy": context.pull_policy,
        "command": ["alineod", "restore-sandbox"],
        "env": _sandbox_env(key, agent, incarnation, context),
        "resources": dict(context.defaults.resources or OWN_RESOURCES),
        "securityContext": build_own_security(agent.spec.sandbox),
        "terminationMessagePolicy": "File",
        "volumeMounts": at.build_restore_mounts(),
    }


def build_checkpointer(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> Json:
    """The native sidecar that packs and uploads; it outlives the agent's container."""
    return {
        "name": "checkpointer",
        "image": context.sandbox_image,
        "imagePullPolicy": context.pull_policy,
        "command": ["alineod", "checkpointer"],
        "restartPolicy": "Always",
        "env": _sandbox_env(key, agent, incarnation, context),
        "ports": [{"name": "checkpointer", "containerPort": CHECKPOINTER_PORT}],
        "resources": dict(context.defaults.resources or OWN_RESOURCES),
        "securityContext": build_own_security(agent.spec.sandbox),
        "volumeMounts": at.build_checkpointer_mounts(),
    }


def build_agent(key: str, agent: AgentObject, incarnation: int, context: PodContext) -> Json:
    """The container of the bridge and, while a turn runs, of the harness."""
    spec = agent.spec
    return {
        "name": "agent",
        "image": spec.sandbox.image or context.agent_image,
        "imagePullPolicy": context.pull_policy,
        "command": ["alineod", "bridge"],
        "workingDir": at.WORKSPACE,
        "env": _env(_identity(key, agent, incarnation) | _agent_env(spec, context)),
        "ports": [{"name": "bridge", "containerPort": BRIDGE_PORT}],
        "livenessProbe": dict(LIVENESS),
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "bridge"}, "periodSeconds": 5},
        "resources": spec.sandbox.resources.model_dump(mode="json", exclude_defaults=True),
        "securityContext": build_agent_security(spec.sandbox),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": at.build_agent_mounts(spec.sandbox.home),
    }


def _agent_env(spec: AgentSpec, context: PodContext) -> dict[str, str]:
    names = [
        {"name": c.name, "secret": c.secret_key_ref.name, "key": c.secret_key_ref.key} for c in spec.harness.credentials
    ]
    model = spec.harness.model
    harness = {
        "type": str(spec.harness.type),
        "command": list(spec.harness.command),
        "model": {"provider": model.provider, "id": model.id, "baseURL": model.base_url, "api": model.api},
    }
    return {
        "HOME": spec.sandbox.home,
        "ALINEO_HOME": spec.sandbox.home,
        "ALINEO_WORKSPACE": at.WORKSPACE,
        "ALINEO_CREDENTIALS": at.CREDENTIALS,
        "ALINEO_CREDENTIAL_NAMES": json.dumps(names),
        "ALINEO_HARNESS": json.dumps(harness),
        "ALINEO_SETUP": spec.sandbox.setup,
        "ALINEO_DRAIN_GRACE": f"{spec.sandbox.drain_grace:g}",
        "ALINEO_CUT_GRACE": str(context.cut_grace),
    }
