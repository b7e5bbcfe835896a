"""Circles in who waits for whom that only several Agent objects together show. Reads the store alone.

A swarm's own entries cannot wait in a circle, the door sees to that: a circle has an Agent in it that was applied by
itself, and that one says so.
"""

from collections.abc import Mapping, Sequence

from alineod.crd.check import find_wait_cycle
from alineod.crd.objects import Agent
from alineod.crd.parse import parse_agent
from alineod.crd.problem import Problem
from alineod.errors import Refused
from alineod.kube.objects import AGENTS
from alineod.kube.store import Store

Waits = Mapping[str, Sequence[str]]


def find_circle(store: Store, agent: Agent) -> Problem | None:
    """The circle that this agent's wait is part of, with its path; None for an agent of a swarm's list."""
    if agent.spec.wait_for is None or any(owner.controller for owner in agent.metadata.owner_references):
        return None
    waits = _read_waits(store, agent.metadata.namespace, agent.spec.swarm)
    return find_wait_cycle(_select_circles(waits, agent.alias))


def _read_waits(store: Store, namespace: str, swarm: str) -> Waits:
    waits: dict[str, Sequence[str]] = {}
    for raw in store.find_by_swarm(AGENTS, namespace, swarm):
        try:
            other = parse_agent(raw)
        except Refused:
            continue
        waits[other.alias] = other.spec.wait_for.agents if other.spec.wait_for else ()
    return waits


def _select_circles(waits: Waits, start: str) -> Waits:
    """The part of the graph whose members `start` waits for and who wait for it; empty where there is no circle."""
    members = {name for name in _reach(waits, start) if start in _reach(waits, name)}
    return {name: [other for other in waits[name] if other in members] for name in sorted(members)}


def _reach(waits: Waits, start: str) -> set[str]:
    """Everyone whom `start` waits for, directly or not."""
    reached: set[str] = set()
    ahead = list(waits.get(start, ()))
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += waits.get(name, ())
    return reached
