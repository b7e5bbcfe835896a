"""The facts of one agent: from its objects, the ledger and what this term has heard."""

from dataclasses import replace

from alineod.crd.check import check_agent, check_effective
from alineod.crd.objects import ADOPT, Agent, Swarm
from alineod.crd.overlay import AT as POD_TEMPLATE
from alineod.crd.overlay import check_pod_template
from alineod.crd.problem import Problem
from alineod.domain.causes import End
from alineod.domain.ends import find_deletion
from alineod.domain.facts import (
    AgentFacts,
    AgentObject,
    Peer,
    PodFacts,
    RunFacts,
    Trouble,
)  # fmt: skip
from alineod.domain.state import AgentState
from alineod.errors import Denied, NotFound
from alineod.kube.objects import (
    AGENTS,
    NAMESPACES,
    PODS,
    SWARMS,
    is_leaving,
    read_label,
    read_uid,
)
from alineod.podspec import names
from alineod.podspec.observe import parse_pod
from alineod.podspec.pod import POD_FIELDS
from alineod.reconcile.circles import find_circle
from alineod.reconcile.objects import find_agent, is_renewed, parse_found, parse_swarm, read_object
from alineod.reconcile.places import find_left
from alineod.reconcile.pods import find_pod
from alineod.reconcile.recall import read_heard
from alineod.reconcile.world import Silence, World
from alineod.wire.turns import BridgeState


async def gather_agent(world: World, key: str) -> tuple[AgentFacts, Agent | None]:
    """The facts of an agent, and its object as parsed."""
    ledger = world.ledger.state.agents.get(key)
    agent, obj, invalid, run = await _gather_claim(world, key, ledger)
    pods = await _gather_pods(world, key, ledger)
    pod = next((p for p in pods if ledger and ledger.pod and p.uid == ledger.pod.uid), None)
    if pod is not None and (end := pod.end or find_deletion(pod)) is not None:
        world.term.ends[key] = (pod.uid, end)  # it says so once, and may be gone when that is asked for
    silence = world.term.silences.get(pod.uid if pod else "", Silence())
    facts = AgentFacts(
        now=world.now(),
        key=key,
        epoch=world.release.epoch,
        object=obj,
        invalid=invalid,
        run=run,
        ledger=ledger,
        pod=pod,
        last_end=_find_last_end(world, ledger),
        next_pod=next((p for p in pods if ledger and p.incarnation == ledger.incarnation + 1), None),
        stale_pods=_stale(pods, ledger, obj, world.release.epoch),
        bridge=_read_bridge(world, pod) if pod else None,
        bridge_error=world.term.errors.get(pod.uid) if pod else None,
        tries=silence.tries,
        asked_at=silence.asked_at,
        retry_delay=world.retry_delay,
        reattached=key in world.term.reattached or pod is None or pod.uid in world.term.started,
        outdated=obj is not None and pod is not None and pod.made_of not in ("", obj.spec.digest(*POD_FIELDS)),
        namespace_going=await _is_namespace_going(world, key, pod),
        heard=await read_heard(world, ledger, pod if obj is not None else None),
        start_wait=world.term.start_waits.get(pod.uid) if pod else None,
        peers=_gather_peers(world, obj, run),
        has_bucket=world.bucket is not None,
        alias_holder=_find_alias_holder(world, key, obj, run),
        restores_left=find_left(world, key),
        refusal=world.term.refusals.get(key),
    )
    return facts, agent


def _find_last_end(world: World, ledger: AgentState | None) -> End | None:
    """How the ledger's pod ended, if it said so before it went."""
    uid, end = world.term.ends.get(ledger.key, ("", None)) if ledger is not None else ("", None)
    return end if ledger is not None and ledger.pod is not None and ledger.pod.uid == uid else None


async def _is_namespace_going(world: World, key: str, pod: PodFacts | None) -> bool:
    if pod is None or not pod.deleting or pod.over:
        return False
    try:
        namespace = await world.gateway.get(NAMESPACES, "", key.split("/")[0])
    except NotFound:
        return True
    except Denied:
        return False
    return is_leaving(namespace)


async def _gather_claim(
    world: World, key: str, ledger: AgentState | None
) -> tuple[Agent | None, AgentObject | None, Trouble | None, RunFacts]:
    """The agent's object as parsed and as it counts, why it cannot be used, and the run it says it belongs to."""
    raw = await read_object(world, AGENTS, key, confirm=ledger is not None and not ledger.closed)
    agent, invalid = parse_found(world.parsed.agent, raw)
    swarm, run = _gather_run(world, agent, ledger)
    if raw is None and ledger is not None and not ledger.closed:
        if not run.exists:  # it went with its swarm: was that one deleted, or is its CRD being removed?
            await read_object(world, SWARMS, ledger.run, confirm=True)
        run = replace(run, kind_renewed=await is_renewed(world, AGENTS, ledger.claimed_at))
    if agent is None:
        return None, None, invalid, run
    obj, invalid = _gather_object(world, agent, swarm)
    circle = find_circle(world.store, agent) if ledger is None or ledger.wait_resolved is None else None
    if circle is not None and invalid is None:
        invalid = Trouble(str(circle.flaw), circle.message)
    return agent, obj, invalid, run


def _read_bridge(world: World, pod: PodFacts) -> BridgeState | None:
    """What the bridge last said, unless its container was restarted or found not ready since: then it is asked anew."""
    heard = world.term.heard.get(pod.uid)
    if heard is None or heard.restarts != pod.restarts or pod.unready_since > heard.at:
        return None
    return heard.state


def _gather_run(world: World, agent: Agent | None, ledger: AgentState | None) -> tuple[Swarm | None, RunFacts]:
    run = agent.run if agent else ledger.run if ledger else ""
    swarm = parse_swarm(world, run)
    state = world.ledger.state.runs.get(run)
    here = state is None or state.cluster_uid == world.release.cluster_uid
    if swarm is None:
        return None, RunFacts(False, True, state, here=here)
    alias = ledger.alias if ledger else ""
    facts = RunFacts(
        exists=True,
        ours=swarm.status.instance in ("", world.release.instance),
        state=state,
        uid=swarm.metadata.uid,
        here=here,
        listed=any(entry.name == alias for entry in swarm.spec.agents),
        supervision=swarm.spec.supervision,
    )
    return swarm, facts


def _describe(problem: Problem, agent: Agent, swarm: Swarm | None) -> Trouble:
    """What is wrong with the spec, named where it was written: on the Agent, or in its swarm's defaults."""
    field, own = problem.field, tuple(check_pod_template(agent.spec.sandbox.pod_template))
    if swarm is not None and field.startswith(POD_TEMPLATE) and not own:
        field = f"{field.replace('spec.', 'spec.defaults.', 1)} of the Swarm {swarm.metadata.name}"
    return Trouble(str(problem.flaw), f"{field}: {problem.message}")


def _gather_object(world: World, agent: Agent, swarm: Swarm | None) -> tuple[AgentObject, Trouble | None]:
    spec = world.parsed.effective(agent, swarm) if swarm else agent.spec
    problems = [*check_agent(agent.metadata.name, agent.spec), *(check_effective(spec) if swarm else ())]
    invalid = _describe(problems[0], agent, swarm) if problems else None
    obj = AgentObject(
        uid=agent.metadata.uid,
        generation=agent.metadata.generation,
        swarm=agent.spec.swarm,
        alias=agent.alias,
        spec=spec,
        parent=agent.spec.parent or "",
        adopt=agent.metadata.annotations.get(ADOPT) == "true",
        deleting=agent.metadata.deletion_timestamp is not None,
    )
    return obj, invalid


async def _gather_pods(world: World, key: str, ledger: AgentState | None) -> list[PodFacts]:
    namespace, name = key.split("/")
    pods = [parse_pod(raw) for raw in world.store.find_by_agent(PODS, namespace, name)]
    if ledger is None or ledger.pod is None or ledger.closed or world.term.gone.get(key) == ledger.pod.uid:
        return pods
    if any(pod.uid == ledger.pod.uid for pod in pods):
        return pods
    found = await read_object(world, PODS, f"{namespace}/{ledger.pod.name}", confirm=True)
    if found is None or read_uid(found) != ledger.pod.uid:
        world.term.gone[key] = ledger.pod.uid  # a UID never comes back
    return [*pods, parse_pod(found)] if found is not None and read_label(found, names.AGENT) == name else pods


def _stale(
    pods: list[PodFacts], ledger: AgentState | None, obj: AgentObject | None, epoch: int
) -> tuple[PodFacts, ...]:
    """Our own pods that are neither the ledger's nor the one after it. Somebody else's are none of our business.

    Nor are those of a later epoch: who sees one leads no more, and knows less than who made it.
    """
    if ledger is None:
        return ()
    owners = {ledger.uid, obj.uid if obj else ledger.uid}
    current = ledger.pod.uid if ledger.pod else ""
    return tuple(
        pod
        for pod in pods
        if pod.owner_uid in owners
        and pod.uid != current
        and pod.incarnation != ledger.incarnation + 1
        and pod.epoch <= epoch
    )


def _gather_peers(world: World, obj: AgentObject | None, run: RunFacts) -> dict[str, Peer]:
    if obj is None or run.state is None:
        return {}
    wanted = {*(obj.spec.wait_for.agents if obj.spec.wait_for else ()), *([obj.parent] if obj.parent else [])}
    found = {alias: find_agent(world, run.state.key, alias) for alias in wanted}
    return {alias: _peer(world, agent) for alias, agent in found.items() if agent is not None}


def _find_alias_holder(world: World, key: str, obj: AgentObject | None, run: RunFacts) -> str:
    if obj is None or run.state is None:
        return ""
    holder = find_agent(world, run.state.key, obj.alias)
    return holder.key if holder is not None and holder.key != key and not holder.closed else ""


def _peer(world: World, agent: AgentState) -> Peer:
    pod = find_pod(world, agent)
    up = pod is not None and pod.agent_running and not pod.deleting
    return Peer(agent.key, agent.handle, agent.closed, up, agent.closed or agent.released)
