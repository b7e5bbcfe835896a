"""The volumes of a sandbox pod, and where each container sees them."""

from alineod.crd.harness import CredentialRef
from alineod.crd.sandbox import SandboxSpec, StorageSpec, VolumeSpec
from alineod.podspec.context import Json
from alineod.wire.archives import AUDIENCE

CONTROL = "/run/alineo"
CREDENTIALS = "/run/alineo-credentials"
TOKENS = "/run/alineo-token"
CHECKPOINTS = "/checkpoints"
HOME_INSIDE = "/sandbox/home"
WORKSPACE_INSIDE = "/sandbox/workspace"
INPUTS_INSIDE = "/sandbox/inputs"
WORKSPACE = "/workspace"
TOKEN_SECONDS = 3600
SMALL = "64Mi"
INPUTS_LIMIT = "256Mi"


def build_volumes(sandbox: SandboxSpec, credentials: tuple[CredentialRef, ...]) -> list[Json]:
    """All volumes of the pod."""
    storage: StorageSpec = sandbox.storage
    return [
        _build_storage("home", storage.home),
        _build_storage("workspace", storage.workspace),
        _build_empty("checkpoints", storage.checkpoints.size_limit),
        _build_empty("inputs", INPUTS_LIMIT),
        _build_empty("control", storage.workspace.size_limit),
        _build_empty("tmp", SMALL),
        {"name": "token", "projected": {"defaultMode": 0o440, "sources": [_build_token()]}},
        {"name": "credentials", "projected": {"defaultMode": 0o444, "sources": _build_credentials(credentials)}},
    ]


def _build_empty(name: str, limit: str) -> Json:
    return {"name": name, "emptyDir": {"sizeLimit": limit}}


def _build_storage(name: str, volume: VolumeSpec) -> Json:
    if not volume.storage_class_name:
        return _build_empty(name, volume.size_limit)
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": volume.storage_class_name,
        "resources": {"requests": {"storage": volume.size_limit}},
    }
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def _build_token() -> Json:
    return {"serviceAccountToken": {"path": "token", "audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS}}


def _build_credentials(credentials: tuple[CredentialRef, ...]) -> list[Json]:
    """Optional, so that the pod starts without them and the bridge can say by name which one is missing."""
    return [
        {
            "secret": {
                "name": credential.secret_key_ref.name,
                "items": [{"key": credential.secret_key_ref.key, "path": credential.name}],
                "optional": True,
            }
        }
        for credential in credentials
    ]


def _mount(name: str, path: str, **more: str | bool) -> Json:
    return {"name": name, "mountPath": path, **more}


def build_agent_mounts(home: str) -> list[Json]:
    """What the agent sees; never the checkpoints, never the token."""
    return [
        _mount("home", home),
        _mount("workspace", WORKSPACE),
        _mount("inputs", "/inputs", subPath="files", readOnly=True),
        _mount("inputs", "/inputs.json", subPath="inputs.json", readOnly=True),
        _mount("control", CONTROL),
        _mount("credentials", CREDENTIALS, readOnly=True),
    ]


def build_restore_mounts() -> list[Json]:
    """Everything it fills, and the token it asks with."""
    return [
        _mount("home", HOME_INSIDE),
        _mount("workspace", WORKSPACE_INSIDE),
        _mount("checkpoints", CHECKPOINTS),
        _mount("inputs", INPUTS_INSIDE),
        _mount("control", CONTROL),
        _mount("token", TOKENS, readOnly=True),
        _mount("tmp", "/tmp"),  # noqa: S108
    ]


def build_checkpointer_mounts() -> list[Json]:
    """What it packs, where it keeps archives, and the token it asks with."""
    return [
        _mount("home", HOME_INSIDE),
        _mount("workspace", WORKSPACE_INSIDE),
        _mount("checkpoints", CHECKPOINTS),
        _mount("control", CONTROL, readOnly=True),
        _mount("token", TOKENS, readOnly=True),
        _mount("tmp", "/tmp"),  # noqa: S108
    ]
