"""A finished swarm costs nothing: a minute in which the operator writes its Lease and nothing else."""

import time

import pytest
from pykube.objects import Namespace

from alineod.reconcile.passes import COUNT_EVERY
from tests.support.e2e_expect import has_checkpoint, in_phase, is_current
from tests.support.e2e_objects import Agent, Swarm, build_swarm, play, text
from tests.support.e2e_parts import AuditLog, describe_write
from tests.support.e2e_world import World

pytestmark = pytest.mark.smoke

MINUTE = 60.0


@pytest.mark.behaviour("11.19")
def test_an_idle_minute_has_no_write_but_the_lease_and_no_line_in_the_log(
    world: World, space: str, audit: AuditLog
) -> None:
    world.apply(space, build_swarm("calm", [{"name": "one", "prompt": play(text("Done."), say="Be calm.")}]))
    world.wait_agent(space, "calm-one", in_phase("Done") & has_checkpoint(1) & is_current())
    world.wait_swarm(space, "calm", is_current())
    world.until("namespaces of other tests should be gone", lambda: not _others(world, space))
    time.sleep(COUNT_EVERY + 5)  # what belongs to the turn's end, such as Events and the count, is written behind it
    before = [one["metadata"]["resourceVersion"] for kind in (Swarm, Agent) for one in world.read_all(kind, space)]
    mark, lines = audit.mark(), _count_lines(world)
    time.sleep(MINUTE)
    writes = [w for w in audit.read_writes(_account(world), mark) if w["objectRef"]["resource"] != "leases"]
    assert not writes, "the operator wrote while nothing happened:\n" + "\n".join(map(describe_write, writes))
    after = [one["metadata"]["resourceVersion"] for kind in (Swarm, Agent) for one in world.read_all(kind, space)]
    assert after == before
    assert _count_lines(world) == lines, f"the operator spoke while nothing happened:\n{world.read_operator_log(5)}"


def _others(world: World, space: str) -> list[str]:
    """Namespaces of tests that are still going away: what happens in them is not nothing."""
    found = Namespace.objects(world.kube).filter(selector={"alineo.dev/e2e": "true"})
    return [one.name for one in found if one.name != space]


def _count_lines(world: World) -> int:
    return len(world.read_operator_log(-1).splitlines())


def _account(world: World) -> str:
    return f"system:serviceaccount:{world.release.namespace}:{world.release.fullname}"


def test_the_lease_is_renewed_all_the_while(world: World, audit: AuditLog) -> None:
    """The other test means something: the operator was alive and its writes are in this log."""
    mark = audit.mark()
    world.until(
        "the operator should renew its Lease",
        lambda: any(w["objectRef"]["resource"] == "leases" for w in audit.read_writes(_account(world), mark)),
    )
