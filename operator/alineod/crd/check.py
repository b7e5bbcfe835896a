"""What a record by itself cannot refuse: names that do not fit, references that lead nowhere or in a circle.

The API server finds most of it at the door; this is the same in Python, for objects that came in another way, and for
what the door cannot see. Each problem names the field as a person would find it and says what to change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from alineod.crd.agent import AgentEntry, AgentSpec, AgentTemplate, Wait, WaitMode
from alineod.crd.graph import find_cycle, measure_depth
from alineod.crd.harness import HarnessSpec, HarnessType
from alineod.crd.overlay import check_pod_template
from alineod.crd.problem import Flaw, Problem
from alineod.crd.swarm import MAX_DEPTH, SwarmSpec
from alineod.crd.types import DNS_LABEL, INCARNATION_ROOM, MAX_OBJECT_NAME, NAME_SENTENCE

RESERVED_VARIABLES = frozenset(("PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PYTHONPATH"))
RESERVED_PREFIX = "ALINEO_"


def check_swarm(name: str, spec: SwarmSpec) -> tuple[Problem, ...]:
    """All problems of a swarm's own words. What its agents come to with the defaults is `check_effective`'s."""
    problems = [*_check_object_name(name), *_check_names(name, spec.agents)]
    known = {agent.name for agent in spec.agents}
    for i, agent in enumerate(spec.agents):
        problems += _check_references(agent, known, f"spec.agents[{i}]")
        problems += _check_wait(agent.wait_for, f"spec.agents[{i}].waitFor")
    return (*problems, *_check_shape(spec.agents))


def check_agent(name: str, spec: AgentSpec) -> tuple[Problem, ...]:
    """All problems of an Agent object that the object alone shows."""
    return (
        *_check_object_name(name),
        *_check_self(spec, spec.alias or name),
        *_check_wait(spec.wait_for, "spec.waitFor"),
    )


def check_effective(spec: AgentTemplate) -> tuple[Problem, ...]:
    """Problems of an effective spec: what must be given by the agent or by its swarm's defaults, and fits together."""
    return (*_check_harness(spec.harness), *check_pod_template(spec.sandbox.pod_template))


def find_wait_cycle(waits: Mapping[str, Sequence[str]]) -> Problem | None:
    """A circle in who waits for whom, over all agents of a run by short name, with its path in the message."""
    if path := find_cycle(waits):
        shown = " waits for ".join(path)
        return Problem(Flaw.WAIT_CYCLE, "spec.waitFor", f"{shown}: remove one of these waits, nobody could ever start")
    return None


def _check_object_name(name: str) -> Iterator[Problem]:
    if not re.fullmatch(DNS_LABEL, name):
        yield Problem(Flaw.INVALID_NAME, "metadata.name", f"{name} is no name: {NAME_SENTENCE}")
    if len(name) > MAX_OBJECT_NAME:
        yield _too_long("metadata.name", name)


def _too_long(field: str, name: str) -> Problem:
    return Problem(
        Flaw.NAME_TOO_LONG,
        field,
        f"{name} has {len(name)} characters: shorten it to {MAX_OBJECT_NAME}, since its pods' names have "
        f"{INCARNATION_ROOM} more",
    )


def _check_names(swarm: str, agents: Sequence[AgentEntry]) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, agent in enumerate(agents):
        field = f"spec.agents[{i}].name"
        if agent.name in seen:
            yield Problem(Flaw.DUPLICATE_NAME, field, f"{agent.name} is there twice: give each agent its own name")
        if len(f"{swarm}-{agent.name}") > MAX_OBJECT_NAME:
            yield _too_long(field, f"{swarm}-{agent.name}")
        seen.add(agent.name)


def _check_references(agent: AgentEntry, known: set[str], at: str) -> Iterator[Problem]:
    named = [(f"{at}.waitFor", name) for name in (agent.wait_for.agents if agent.wait_for else ())]
    if agent.parent is not None:
        named.append((f"{at}.parent", agent.parent))
    for field, name in named:
        if name not in known:
            message = f"there is no agent {name} in this swarm: add it to spec.agents or correct the name"
            yield Problem(Flaw.AGENT_NOT_FOUND, field, message)


def _check_self(spec: AgentSpec, alias: str) -> Iterator[Problem]:
    if spec.parent == alias:
        yield Problem(Flaw.PARENT_CYCLE, "spec.parent", f"{alias} cannot be its own parent: name another agent")
    if spec.wait_for and alias in spec.wait_for.agents:
        yield Problem(Flaw.WAIT_CYCLE, "spec.waitFor", f"{alias} cannot wait for itself: name other agents")


def _check_wait(wait: Wait | None, field: str) -> Iterator[Problem]:
    if wait is None:
        return
    if len(set(wait.agents)) < len(wait.agents):
        yield Problem(Flaw.DUPLICATE_NAME, field, "names an agent twice: name each once")
    if wait.mode is WaitMode.QUORUM and wait.k is None:
        yield Problem(Flaw.INVALID_QUORUM, field, "mode Quorum needs k: write how many agents must succeed")
    if wait.mode is not WaitMode.QUORUM and wait.k is not None:
        yield Problem(
            Flaw.INVALID_QUORUM, field, f"k has no meaning in mode {wait.mode}: remove it or write mode: Quorum"
        )
    if wait.k is not None and wait.k > len(set(wait.agents)):
        message = f"k is {wait.k} and only {len(wait.agents)} agents are named: name more agents or write a smaller k"
        yield Problem(Flaw.INVALID_QUORUM, f"{field}.k", message)


def _check_shape(agents: Sequence[AgentEntry]) -> Iterator[Problem]:
    if wait := find_wait_cycle({a.name: a.wait_for.agents if a.wait_for else () for a in agents}):
        yield wait
    parents = {a.name: a.parent for a in agents}
    if path := find_cycle({name: (parent,) if parent else () for name, parent in parents.items()}):
        message = f"{' is a child of '.join(path)}: remove one of these parents"
        yield Problem(Flaw.PARENT_CYCLE, "spec.agents", message)
    elif (depth := measure_depth(parents)) > MAX_DEPTH:
        message = f"the tree is {depth} levels deep: make it at most {MAX_DEPTH}"
        yield Problem(Flaw.TOO_DEEP, "spec.agents", message)


def _check_harness(harness: HarnessSpec) -> Iterator[Problem]:
    if harness.type is HarnessType.ACP and not harness.command:
        message = "type Acp needs a command: write the program and its arguments"
        yield Problem(Flaw.INVALID_HARNESS, "spec.harness.command", message)
    if harness.type is not HarnessType.PI:
        return
    if harness.command:
        yield Problem(Flaw.INVALID_HARNESS, "spec.harness.command", "type Pi takes no command: remove it")
    for credential in harness.credentials:
        if credential.name in RESERVED_VARIABLES or credential.name.startswith(RESERVED_PREFIX):
            message = f"{credential.name} is what the sandbox itself needs: give the credential another name"
            yield Problem(Flaw.INVALID_HARNESS, "spec.harness.credentials", message)
    for field in ("provider", "id"):
        if not getattr(harness.model, field):
            message = f"no model {field} is given: set it in the agent or in the swarm's spec.defaults"
            yield Problem(Flaw.INVALID_HARNESS, f"spec.harness.model.{field}", message)
