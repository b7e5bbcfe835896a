"""Where things lie in the bucket. Pure; one place for every key, so that nobody builds one by hand.

    <base>/checkpoints/<namespace>/<agent>/<turn>-<incarnation>.tar.zst
    <base>/forks/<namespace>/<child>/<fork id>.tar.zst

`base` is `<prefix>/<instance>`, or the instance alone where there is no prefix. `<base>/ledger/` is the ledger's own.
"""

import re
from dataclasses import dataclass

_CHECKPOINT = re.compile(r"(?:.*/)?(\d{6,})-(\d+)\.tar\.zst")


@dataclass(frozen=True, slots=True, order=True)
class CheckpointName:
    """Which checkpoint a file or an object is; a later one is greater."""

    turn: int
    incarnation: int


def build_base(prefix: str, instance: str) -> str:
    return "/".join(part for part in (prefix.strip("/"), instance) if part)


def build_file_name(turn: int, incarnation: int) -> str:
    """The name of a checkpoint's archive, in a pod's volume and at the end of its object's key."""
    return f"{turn:06d}-{incarnation}.tar.zst"


def build_checkpoint_prefix(base: str, namespace: str, agent: str) -> str:
    """What the keys of an agent's checkpoints begin with."""
    return f"{base}/checkpoints/{namespace}/{agent}/"


def build_checkpoint_key(base: str, namespace: str, agent: str, turn: int, incarnation: int) -> str:
    return build_checkpoint_prefix(base, namespace, agent) + build_file_name(turn, incarnation)


def build_fork_prefix(base: str, namespace: str, child: str) -> str:
    """What the keys of the copies made for a child begin with."""
    return f"{base}/forks/{namespace}/{child}/"


def build_fork_key(base: str, namespace: str, child: str, fork_id: str) -> str:
    return build_fork_prefix(base, namespace, child) + f"{fork_id}.tar.zst"


def build_probe_key(base: str, nonce: str) -> str:
    return f"{base}/probe/{nonce}"


def parse_checkpoint_name(name: str) -> CheckpointName | None:
    """Which checkpoint a file name or an object key is of; None for anything else."""
    match = _CHECKPOINT.fullmatch(name)
    return CheckpointName(int(match[1]), int(match[2])) if match else None
