"""Measures the skeleton on a real cluster: by the clocks of the ledger, of the API server's watch, and of the kubelet.

Everything runs on one node, so that a bare pod and a sandbox start under the same conditions.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hack.demo.api import ControlApi
from hack.demo.forward import Forward
from hack.demo.install import MODEL_KEY, PARTS, RELEASE, SYSTEM, Images, apply_namespace, apply_secret, find_leader
from hack.demo.run import DemoError
from hack.demo.target import Target

NAMESPACE = "alineod-bench"
LIMIT = 120.0  # s anything here may take
LOOK = 0.1  # s between looks
Json = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """A cluster with a release in it."""

    target: Target
    images: Images

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return self.target.kubectl(f"--namespace={NAMESPACE}", *words, stdin=stdin).out

    def apply(self, *objects: Json) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def read(self, kind: str, name: str) -> Json:
        found: Json = json.loads(self.kubectl("get", kind, name, "-o", "json"))
        return found

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not holds():
            if time.monotonic() > end:
                raise DemoError(f"it did not come about that {what}")
            time.sleep(LOOK)


def measure_starts(bench: Bench, rounds: int) -> Mapping[str, list[float]]:
    """Seconds of every start, by what was started."""
    apply_namespace(bench.target, NAMESPACE)
    apply_secret(bench.target, NAMESPACE, "model", {"api-key": MODEL_KEY})
    node = choose_node(bench)
    figures: dict[str, list[float]] = {}
    with Forward(bench.target, SYSTEM, f"service/{RELEASE}", 8080) as forward:
        api = ControlApi(forward, make_token(bench))
        for number in range(rounds):
            for name, seconds in _measure_round(bench, api, node, number):
                figures.setdefault(name, []).append(seconds)
    return figures


def choose_node(bench: Bench) -> str:
    names = bench.target.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").out.split()
    return min(names)


def make_token(bench: Bench) -> str:
    where = f"--namespace={NAMESPACE}"
    bench.target.kubectl(where, "create", "serviceaccount", "bench", check=False)
    binding = ("create", "rolebinding", "bench", "--clusterrole=edit", f"--serviceaccount={NAMESPACE}:bench")
    bench.target.kubectl(where, *binding, check=False)
    return bench.kubectl("create", "token", "bench").strip()


def _measure_round(bench: Bench, api: ControlApi, node: str, number: int) -> Iterator[tuple[str, float]]:
    yield "bare pod: created -> container runs", _start_bare(bench, node, f"bare-{number}")
    swarm = f"b{number}"
    agent = f"{NAMESPACE}/{swarm}-one"
    bench.apply(_build_swarm(swarm, node))
    bench.until(f"{agent} is done", lambda: _is_saved(bench, f"{swarm}-one"))
    pod = bench.read("agent", f"{swarm}-one")["status"]["sandbox"]["pod"]
    yield "sandbox: created -> container runs", _read_started(bench, pod, "agent")
    times = {row["event"]: row["time"] for row in _read_ledger(bench, agent)}  # the latest of each
    made, spawned = times["agent.provisioned"], times["agent.spawned"]
    yield "sandbox: created -> bridge takes the first turn", times["agent.turn_started"] - made
    yield "spawned -> first turn starts", times["agent.turn_started"] - spawned
    yield "spawned -> first turn has ended", times["agent.turn_ended"] - spawned
    yield "turn ended -> checkpoint recorded in the bucket", times["agent.checkpointed"] - times["agent.turn_ended"]
    yield "pod deleted -> the same agent has answered a prompt", _restore(bench, api, agent, pod)


def _start_bare(bench: Bench, node: str, name: str) -> float:
    """A pod of the agent's image that only sleeps."""
    container = {"name": "agent", "image": bench.images.refs["agent-pi"], "command": ["sleep", "600"]}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    watch = _watch_pod(bench, name)
    bench.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    created = time.monotonic()
    try:
        for line in watch.stdout or ():
            if line.strip() == "true":
                return time.monotonic() - created
    finally:
        watch.kill()
        watch.communicate()
        bench.kubectl("delete", "pod", name, "--wait=false")
    raise DemoError(f"the pod {name} did not start")


def _watch_pod(bench: Bench, name: str) -> "subprocess.Popen[str]":
    """A line whenever the pod changes: whether its container has started."""
    command = ["get", "pods", f"--field-selector=metadata.name={name}", "--watch"]
    path = "jsonpath={.status.containerStatuses[0].started}{'\\n'}"
    words = [*bench.target.build_kubectl(), f"--namespace={NAMESPACE}", *command, "-o", path]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _build_swarm(name: str, node: str) -> Json:
    model = {"provider": "openai", "id": "scripted-1", "baseURL": f"http://scripted-model.{PARTS}.svc:8080/v1"}
    key = {"name": "OPENAI_API_KEY", "secretKeyRef": {"name": "model", "key": "api-key"}}
    agent = {
        "name": "one",
        "prompt": "Speak.",
        "checkpoint": True,
        "harness": {"type": "Pi", "model": model, "credentials": [key]},
        "sandbox": {"podTemplate": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}},
    }
    return {
        "apiVersion": "alineo.dev/v1alpha1", "kind": "Swarm", "metadata": {"name": name}, "spec": {"agents": [agent]},
    }  # fmt: skip


def _is_saved(bench: Bench, name: str) -> bool:
    """Whether it is done and its checkpoint is in the bucket. An Agent that is not there yet is not."""
    ran = bench.target.kubectl(f"--namespace={NAMESPACE}", "get", "agent", name, "-o", "json", check=False)
    status = (json.loads(ran.out).get("status") or {}) if ran.code == 0 else {}
    return status.get("phase") == "Done" and bool((status.get("checkpoint") or {}).get("remoteRef"))


def _read_started(bench: Bench, pod: str, container: str) -> float:
    """From the creation of the pod to the start of the container; the API server's clock has whole seconds."""
    found = bench.read("pod", pod)
    states = {c["name"]: c["state"] for c in found["status"]["containerStatuses"]}
    started = datetime.fromisoformat(states[container]["running"]["startedAt"])
    return (started - datetime.fromisoformat(found["metadata"]["creationTimestamp"])).total_seconds()


def _read_ledger(bench: Bench, agent: str) -> list[Json]:
    leader = find_leader(bench.target)
    command = ("exec", leader, "--container=operator", "--", "alineod", "ledger", "dump", f"--agent={agent}")
    return [json.loads(line) for line in bench.target.kubectl(f"--namespace={SYSTEM}", *command).out.splitlines()]


def _restore(bench: Bench, api: ControlApi, agent: str, pod: str) -> float:
    """The pod goes at once; the prompt is given right after."""
    begun = time.monotonic()
    bench.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")
    turn = api.prompt(agent, "And now?").body["turn"]
    answer = api.result(agent, turn=turn, wait=120)
    if answer.status != 200 or answer.body["result"] != "SEEN 2: Speak. | And now?":
        raise DemoError(f"{agent} did not come back with its memory: {answer.body}")
    return time.monotonic() - begun
