"""Everything a cluster does to pods: its scheduler, its kubelets, its node controller; and what a person does.

They start pods, restart containers, confirm deletions, and know which node is there. They ask the operator what a
restore container and a checkpointer ask it. It must not know what the operator decides.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from alineod.domain.facts import PodFacts
from alineod.errors import AlineoError, Unavailable
from alineod.kube.objects import PODS, Json, read_ref
from alineod.podspec.observe import parse_pod
from alineod.reconcile.archives import SandboxPod, find_by_pod, record_checkpoint
from alineod.reconcile.starts import answer_start
from alineod.wire.archives import RestoreReport, Source, SourceKind, StartOrder, StartRequest, Tried
from alineod.wire.base import encode
from tests.unit.reconcile.sandboxes import Sandbox, Upload

if TYPE_CHECKING:
    from tests.unit.reconcile.simulation import Simulation

LIVENESS = 90.0  # s after which a kubelet restarts a container whose bridge hangs


class Kubelets:
    """The nodes of the simulated cluster, by name: whether each is reached.

    `checkpointers`: whether what was cut is brought to the bucket; else a test does that itself. While they are `slow`
    nothing that is being unpacked comes to its end.
    """

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self.nodes = {"n1": True, "n2": True}
        self.checkpointers = self.slow = False
        self.waiting: dict[str, str] = {}  # what restore containers wait for, by pod UID
        self.unpacking: dict[str, RestoreReport] = {}  # what they will have done, by pod UID

    async def run(self) -> None:
        """What every node does in one round."""
        for raw in self._find_pods():
            pod = parse_pod(raw)
            if pod.node and not self.nodes.get(pod.node, False):
                continue
            if pod.deleting:
                self._end(raw, pod)
            elif not pod.over:
                await self._keep(raw, pod)
        for pod_uid, sandbox in self._simulation.sandboxes.pods.items():
            if self.checkpointers and sandbox.uploads and not sandbox.gone and not sandbox.cut_off:
                await self._upload(pod_uid, sandbox)

    def find_next(self) -> float | None:
        """When a kubelet does something by itself."""
        hung = (s.hung_since for s in self._simulation.sandboxes.pods.values() if not s.gone and not s.cut_off)
        return min((since + LIVENESS for since in hung if since is not None), default=None)

    def _find_pods(self) -> list[Json]:
        return self._simulation.gateway.objects.find(PODS)

    def find(self, agent: str) -> Iterator[tuple[Json, PodFacts]]:
        """The pods of an agent, by the name of its object."""
        for raw in self._find_pods():
            if raw["metadata"].get("labels", {}).get("alineo.dev/agent") == agent:
                yield raw, parse_pod(raw)

    async def _keep(self, raw: Json, pod: PodFacts) -> None:
        sandbox = self._simulation.sandboxes.pods.get(pod.uid)
        if sandbox is None:
            await self._start(raw, pod)
        elif sandbox.hung_since is not None and self._simulation.clock.monotonic() >= sandbox.hung_since + LIVENESS:
            self.restart(raw, "Error", 137)

    async def _start(self, raw: Json, pod: PodFacts) -> None:
        """The restore container asks the operator until it can start; then the bridge comes up."""
        if "nodeName" not in raw["spec"]:
            raw = self._bind(raw)
        report = await self._restore(pod)
        if report is not None:
            self._simulation.sandboxes.pods[pod.uid] = Sandbox()
            self._write(raw, build_running(pod, encode(report).decode(), self._simulation.clock.now().isoformat()))

    def _bind(self, raw: Json) -> Json:
        ref = read_ref(PODS, raw)
        node = next((name for name, up in sorted(self.nodes.items()) if up), None)
        if node is None:
            return raw
        return self._simulation.gateway.objects.replace(ref, {**raw, "spec": {**raw["spec"], "nodeName": node}})

    async def _restore(self, pod: PodFacts) -> RestoreReport | None:
        if pod.uid in self.unpacking:
            return None if self.slow else self.unpacking.pop(pod.uid)
        order = await self._ask_start(pod, self._build_request(pod, resting=False))
        if order is None:
            return None
        report = self._fill(order.sources)
        if report is None:
            self.waiting[pod.uid] = "the bucket does not answer"
            await self._ask_start(pod, self._build_request(pod, resting=True))
        if report is None or not self.slow:
            return report
        self.unpacking[pod.uid] = report
        return None

    def _build_request(self, pod: PodFacts, *, resting: bool) -> StartRequest:
        waiting_for = self.waiting.get(pod.uid, "")
        return StartRequest(incarnation=pod.incarnation, waiting_for=waiting_for, resting=resting)

    async def _ask_start(self, pod: PodFacts, request: StartRequest) -> StartOrder | None:
        door = self._simulation.door
        try:
            return await answer_start(door, find_by_pod(door, SandboxPod(pod.uid)), request)
        except (AlineoError, self._simulation.died):
            return None

    def _fill(self, sources: list[Source]) -> RestoreReport | None:
        """The first archive that can be read; None while one is out of reach."""
        tried: list[Tried] = []
        for source in sources:
            if source.kind is SourceKind.FORK:
                return RestoreReport(start="fork", tried=tried)
            try:
                body = self._simulation.read_archive(source.get.key)
            except Unavailable:
                return None
            if body is not None and hashlib.sha256(body).hexdigest() == source.sha256:
                return RestoreReport(start="checkpoint", turn=source.turn, where="remote", tried=tried)
            tried.append(Tried(turn=source.turn, where="remote", error="damaged" if body else "not there"))
        return RestoreReport(start="blank" if tried else "fresh", tried=tried)

    async def _upload(self, pod_uid: str, sandbox: Sandbox) -> None:
        """The checkpointer brings what it cut to the bucket, and says so until the operator took note."""
        left = []
        for upload in sandbox.uploads:
            if not await self._report(pod_uid, upload):
                left.append(upload)
        sandbox.uploads = left

    async def _report(self, pod_uid: str, upload: Upload) -> bool:
        key, error = self._simulation.write_archive(upload)
        if error and error == upload.said:
            return False
        report = msgspec.structs.replace(upload.report, key=key, upload_error=error)
        door = self._simulation.door
        try:
            taken = await record_checkpoint(door, find_by_pod(door, SandboxPod(pod_uid)), report)
        except (AlineoError, self._simulation.died):
            return False
        upload.said = error
        return taken.done

    def _end(self, raw: Json, pod: PodFacts) -> None:
        """A pod that is being deleted: its bridge says a last word, then it is gone."""
        sandbox = self._simulation.sandboxes.pods.get(pod.uid)
        if sandbox is not None and sandbox.answers and not sandbox.draining and not pod.over:
            sandbox.draining = True
            sandbox.interrupt("the sandbox was shut down in the middle of the turn")
            return
        self._stop(pod.uid)
        self._simulation.gateway.remove(read_ref(PODS, raw))

    def _stop(self, uid: str) -> None:
        self.unpacking.pop(uid, None)
        sandbox = self._simulation.sandboxes.pods.get(uid)
        if sandbox is not None:
            sandbox.gone = True
            sandbox.touch()

    def _write(self, raw: Json, status: Json) -> None:
        self._simulation.gateway.write_status(read_ref(PODS, raw), status)

    # What goes wrong.

    def vanish(self, agent: str) -> None:
        """The pod and everything in it are gone at once, without a last word."""
        for raw, pod in list(self.find(agent)):
            self._stop(pod.uid)
            self._simulation.gateway.remove(read_ref(PODS, raw))

    def delete(self, agent: str, disruption: str = "") -> None:
        """A person deletes the pod, or with `disruption` the cluster evicts it: it has its grace."""
        for raw, _ in list(self.find(agent)):
            if disruption:
                self._write(raw, {**raw["status"], "conditions": [*raw["status"]["conditions"], _disrupt(disruption)]})
            self._simulation.gateway.objects.end(read_ref(PODS, raw), None)

    def force_delete(self, agent: str) -> None:
        """The object is gone and the processes live on: nobody told their kubelet."""
        for raw, _ in list(self.find(agent)):
            self._simulation.gateway.remove(read_ref(PODS, raw))

    def evict(self, agent: str, message: str) -> None:
        """The kubelet ends the pod for the sake of its node, or for what it used; the object stays."""
        for raw, pod in list(self.find(agent)):
            self._stop(pod.uid)
            ended = {"terminated": {"exitCode": 137, "reason": "Error"}}
            containers = [{**c, "ready": False, "state": ended} for c in raw["status"].get("containerStatuses", ())]
            conditions = [*raw["status"].get("conditions", ()), _disrupt("TerminationByKubelet", message)]
            failed = {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": conditions}
            self._write(raw, {**raw["status"], **failed, "containerStatuses": containers})

    def kill(self, agent: str, reason: str = "Error", exit_code: int = 137) -> None:
        """The agent's container ends and is started again in the same pod: OOMKilled, killed, or crashed."""
        for raw, _ in list(self.find(agent)):
            self.restart(raw, reason, exit_code)

    def restart(self, raw: Json, reason: str, exit_code: int) -> None:
        """A new bridge over the same volumes: what the former one left running was cut off."""
        sandbox = self._simulation.sandboxes.pods.get(raw["metadata"]["uid"])
        if sandbox is None or sandbox.gone:
            return
        sandbox.hung_since, sandbox.draining, sandbox.boot = None, False, sandbox.boot + 1
        sandbox.interrupt("the container of the agent ended in the middle of the turn")
        sandbox.touch()
        (agent,) = raw["status"]["containerStatuses"]
        last = {"terminated": {"exitCode": exit_code, "reason": reason}}
        again = {**agent, "restartCount": agent["restartCount"] + 1, "lastState": last}
        self._write(raw, {**raw["status"], "containerStatuses": [again]})

    def hang(self, agent: str) -> None:
        """The bridge answers nobody until its kubelet restarts it."""
        for _, pod in list(self.find(agent)):
            sandbox = self._simulation.sandboxes.pods[pod.uid]
            sandbox.hung_since = self._simulation.clock.monotonic()
            sandbox.touch()

    def cut_node(self, node: str) -> None:
        """Nobody reaches the node; its controller says so of the pods there. What runs there runs on."""
        self.nodes[node] = False
        for raw, pod in self._on(node):
            if (sandbox := self._simulation.sandboxes.pods.get(pod.uid)) is not None:
                sandbox.cut_off = True
                sandbox.touch()
            self._set_ready(raw, "False")

    def taint_node(self, node: str) -> None:
        """After five minutes the pods of a node that is not reached are deleted; nobody confirms it."""
        for raw, _ in self._on(node):
            status = raw["status"]
            self._write(raw, {**status, "conditions": [*status["conditions"], _disrupt("DeletionByTaintManager")]})
            self._simulation.gateway.objects.end(read_ref(PODS, raw), None)

    def heal_node(self, node: str) -> None:
        """The node is back, with everything that ran there."""
        self.nodes[node] = True
        for raw, pod in self._on(node):
            self._set_ready(raw, "True")
            if (sandbox := self._simulation.sandboxes.pods.get(pod.uid)) is not None:
                sandbox.cut_off = False
                sandbox.touch()

    def remove_node(self, node: str) -> None:
        """The node is gone for good, and its pods' objects after it."""
        self.nodes.pop(node, None)
        for raw, pod in self._on(node):
            self._stop(pod.uid)
            self._simulation.gateway.remove(read_ref(PODS, raw))

    def _on(self, node: str) -> list[tuple[Json, PodFacts]]:
        pods = [(raw, parse_pod(raw)) for raw in self._find_pods()]
        return [(raw, pod) for raw, pod in pods if pod.node == node]

    def _set_ready(self, raw: Json, status: str) -> None:
        if "conditions" not in raw.get("status", {}):
            return
        time = self._simulation.clock.now().isoformat()
        ready = {"type": "Ready", "status": status, "lastTransitionTime": time}
        others = [condition for condition in raw["status"]["conditions"] if condition["type"] != "Ready"]
        self._write(raw, {**raw["status"], "conditions": [ready, *others]})


def build_running(pod: PodFacts, restored: str, since: str = "2026-01-01T00:00:00Z") -> Json:
    """The status of a pod whose containers run."""
    return {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": since} for kind in ("Ready", "ContainersReady")
        ],
        "initContainerStatuses": [
            {"name": "restore", "state": {"terminated": {"exitCode": 0, "message": restored}}},
        ],
        "containerStatuses": [
            {"name": "agent", "ready": True, "restartCount": 0, "state": {"running": {}}},
        ],
    }


def _disrupt(reason: str, message: str = "") -> dict[str, Any]:
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
