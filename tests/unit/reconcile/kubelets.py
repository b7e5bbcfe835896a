"""What a cluster does to pods: its scheduler, its kubelets, its node controller.

They start pods, restart containers, confirm deletions, and know which node is there. They ask the operator what a
restore container and a checkpointer ask it. It must not know what the operator decides.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from alineod.domain.facts import PodFacts
from alineod.errors import AlineoError, Unavailable
from alineod.kube.objects import PODS, Json, read_label, read_ref
from alineod.podspec.observe import parse_pod
from alineod.reconcile.archives import SandboxPod, find_by_pod, record_checkpoint
from alineod.reconcile.starts import answer_start
from alineod.wire.archives import RestoreReport, Source, SourceKind, StartOrder, StartRequest, Tried
from alineod.wire.base import encode
from tests.unit.reconcile.pod_status import build_crashing, build_ready, build_running
from tests.unit.reconcile.sandboxes import Sandbox, Upload

if TYPE_CHECKING:
    from tests.unit.reconcile.simulation import Simulation

UNREADY = 20.0  # s after which a kubelet finds a bridge not ready that hangs
LIVENESS = 90.0  # s after which it restarts the container
AGAIN = 1.0  # s after which a sandbox asks the operator again that could not help it
CRASH_PAUSE = 60.0  # s between two tries of a container that ends as soon as it begins


class Kubelets:
    """The nodes of the simulated cluster, by name: whether each is reached.

    `checkpointers`: whether what was cut is brought to the bucket; else a test does that itself. While they are `slow`
    nothing that is being unpacked comes to its end. `broken` are agents whose containers end as soon as they begin.
    `paced`: who asked the operator in vain waits a second, and does not ask in each round.
    """

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self.nodes = {"n1": True, "n2": True}
        self.checkpointers = self.slow = self.paced = False
        self.broken: set[str] = set()
        self.waiting: dict[str, str] = {}  # what restore containers wait for, by pod UID
        self.unpacking: dict[str, RestoreReport] = {}  # what they will have done, by pod UID
        self._known: dict[str, tuple[str, PodFacts]] = {}  # version and what it says, by UID
        self._again: dict[str, float] = {}  # when who asked in vain asks again

    async def run(self) -> None:
        """What every node does in one round."""
        for raw in self._find_pods():
            pod = self._parse(raw)
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
        hung = (self._find_patience(self._parse(raw)) for raw in self._find_pods())
        asking = self._again.values() if self._simulation.helps else ()
        return min((due for due in (*hung, *asking) if due is not None), default=None)

    def _may_ask(self, who: str) -> bool:
        """Whether it is time; it counts as having asked in vain until it says otherwise."""
        now = self._simulation.clock.monotonic()
        if self._again.get(who, now) > now:
            return False
        if self.paced:
            self._again[who] = now + AGAIN
        return True

    def _find_patience(self, pod: PodFacts) -> float | None:
        sandbox = self._simulation.sandboxes.pods.get(pod.uid)
        if sandbox is None or pod.deleting or not self.nodes.get(pod.node):
            return None
        if sandbox.crashed_at is not None:
            return sandbox.crashed_at + CRASH_PAUSE
        return None if sandbox.hung_since is None else sandbox.hung_since + (UNREADY if sandbox.ready else LIVENESS)

    def _parse(self, raw: Json) -> PodFacts:
        """As `parse_pod`, once per version: a kubelet looks far more often than its pods change."""
        metadata = raw["metadata"]
        version, pod = self._known.get(metadata["uid"], ("", None))
        if pod is None or version != metadata["resourceVersion"]:
            pod = parse_pod(raw)
            self._known[metadata["uid"]] = (metadata["resourceVersion"], pod)
        return pod

    def _find_pods(self) -> list[Json]:
        return self._simulation.gateway.objects.find(PODS)

    def find(self, agent: str) -> Iterator[tuple[Json, PodFacts]]:
        """The pods of an agent, by the name of its object."""
        for raw in self._find_pods():
            if read_label(raw, "alineo.dev/agent") == agent:
                yield raw, self._parse(raw)

    def find_running(self) -> list[PodFacts]:
        """The pods in which a turn runs."""
        sandboxes = self._simulation.sandboxes.pods
        pods = [self._parse(raw) for raw in self._find_pods()]
        return [
            pod for pod in pods if pod.uid in sandboxes and sandboxes[pod.uid].running and not sandboxes[pod.uid].gone
        ]

    async def _keep(self, raw: Json, pod: PodFacts) -> None:
        sandbox = self._simulation.sandboxes.pods.get(pod.uid)
        if sandbox is None:
            await self._start(raw, pod)
        elif sandbox.crashed_at is not None:
            self._watch_crashed(raw, sandbox)
        elif sandbox.hung_since is not None:
            self._watch_hung(raw, sandbox, self._simulation.clock.monotonic() - sandbox.hung_since)

    def _watch_hung(self, raw: Json, sandbox: Sandbox, seconds: float) -> None:
        if seconds >= LIVENESS:
            self.restart(raw, "Error", 137)
        elif seconds >= UNREADY and sandbox.ready:
            sandbox.ready = False
            self._set_ready(raw, ready=False, containers=False)

    def _watch_crashed(self, raw: Json, sandbox: Sandbox) -> None:
        """It is tried again after a while, and comes up once nothing is broken any more."""
        now = self._simulation.clock.monotonic()
        if sandbox.crashed_at is None or now < sandbox.crashed_at + CRASH_PAUSE:
            return
        (agent,) = raw["status"]["containerStatuses"]
        again = {**agent, "restartCount": agent["restartCount"] + 1}
        if read_label(raw, "alineo.dev/agent") in self.broken:
            sandbox.crashed_at = now
        else:
            sandbox.crashed_at = None
            again |= {"ready": True, "state": {"running": {}}}
        self._write(raw, {**raw["status"], "containerStatuses": [again]})

    async def _start(self, raw: Json, pod: PodFacts) -> None:
        """The restore container asks the operator until it can start; then the bridge comes up."""
        if "nodeName" not in raw["spec"]:
            raw = self._bind(raw)
        report = await self._restore(pod) if self._may_ask(pod.uid) else None
        if report is None:
            return
        self._again.pop(pod.uid, None)
        sandbox = self._simulation.sandboxes.pods[pod.uid] = Sandbox()
        status = build_running(pod, encode(report).decode(), self._simulation.clock.now().isoformat())
        if read_label(raw, "alineo.dev/agent") in self.broken:
            sandbox.crashed_at, status = self._simulation.clock.monotonic(), build_crashing(status)
        self._write(raw, status)

    def _bind(self, raw: Json) -> Json:
        ref = read_ref(PODS, raw)
        node = min(
            (name for name, up in self.nodes.items() if up), key=lambda name: (len(self._on(name)), name), default=""
        )
        if not node:
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
        if self._may_ask(pod_uid):
            sandbox.uploads = [upload for upload in sandbox.uploads if not await self._report(pod_uid, upload)]
            if not sandbox.uploads:
                self._again.pop(pod_uid, None)

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
        self._again.pop(uid, None)
        sandbox = self._simulation.sandboxes.pods.get(uid)
        if sandbox is not None:
            sandbox.gone = True
            sandbox.touch()

    def _write(self, raw: Json, status: Json) -> None:
        self._simulation.gateway.write_status(read_ref(PODS, raw), status)

    def restart(self, raw: Json, reason: str, exit_code: int) -> None:
        """A new bridge over the same volumes: what the former one left running was cut off."""
        sandbox = self._simulation.sandboxes.pods.get(raw["metadata"]["uid"])
        if sandbox is None or sandbox.gone:
            return
        sandbox.hung_since, sandbox.draining, sandbox.ready, sandbox.boot = None, False, True, sandbox.boot + 1
        sandbox.interrupt("the container of the agent ended in the middle of the turn")
        sandbox.touch()
        (agent,) = raw["status"]["containerStatuses"]
        last = {"terminated": {"exitCode": exit_code, "reason": reason}}
        again = {**agent, "restartCount": agent["restartCount"] + 1, "lastState": last}
        self._write(raw, {**raw["status"], "containerStatuses": [again]})
        self._set_ready(raw, ready=True, containers=True)

    def _set_ready(self, raw: Json, *, ready: bool, containers: bool) -> None:
        """Set the two conditions; a kubelet gives its reason, the controller of nodes has none."""
        raw = self._simulation.gateway.objects.read(read_ref(PODS, raw))
        others = [
            c for c in raw.get("status", {}).get("conditions", ()) if c["type"] not in ("Ready", "ContainersReady")
        ]
        if "conditions" in raw.get("status", {}):
            since = self._simulation.clock.now().isoformat()
            said = build_ready(since, ready=ready, containers=containers)
            self._write(raw, {**raw["status"], "conditions": [*said, *others]})

    def _on(self, node: str) -> list[tuple[Json, PodFacts]]:
        pods = [(raw, self._parse(raw)) for raw in self._find_pods()]
        return [(raw, pod) for raw, pod in pods if pod.node == node]
