"""What goes wrong with pods, containers and nodes, as a test wishes."""

from alineod.kube.objects import PODS, read_ref
from tests.unit.reconcile.kubelets import Kubelets
from tests.unit.reconcile.pod_status import build_disruption, build_evicted


class FaultyKubelets(Kubelets):
    """Kubelets to whom anything may happen."""

    def vanish(self, agent: str) -> None:
        """The pod and everything in it are gone at once, without a last word."""
        for raw, pod in list(self.find(agent)):
            self._stop(pod.uid)
            self._simulation.gateway.remove(read_ref(PODS, raw))

    def delete(self, agent: str, disruption: str = "") -> None:
        """A person deletes the pod, or with `disruption` the cluster evicts it: it has its grace."""
        for raw, _ in list(self.find(agent)):
            if disruption:
                self._write(
                    raw, {**raw["status"], "conditions": [*raw["status"]["conditions"], build_disruption(disruption)]}
                )
            self._simulation.gateway.objects.end(read_ref(PODS, raw), None)

    def force_delete(self, agent: str) -> None:
        """The object is gone and the processes live on: nobody told their kubelet."""
        for raw, _ in list(self.find(agent)):
            self._simulation.gateway.remove(read_ref(PODS, raw))

    def reap(self) -> None:
        """The kubelets hear which pods are no more, and end what runs of them."""
        there = {raw["metadata"]["uid"] for raw in self._find_pods()}
        for uid in self._simulation.sandboxes.pods.keys() - there:
            self._stop(uid)

    def evict(self, agent: str, message: str) -> None:
        """The kubelet ends the pod for the sake of its node, or for what it used; the object stays."""
        for raw, pod in list(self.find(agent)):
            if "status" not in raw:  # on no node yet
                continue
            self._stop(pod.uid)
            self._write(raw, build_evicted(raw["status"], message))

    def kill(self, agent: str, reason: str = "Error", exit_code: int = 137) -> None:
        """The agent's container ends and is started again in the same pod: OOMKilled, killed, or crashed."""
        for raw, _ in list(self.find(agent)):
            self.restart(raw, reason, exit_code)

    def hang(self, agent: str) -> None:
        """The bridge answers nobody until its kubelet restarts it."""
        for _, pod in list(self.find(agent)):
            if (sandbox := self._simulation.sandboxes.pods.get(pod.uid)) is not None and not sandbox.gone:
                sandbox.hung_since = self._simulation.clock.monotonic()
                sandbox.touch()

    def cut_node(self, node: str) -> None:
        """Nobody reaches the node; its controller says so of the pods there. What runs there runs on."""
        self.nodes[node] = False
        for raw, pod in self._on(node):
            if (sandbox := self._simulation.sandboxes.pods.get(pod.uid)) is not None:
                sandbox.cut_off = True
                sandbox.touch()
            self._set_ready(raw, ready=False, containers=True)

    def taint_node(self, node: str) -> None:
        """After five minutes the pods of a node that is not reached are deleted; nobody confirms it."""
        for raw, _ in self._on(node):
            status = raw["status"]
            self._write(
                raw, {**status, "conditions": [*status["conditions"], build_disruption("DeletionByTaintManager")]}
            )
            self._simulation.gateway.objects.end(read_ref(PODS, raw), None)

    def heal_node(self, node: str) -> None:
        """The node is back, with everything that ran there."""
        self.nodes[node] = True
        for raw, pod in self._on(node):
            self._set_ready(raw, ready=True, containers=True)
            if (sandbox := self._simulation.sandboxes.pods.get(pod.uid)) is not None:
                sandbox.cut_off = False
                sandbox.touch()

    def remove_node(self, node: str) -> None:
        """The node is gone for good, and its pods' objects after it."""
        self.nodes.pop(node, None)
        for raw, pod in self._on(node):
            self._stop(pod.uid)
            self._simulation.gateway.remove(read_ref(PODS, raw))
