"""The cluster as the end-to-end tests touch it: objects by pykube, what a person would type by kubectl.

A wait that ends in vain says what was expected, what was last seen, and what the cluster and the operator said.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pykube
from pykube.objects import APIObject, Event, Namespace, Pod

from hack.demo.install import RELEASE, SYSTEM
from hack.demo.target import Target
from tests.support.e2e_expect import Expectation, describe, describe_event, describe_pod, find_troubled
from tests.support.e2e_objects import Agent, Json, Swarm

LIMIT = 180.0  # s a thing may take to come about on a busy machine, where the test says nothing
LOOK = 0.2  # s between looks
LEASE = "alineod"
OPERATOR_LINES = 40
T = TypeVar("T")


@dataclass(frozen=True)
class Release:
    """One installation of the chart."""

    name: str = RELEASE
    namespace: str = SYSTEM

    @property
    def fullname(self) -> str:
        """What the chart calls its objects."""
        return self.name if "alineod" in self.name else f"{self.name}-alineod"

    @property
    def selector(self) -> dict[str, str]:
        return {"app.kubernetes.io/instance": self.name, "app.kubernetes.io/name": "alineod"}


class World:
    """A cluster with a release in it."""

    def __init__(self, target: Target, release: Release) -> None:
        self.target = target
        self.release = release
        config = pykube.KubeConfig.from_file(target.kubeconfig)
        config.set_current_context(target.context)
        self.kube = pykube.HTTPClient(config, timeout=30)

    def kubectl(self, namespace: str, *words: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints."""
        return self.target.kubectl(f"--namespace={namespace}", *words, stdin=stdin, check=check).out

    def apply(self, namespace: str, *objects: Mapping[str, Any]) -> str:
        """`kubectl apply`, with its words."""
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl(namespace, "apply", "-f", "-", stdin=json.dumps(body))

    def refuse(self, namespace: str, *objects: Mapping[str, Any], words: Sequence[str] = ()) -> str:
        """What the API server says to objects that it must not take."""
        # One object by itself, as a person has it: of a List kubectl checks the fields itself, in other words.
        body = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        command = (f"--namespace={namespace}", "apply", *words, "-f", "-")
        ran = self.target.kubectl(*command, stdin=json.dumps(body), check=False)
        assert ran.code, f"the API server took what it should refuse: {ran.out}"
        return ran.err

    def read(self, kind: type[APIObject], namespace: str, name: str) -> Json | None:
        found = kind.objects(self.kube, namespace=namespace).get_or_none(name=name)
        return None if found is None else dict(found.obj)

    def read_all(self, kind: type[APIObject], namespace: str, selector: Mapping[str, str] | None = None) -> list[Json]:
        query = kind.objects(self.kube, namespace=namespace)
        if selector:
            query = query.filter(selector=dict(selector))
        return [dict(one.obj) for one in query]

    def wait(
        self, kind: type[APIObject], namespace: str, name: str, expected: Expectation, limit: float = LIMIT
    ) -> Json:
        """The object, once it is as expected.

        Raises:
            AssertionError: it never was; the message says what it was and what went on around it.
        """
        end = time.monotonic() + limit
        while True:
            seen = self.read(kind, namespace, name)
            if seen is not None and expected.holds(seen):
                return seen
            if time.monotonic() > end:
                raise AssertionError(
                    f"{kind.kind} {namespace}/{name} should {expected.words}; after {limit:.0f} s:\n"
                    f"{describe(seen)}\n{self.report(namespace)}"
                )
            time.sleep(LOOK)

    def wait_agent(self, namespace: str, name: str, expected: Expectation, limit: float = LIMIT) -> Json:
        return self.wait(Agent, namespace, name, expected, limit)

    def wait_swarm(self, namespace: str, name: str, expected: Expectation, limit: float = LIMIT) -> Json:
        return self.wait(Swarm, namespace, name, expected, limit)

    def wait_gone(self, kind: type[APIObject], namespace: str, name: str, limit: float = LIMIT) -> None:
        what = f"{kind.kind} {namespace}/{name} should be gone"
        self.until(what, lambda: self.read(kind, namespace, name) is None, namespace, limit)

    def until(self, what: str, look: Callable[[], T], namespace: str = "", limit: float = LIMIT) -> T:
        """What `look` gives, once it gives something true. `what` is a sentence for when it never does."""
        end = time.monotonic() + limit
        while True:
            if found := look():
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{what}; after {limit:.0f} s it is not so\n{self.report(namespace)}")
            time.sleep(LOOK)

    def create_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A new one; a leftover of the same name has to be gone first."""
        self.remove_namespace(name)
        metadata = {"name": name, "labels": dict(labels)}
        Namespace(self.kube, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).create()

    def remove_namespace(self, name: str, *, wait: bool = True) -> None:
        """Delete it if it is there."""
        found = Namespace.objects(self.kube).get_or_none(name=name)
        if found is None:
            return
        found.delete()
        if wait:
            self.until(f"the namespace {name} should be gone", lambda: not found.exists(), name)

    def report(self, namespace: str) -> str:
        """What went on around it, for whoever reads a failure."""
        return "\n".join(self._tell(namespace))

    def _tell(self, namespace: str) -> Iterator[str]:
        if namespace:
            yield f"agents in {namespace}:"
            for agent in self._try(lambda: self.read_all(Agent, namespace)):
                yield f" {agent['metadata']['name']}:\n{describe(agent)}"
            yield f"pods in {namespace}:"
            yield from map(describe_pod, self._try(lambda: self.read_all(Pod, namespace)))
            yield from self._tell_troubles(namespace)
            yield f"events in {namespace}, the last 25:"
            yield from map(describe_event, self._try(lambda: self.read_all(Event, namespace))[-25:])
        yield f"pods in {self.release.namespace}:"
        yield from map(describe_pod, self._try(lambda: self.read_all(Pod, self.release.namespace)))
        yield "operator, its last lines:"
        yield self.read_operator_log(OPERATOR_LINES)

    def _tell_troubles(self, namespace: str) -> Iterator[str]:
        """What the containers said that are not simply running."""
        for pod in self._try(lambda: self.read_all(Pod, namespace)):
            name = pod["metadata"]["name"]
            for container in find_troubled(pod):
                yield f"log of {name}, container {container}:"
                yield self.kubectl(namespace, "logs", name, f"--container={container}", "--tail=15", check=False)

    def _try(self, look: Callable[[], list[Json]]) -> list[Json]:
        """A report is better with a hole than not there."""
        try:
            return look()
        except Exception as error:
            return [{"metadata": {"name": f"could not be read: {error}"}}]

    def read_operator_log(self, lines: int, container: str = "operator") -> str:
        """The last lines of every operator pod."""
        selector = ",".join(f"{key}={value}" for key, value in self.release.selector.items())
        words = ["logs", f"--selector={selector}", f"--container={container}", f"--tail={lines}", "--prefix"]
        return self.kubectl(self.release.namespace, *words, check=False)

    def find_leader(self) -> str:
        """The pod that leads, by the Lease; empty where none does."""
        lease = self.kubectl(self.release.namespace, "get", "lease", LEASE, "-o", "json", check=False)
        holder = (json.loads(lease).get("spec") or {}).get("holderIdentity") if lease else ""
        pods = {
            pod["metadata"]["name"]: pod for pod in self.read_all(Pod, self.release.namespace, self.release.selector)
        }
        return next((name for name in pods if holder and holder.startswith(name)), "")

    def read_ledger(self, *, run: str = "", agent: str = "", pod: str = "") -> list[Json]:
        """The events of the ledger, by the operator's own program in the leader's pod."""
        words = [f"--run={run}"] if run else [f"--agent={agent}"] if agent else []
        leader = pod or self.until("an operator should lead", self.find_leader)
        command = ["exec", leader, "--container=operator", "--", "alineod", "ledger", "dump", *words]
        return [json.loads(line) for line in self.kubectl(self.release.namespace, *command).splitlines()]
