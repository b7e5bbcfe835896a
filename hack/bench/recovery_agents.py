"""An agent with a home of some size whose pod is lost, and when each step of its way back was done.

Steps are told by the watch, by the ledger, and by who asks the bridge and the control API; all clocks are the
machine's own.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from alineod.wire.turns import BRIDGE_PORT
from hack.bench.recovery_kube import LIMIT, Json, Kube, PodWatch, Word
from hack.bench.recovery_pods import FILL, build_next, wait_answer
from hack.bench.recovery_report import Step
from hack.demo.api import ControlApi
from hack.demo.run import DemoError, wait_for
from hack.demo.target import Target
from tests.support.e2e_objects import bash, build_defaults, build_swarm, play, text

NAME = "home"
HOME_FILE = "/root/home.bin"
HOLD = 120  # s that the API is asked to hold a question
LOOK = 0.2
SAVING = 900.0  # s that a checkpoint may take


@dataclass(frozen=True)
class Stage:
    """Where agents run: the cluster, the namespace of the release in it, and the ways there."""

    target: Target
    system: str
    kube: Kube
    watch: PodWatch
    api: ControlApi
    node: str

    def read_agent(self, name: str) -> Json:
        """The Agent as the API server has it; empty until it is there."""
        where = f"--namespace={self.kube.namespace}"
        ran = self.target.kubectl(where, "get", "agent", name, "-o", "json", check=False)
        found: Json = json.loads(ran.out) if ran.code == 0 else {}
        return found

    def read_times(self, agent: str) -> Mapping[tuple[str, int], float]:
        """When the ledger had each event of the agent, by its name and incarnation; the latest of each."""
        where = f"--namespace={self.system}"
        leader = "jsonpath={.items[0].metadata.name}"
        name = self.target.kubectl(where, "get", "pods", "--selector=alineo.dev/role=leader", "-o", leader).out
        dump = ("exec", name, "--container=operator", "--", "alineod", "ledger", "dump", f"--agent={agent}")
        rows = [json.loads(line) for line in self.target.kubectl(where, *dump).out.splitlines()]
        return {(row["event"], int(row["payload"].get("incarnation") or 0)): row["time"] for row in rows}


def build_home(swarm: str, node: str, size: int) -> Json:
    """A swarm of one agent that fills its home with so many random bytes in its first turn."""
    prompt = play(bash(FILL.format(size=size, path=HOME_FILE)), text("Filled."), say="Fill your home.")
    sandbox = {"podTemplate": {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}}
    return build_swarm(swarm, [{"name": NAME, "prompt": prompt}], defaults=build_defaults(sandbox=sandbox))


def wait_saved(stage: Stage, name: str, turn: int) -> str:
    """The key of this turn's checkpoint, once the operator has seen it in the bucket."""

    def look() -> str | None:
        status = stage.read_agent(name).get("status") or {}
        checkpoint = status.get("checkpoint") or {}
        done = status.get("phase") == "Done" and checkpoint.get("turn") == turn
        return (checkpoint.get("remoteRef") or None) if done else None

    return wait_for(f"the checkpoint of turn {turn} of {name} is in the bucket", look, SAVING, LOOK)


def lose_pod(stage: Stage, name: str, size: int) -> Iterator[tuple[Step, float]]:
    """Delete the agent's pod, ask for an answer, and tell each step in seconds since the deletion."""
    key = f"{stage.kube.namespace}/{name}"
    former = stage.read_agent(name)["status"]["sandbox"]["pod"]
    uid = stage.kube.read(f"pods/{former}")["metadata"]["uid"]
    is_next = build_next({"alineo.dev/agent": name}, uid)
    with ThreadPoolExecutor(1) as pool:
        begun = time.time()
        stage.kube.delete_pod(former)
        ready = pool.submit(wait_answer, stage.watch, is_next, BRIDGE_PORT, "/healthz")
        answered = _ask(stage.api, key)
        yield Step.READY, ready.result() - begun
    yield Step.ANSWERED, answered - begun
    for step, holds in build_sights(is_next, uid).items():
        yield step, stage.watch.wait(f"{name}: {step}", holds).at - begun
    incarnation = int(former.rpartition("-")[2]) + 1
    times = stage.read_times(key)
    yield Step.RECORDED, times["agent.provisioned", incarnation] - begun
    yield Step.STARTED, times["agent.turn_started", incarnation] - begun
    check_home(stage, f"{name}-{incarnation}", size)


def _ask(api: ControlApi, key: str) -> float:
    """When the answer to a prompt was there that shows what the agent remembers."""
    turn = api.prompt(key, "And now?").body["turn"]
    end = time.monotonic() + LIMIT
    while (answer := api.result(key, turn=turn, wait=HOLD)).status == 202 and time.monotonic() < end:
        pass
    if answer.status != 200 or "Fill your home." not in str(answer.body.get("result")):
        raise DemoError(f"{key} did not come back with its memory: {answer.body}")
    return time.time()


def build_sights(is_next: Callable[[Word], bool], former: str) -> Mapping[Step, Callable[[Word], bool]]:
    """What the watch is to have said for each step."""
    return {
        Step.GONE: lambda word: word.kind == "DELETED" and word.pod["metadata"]["uid"] == former,
        Step.MADE: is_next,
        Step.SCHEDULED: lambda word: is_next(word) and bool(word.pod["spec"].get("nodeName")),
        Step.RESTORING: lambda word: is_next(word) and _has_begun(word.pod, "restore"),
        Step.RESTORED: lambda word: is_next(word) and "terminated" in _read_state(word.pod, "restore"),
        Step.RUNS: lambda word: is_next(word) and "running" in _read_state(word.pod, "agent"),
    }


def _has_begun(pod: Json, container: str) -> bool:
    return not {"running", "terminated"}.isdisjoint(_read_state(pod, container))


def _read_state(pod: Json, container: str) -> Json:
    status = pod.get("status") or {}
    ones = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    state: Json = next((one["state"] for one in ones if one["name"] == container), {})
    return state


def check_home(stage: Stage, pod: str, size: int) -> None:
    """The home is back to the byte."""
    command = ("exec", pod, "--container=agent", "--", "stat", "--format=%s", HOME_FILE)
    found = stage.target.kubectl(f"--namespace={stage.kube.namespace}", *command).out.strip()
    if found != str(size):
        raise DemoError(f"{pod} came back with {found} bytes in its home and not {size}")
