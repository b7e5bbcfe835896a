"""The admission policies: what the CRDs' own rules cannot see or could not afford.

A rule in a CRD does not see into `waitFor`, which is a list or an object, and is charged beforehand for the largest
object there could be. A ValidatingAdmissionPolicy is CEL in the API server as well, sees all of the object, and is
charged for what is there. Whatever slips in, where the policies are not installed or a swarm is too large to be
followed, the operator finds (`alineod.crd.check`).

An entry of a swarm's list may name entries that stand before it, or that were there before this change. As `waitFor`
and `parent` never change, neither can ever form a circle.
"""

from collections.abc import Callable
from dataclasses import dataclass

from alineod.crd.agent import CHANGE_SENTENCE, Wait
from alineod.crd.base import API_VERSION, GROUP, field_alias
from alineod.crd.definition import AGENT, SWARM, Definition
from alineod.crd.schema import Json
from alineod.crd.swarm import MAX_DEPTH
from alineod.crd.types import DURATION

MAX_LINKS = 20_000  # names in all waitFor; following more would cost more than the API server allows one policy
SHOWN = 5  # offenders named in one sentence
WAIT_FIELDS = [field_alias(name) for name in Wait.model_fields]

NAMES = "type(a.waitFor) == list ? a.waitFor : type(a.waitFor) == map ? a.waitFor.agents : []"
BEFORE = "variables.before"
PLACE = "variables.place"


@dataclass(frozen=True)
class Check:
    """`offenders` is a CEL list of texts; when it is not empty the object is refused, with them and the sentence."""

    name: str
    offenders: str
    sentence: str


@dataclass(frozen=True)
class Policy:
    """The policy of a kind: variables, each built on those before it, and checks."""

    definition: Definition
    variables: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]


COMMON = (
    (
        "waits",
        "variables.agents.filter(a, has(a.waitFor))"
        f".map(a, {{'name': dyn(a.name), 'wait': dyn(a.waitFor), 'names': dyn({NAMES})}})",
    ),
    ("full", "variables.waits.filter(w, type(w.wait) == map)"),
    ("links", "variables.waits.map(w, int(w.names.size())).sum()"),
)

WAIT_CHECKS = (
    Check(
        "misshapen",
        "variables.waits.filter(w, type(w.wait) != list && type(w.wait) != map).map(w, w.name)",
        "waitFor is a list of short names, such as [lead], or an object with agents, mode, k, deadline",
    ),
    Check(
        "unknown",
        f"variables.full.filter(w, w.wait.exists(k, !(k in {WAIT_FIELDS})))"
        f".map(w, w.name + ' has ' + w.wait.map(k, k).filter(k, !(k in {WAIT_FIELDS})).join(', '))",
        f"waitFor knows {', '.join(WAIT_FIELDS)}: remove the others or correct their names",
    ),
    Check(
        "uncounted",
        "variables.full.filter(w, ('mode' in w.wait && w.wait.mode == 'Quorum') != ('k' in w.wait)).map(w, w.name)",
        "mode Quorum needs k, the number that must succeed, and no other mode takes it: write both or neither",
    ),
    Check(
        "impossible",
        "variables.full.filter(w, 'k' in w.wait && w.wait.k > w.wait.agents.size())"
        ".map(w, w.name + ' wants ' + string(w.wait.k) + ' of ' + string(w.wait.agents.size()))",
        "k is larger than the list: name more agents or write a smaller k",
    ),
    Check(
        "timeless",
        f"variables.full.filter(w, 'deadline' in w.wait && !w.wait.deadline.matches('^{DURATION}$'))"
        ".map(w, w.name + ' has ' + w.wait.deadline)".replace("\\", "\\\\"),
        "deadline is a duration with its unit: write one such as 30s, 30m or 1h30m",
    ),
)


NEW = f"!(w.name in {BEFORE})"


def _stray(name: str) -> str:
    return f"!({name} in {PLACE})"


def _later(name: str) -> str:
    return f"{name} in {PLACE} && !({name} in {BEFORE}) && {PLACE}[{name}] >= {PLACE}[w.name]"


def _naming(wrong: Callable[[str], str]) -> str:
    """New entries that name, in waitFor or as their parent, one for which `wrong` holds of entry `w`."""
    waits = (
        f"variables.waits.filter(w, {NEW} && w.names.exists(n, {wrong('n')}))"
        f".map(w, w.name + ' waits for ' + w.names.filter(n, {wrong('n')}).join(', '))"
    )
    parents = (
        f"variables.agents.filter(w, has(w.parent) && {NEW} && {wrong('w.parent')})"
        ".map(w, w.name + ' has the parent ' + w.parent)"
    )
    return f"(variables.links > {MAX_LINKS} ? [] : {waits}) + {parents}"


def _differs(field: str) -> str:
    old = f"{BEFORE}[a.name]"
    return f"(has(a.{field}) != has({old}.{field}) || (has(a.{field}) && a.{field} != {old}.{field}))"


SWARM_POLICY = Policy(
    SWARM,
    variables=(
        ("agents", "has(object.spec.agents) ? object.spec.agents : []"),
        ("old", "oldObject != null && has(oldObject.spec.agents) ? oldObject.spec.agents : []"),
        ("before", "variables.old.transformMapEntry(i, a, {a.name: a})"),
        ("place", "variables.agents.transformMapEntry(i, a, {a.name: i})"),
        *COMMON,
        ("parents", "variables.agents.transformMapEntry(i, a, has(a.parent), {a.name: a.parent})"),
        ("climb0", "variables.agents.map(a, a.name).filter(n, n in variables.parents)"),
        *(
            (
                f"climb{level}",
                f"variables.climb{level - 1}.map(n, variables.parents[n]).filter(n, n in variables.parents)",
            )
            for level in range(1, MAX_DEPTH + 1)
        ),
    ),
    checks=(
        *WAIT_CHECKS,
        Check(
            "stray",
            _naming(_stray),
            "there is no such agent in spec.agents: add it, or correct the name in waitFor or parent",
        ),
        Check(
            "later",
            _naming(_later),
            "waitFor and parent may name only agents that stand before their own in spec.agents, so that nobody waits "
            "in a circle: put the named agent first, or do not wait for it",
        ),
        Check(
            "changed",
            f"variables.agents.filter(a, a.name in {BEFORE} && "
            f"({' || '.join(_differs(field) for field in ('prompt', 'parent', 'waitFor'))})).map(a, a.name)",
            f"prompt, parent and waitFor {CHANGE_SENTENCE}",
        ),
        Check(
            "deep",
            f"variables.climb{MAX_DEPTH}",
            f"the tree of parents has more than {MAX_DEPTH} levels below these: make it at most {MAX_DEPTH} deep",
        ),
    ),
)

AGENT_POLICY = Policy(
    AGENT,
    variables=(
        (
            "agents",
            "[{'name': dyn(has(object.spec.alias) ? object.spec.alias : object.metadata.name)}]"
            ".map(a, has(object.spec.waitFor) ? {'name': a.name, 'waitFor': dyn(object.spec.waitFor)} : a)",
        ),
        *COMMON,
    ),
    checks=(
        *WAIT_CHECKS,
        Check(
            "circular",
            "variables.waits.filter(w, w.name in w.names).map(w, w.name)",
            "an agent cannot wait for itself: name other agents",
        ),
        Check(
            "changed",
            "(oldObject == null || (has(object.spec.waitFor) == has(oldObject.spec.waitFor) && "
            "(!has(object.spec.waitFor) || object.spec.waitFor == oldObject.spec.waitFor))) ? [] : "
            "[object.metadata.name]",
            f"waitFor {CHANGE_SENTENCE}",
        ),
    ),
)

POLICIES = (SWARM_POLICY, AGENT_POLICY)


def build_policy_spec(policy: Policy) -> Json:
    """The `spec` of a kind's ValidatingAdmissionPolicy."""
    found = [(check.name, check.offenders) for check in policy.checks]
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [GROUP],
                    "apiVersions": [API_VERSION.split("/")[1]],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [policy.definition.plural],
                }
            ]
        },
        # Nothing is held against an object whose spec stays as it is: it can be labelled and deleted whatever it says.
        "matchConditions": [
            {"name": "spec-written", "expression": "oldObject == null || object.spec != oldObject.spec"}
        ],
        "variables": [{"name": name, "expression": text} for name, text in (*policy.variables, *found)],
        "validations": [_validation(check) for check in policy.checks],
    }


def _validation(check: Check) -> Json:
    found = f"variables.{check.name}"
    shown = f"({found}.size() > {SHOWN} ? {found}.slice(0, {SHOWN}) + ['...'] : {found}).join('; ')"
    return {
        "expression": f"{found}.size() == 0",
        "message": check.sentence,
        "messageExpression": f"{shown} + {_quoted(': ' + check.sentence)}",
        "reason": "Invalid",
    }


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
