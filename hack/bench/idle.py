"""What an idle release costs, by the accounts that the kubelets keep of their containers."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hack.bench.table import Cost
from hack.demo.install import SYSTEM, find_leader
from hack.demo.target import Target

SETTLE = 10.0  # s until what belongs to the last turn is over
Json = dict[str, Any]


def measure_idle(target: Target, namespace: str, seconds: float) -> Mapping[str, list[Cost]]:
    """What the containers of the idle sandboxes and of the operator cost, by the kubelets' own accounts."""
    time.sleep(SETTLE)
    before = _read_accounts(target, namespace)
    time.sleep(seconds)
    costs: dict[str, list[Cost]] = {}
    for key, after in _read_accounts(target, namespace).items():
        if key in before and after.time > before[key].time:
            cores = (after.cpu - before[key].cpu) / (after.time - before[key].time)
            costs.setdefault(key[1], []).append(Cost(after.rss, after.working_set, cores * 1000))
    return costs


@dataclass(frozen=True)
class Account:
    """What a kubelet knows of a container: seconds of CPU since its start, bytes, and when (Unix seconds)."""

    cpu: float
    rss: int
    working_set: int
    time: float


NAMES = {"agent": "bridge", "checkpointer": "checkpointer", "operator": "operator", "litestream": "litestream"}


def _read_accounts(target: Target, namespace: str) -> dict[tuple[str, str], Account]:
    """By pod and container."""
    nodes = target.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").out.split()
    leader = find_leader(target)
    accounts = {}
    for node in nodes:
        summary = json.loads(target.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary").out)
        for pod in summary["pods"]:
            where, name = pod["podRef"]["namespace"], pod["podRef"]["name"]
            for one in pod.get("containers") or ():
                if where in (namespace, SYSTEM) and one["name"] in NAMES:
                    standby = where == SYSTEM and name != leader
                    title = f"{NAMES[one['name']]}{' of a standby' if standby else ''}"
                    accounts[(name, title)] = _parse_account(one)
    return accounts


def _parse_account(one: Json) -> Account:
    cpu, memory = one.get("cpu") or {}, one.get("memory") or {}
    when = datetime.fromisoformat(cpu["time"]).timestamp() if cpu.get("time") else 0.0
    return Account(
        cpu.get("usageCoreNanoSeconds", 0) / 1e9, memory.get("rssBytes", 0), memory.get("workingSetBytes", 0), when
    )
