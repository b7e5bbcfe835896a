"""`GET /v1/health`: whether this process leads and how far it is, told to anyone by whoever is asked.

It names nobody's agents.
"""

from starlette.responses import JSONResponse, Response

from alineod.kube.health import Health, decide_readiness
from alineod.reconcile.world import World


def answer_health(health: Health, instance: str, world: World | None = None) -> Response:
    """`message` says what is waited for; the counts of the ledger are told by a leader alone, and only in its term."""
    facts = health.read_facts()
    body: dict[str, object] = {
        "leader": facts.leading,
        "phase": str(facts.phase),
        "message": decide_readiness(facts).sentence,
        "instance": instance,
        "reconnected": facts.reconnected,
        "toReconnect": facts.known - facts.reconnected,
    }
    return JSONResponse(body | (_count(world) if world is not None and facts.leading else {}))


def _count(world: World) -> dict[str, int]:
    agents = world.ledger.state.agents.values()
    return {
        "epoch": world.release.epoch,
        "agents": len(agents),
        "running": sum(agent.turn_running for agent in agents),
        "seq": world.ledger.acknowledged_seq,
    }
