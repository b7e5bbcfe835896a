"""What is refused at the door, and in which words: one table, asked of a bare API server and of a release."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """An object that is refused. Every one of `words` stands in the API server's answer."""

    label: str
    kind: str
    spec: Json
    words: tuple[str, ...]
    name: str = "survey"

    def build(self) -> Json:
        return build_object(self.kind, self.spec, self.name)


def build_object(kind: str, spec: Json, name: str = "survey") -> Json:
    """An object of ours."""
    return {"apiVersion": "alineo.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def listed(*entries: Json, **spec: Any) -> Json:
    """A swarm's spec with these entries; each gets a prompt."""
    return {"agents": [{"prompt": "p", **entry} for entry in entries], **spec}


def alone(**spec: Any) -> Json:
    """An agent's spec."""
    return {"swarm": "survey", "prompt": "p", **spec}


TREE = listed({"name": "a"}, {"name": "b"})


def _waiting(wait: Any) -> Json:
    return listed({"name": "a"}, {"name": "b"}, {"name": "c", "waitFor": wait})


SWARM_CASES = (
    Case("unknown field", "Swarm", {"agent": []}, ('unknown field', 'agent"')),
    Case("unknown field of an entry", "Swarm", listed({"name": "a", "promt": "x"}),
         ('unknown field', 'promt"')),
    Case("no prompt", "Swarm", {"agents": [{"name": "a"}]}, ("spec.agents[0].prompt: Required value",)),
    Case("two of a name", "Swarm", listed({"name": "a"}, {"name": "a"}), ("spec.agents[1]: Duplicate value",)),
    Case("no name", "Swarm", listed({"name": "A_1"}), ("spec.agents[0].name", "use lower case letters")),
    Case("long name", "Swarm", listed({"name": "a" * 51}), ("spec.agents", "shorten the swarm's name or the agent's")),
    Case("long swarm name", "Swarm", {}, ("metadata.name", "shorten it to 57 characters"), "s" * 58),
    Case("swarm name with a dot", "Swarm", {}, ("metadata.name", "use lower case letters"), "my.survey"),
    Case("depth", "Swarm", {"budget": {"spawnDepth": 17}}, ("spec.budget.spawnDepth", "from 0 (nobody spawns) to 16")),
    Case("money", "Swarm", {"budget": {"usd": "much"}}, ("spec.budget.usd", 'write one such as "25"')),
    Case("enum", "Swarm", {"supervision": {"onFailure": "retry"}}, ('supported values: "Fail", "Ask", "Retry"',)),
    Case("limit", "Swarm", {"defaults": {"limits": {"turnMax": "30"}}},
         ("spec.defaults.limits.turnMax", "write one with its unit, such as 30s, 30m or 1h30m")),
    Case("drain", "Swarm", {"defaults": {"sandbox": {"drainGrace": "1000h"}}},
         ("spec.defaults.sandbox.drainGrace", "a drain may wait 24h at most")),
    Case("home that is no path", "Swarm", {"defaults": {"sandbox": {"home": "home"}}}, ("write an absolute path",)),
    Case("home with dots", "Swarm", {"defaults": {"sandbox": {"home": "/a/../b"}}}, ("without . and ..",)),
    Case("home of ours", "Swarm", {"defaults": {"sandbox": {"home": "/workspace/x"}}}, ("cannot be within /",)),
    Case("model address", "Swarm", {"defaults": {"harness": {"model": {"baseURL": "model:80"}}}},
         ("must start with http:// or https://",)),
    Case("credential name", "Swarm",
         {"defaults": {"harness": {"credentials": [{"name": "a-b", "secretKeyRef": {"name": "s", "key": "k"}}]}}},
         ("spec.defaults.harness.credentials[0].name", "should match")),
    Case("quantity", "Swarm", {"defaults": {"sandbox": {"storage": {"home": {"sizeLimit": "big"}}}}},
         ("spec.defaults.sandbox.storage.home.sizeLimit", "should match")),
    Case("wait that is a word", "Swarm", _waiting("a"), ("c: waitFor is a list of short names, such as [lead]",)),
    Case("wait that is a number", "Swarm", _waiting(3), ("c: waitFor is a list of short names",)),
    Case("wait for nobody", "Swarm", _waiting([]), ("spec.agents[2].waitFor", "at least 1 items")),
    Case("wait without agents", "Swarm", _waiting({"mode": "All"}), ("spec.agents[2].waitFor.agents: Required",)),
    Case("wait field", "Swarm", _waiting({"agents": ["a"], "deadlin": "1m"}), ("c has deadlin: waitFor knows agents",)),
    Case("wait mode", "Swarm", _waiting({"agents": ["a"], "mode": "Most"}), ('"Settled", "All", "Any", "Quorum"',)),
    Case("quorum without a number", "Swarm", _waiting({"agents": ["a"], "mode": "Quorum"}), ("c: mode Quorum needs",)),
    Case("number without a quorum", "Swarm", _waiting({"agents": ["a"], "k": 1}), ("c: mode Quorum needs",)),
    Case("impossible quorum", "Swarm", _waiting({"agents": ["a", "b"], "mode": "Quorum", "k": 3}),
         ("c wants 3 of 2: k is larger than the list",)),
    Case("deadline", "Swarm", _waiting({"agents": ["a"], "deadline": "soon"}),
         ("c has soon: deadline is a duration", "write one such as 30s, 30m or 1h30m")),
    Case("unknown name", "Swarm", _waiting(["a", "z"]), ("c waits for z: there is no such agent in spec.agents",)),
    Case("unknown parent", "Swarm", listed({"name": "a", "parent": "z"}), ("a has the parent z: there is no such",)),
    Case("circle", "Swarm", listed({"name": "a", "waitFor": ["b"]}, {"name": "b", "waitFor": ["a"]}),
         ("a waits for b: waitFor and parent may name only agents that stand before their own",)),
    Case("wait for itself", "Swarm", listed({"name": "a", "waitFor": ["a"]}), ("a waits for a", "in a circle")),
    Case("parents in a circle", "Swarm", listed({"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}),
         ("a has the parent b", "in a circle")),
    Case("deep tree", "Swarm",
         listed({"name": "n0"}, *({"name": f"n{i}", "parent": f"n{i - 1}"} for i in range(1, 18))),
         ("more than 16 levels",)),
)  # fmt: skip

AGENT_CASES = (
    Case("unknown field", "Agent", alone(promt="x"), ('unknown field', 'promt"')),
    Case("no swarm", "Agent", {"prompt": "p"}, ("spec.swarm: Required value",)),
    Case("long name", "Agent", alone(), ("metadata.name", "shorten it to 57 characters"), "a" * 58),
    Case("name with a dot", "Agent", alone(), ("metadata.name", "use lower case letters"), "a.b"),
    Case("its own parent", "Agent", alone(parent="survey"), ("spec.parent", "cannot be its own parent")),
    Case("its own parent by alias", "Agent", alone(parent="a", alias="a"), ("cannot be its own parent",)),
    Case("wait for itself", "Agent", alone(waitFor=["survey"]), ("an agent cannot wait for itself",)),
    Case("wait for itself by alias", "Agent", alone(alias="a", waitFor=["a"]), ("an agent cannot wait for itself",)),
    Case("wait that is a word", "Agent", alone(waitFor="lead"), ("survey: waitFor is a list of short names",)),
    Case("impossible quorum", "Agent", alone(waitFor={"agents": ["a"], "mode": "Quorum", "k": 2}),
         ("survey wants 2 of 1",)),
    Case("deadline", "Agent", alone(waitFor={"agents": ["a"], "deadline": "1d"}), ("survey has 1d: deadline is",)),
)  # fmt: skip

CASES = (*SWARM_CASES, *AGENT_CASES)


@dataclass(frozen=True)
class Change:
    """A change from one spec to another; refused with `words`, or accepted when there are none."""

    label: str
    kind: str
    old: Json
    new: Json
    words: tuple[str, ...] = ()


FIXED = "cannot change once the agent is made: use the prompt verb, or add a new agent"
A, B = {"name": "a"}, {"name": "b", "waitFor": ["a"]}

CHANGES = (
    Change("another prompt", "Swarm", listed(A), listed({"name": "a", "prompt": "q"}), ("a: prompt,", FIXED)),
    Change("another wait", "Swarm", listed(A, {"name": "b"}), listed(A, B), ("b: prompt,", FIXED)),
    Change("no wait any more", "Swarm", listed(A, B), listed(A, {"name": "b"}), ("b: prompt,", FIXED)),
    Change("another parent", "Swarm", listed(A, {"name": "b"}), listed(A, {"name": "b", "parent": "a"}),
           ("b: prompt,", FIXED)),
    Change("one more", "Swarm", listed(A), listed(A, B)),
    Change("one more in front that names an old one", "Swarm", listed(A), listed(B, A)),
    Change("one less that somebody waited for", "Swarm", listed(A, B), listed(B)),
    Change("another order", "Swarm", listed(A, B), listed(B, A)),
    Change("one more that names a later one", "Swarm", listed(A),
           listed(A, {"name": "c", "waitFor": ["d"]}, {"name": "d"}),
           ("c waits for d", "stand before their own")),
    Change("another sandbox", "Swarm", listed(A), listed({"name": "a", "sandbox": {"image": "x"}})),
    Change("paused", "Swarm", listed(A), listed(A, paused=True)),
    Change("another prompt", "Agent", alone(), alone(prompt="q"), ("prompt " + FIXED,)),
    Change("another alias", "Agent", alone(), alone(alias="b"), ("alias " + FIXED,)),
    Change("another parent", "Agent", alone(parent="b"), alone(parent="c"), ("parent " + FIXED,)),
    Change("no parent any more", "Agent", alone(parent="b"), alone(), ("parent " + FIXED,)),
    Change("another swarm", "Agent", alone(), alone(swarm="other"), ("swarm " + FIXED,)),
    Change("another wait", "Agent", alone(waitFor=["a"]), alone(waitFor=["b"]), ("waitFor " + FIXED,)),
    Change("no wait any more", "Agent", alone(waitFor=["a"]), alone(), ("waitFor " + FIXED,)),
    Change("another sandbox", "Agent", alone(), alone(sandbox={"home": "/home/agent"})),
    Change("paused", "Agent", alone(), alone(paused=True)),
)  # fmt: skip
