"""The health script for Argo CD, run by a Lua interpreter over statuses as the operator computes them."""

from pathlib import Path
from typing import Any

import lupa.lua54
import pytest

from alineod.crd.status import AgentStatus
from alineod.domain.actions import Standing
from alineod.domain.status import compute_agent_status
from tests.unit.domain.builders import build_facts

SCRIPT = Path(__file__).parents[3] / "docs" / "gitops" / "argocd-health.lua"


def _to_lua(lua: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return lua.table_from({key: _to_lua(lua, item) for key, item in value.items()})
    return lua.table_from([_to_lua(lua, item) for item in value]) if isinstance(value, list) else value


def _health(obj: dict[str, Any]) -> tuple[str, str]:
    lua = lupa.lua54.LuaRuntime()
    lua.globals().obj = _to_lua(lua, obj)
    health = lua.execute(SCRIPT.read_text())
    return health["status"], health["message"]


def _agent(standing: Standing, generation: int = 1, **metadata: Any) -> dict[str, Any]:
    status = compute_agent_status(build_facts(), standing, AgentStatus())
    dumped = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"metadata": {"generation": generation, **metadata}, "status": dumped}


@pytest.mark.behaviour("2.24")
@pytest.mark.parametrize(
    ("obj", "health"),
    [
        (_agent(Standing("Completed", "done", ready=True)), ("Healthy", "done")),
        (_agent(Standing("Suspended", "paused", ready=True)), ("Suspended", "paused")),
        (_agent(Standing("PodStarting", "starting")), ("Progressing", "starting")),
        (_agent(Standing("ImagePullBackOff", "no image", stalled=True)), ("Degraded", "no image")),
        (
            _agent(Standing("Completed", "done", ready=True), generation=2),
            ("Progressing", "the operator has not seen this generation yet"),
        ),
        (
            _agent(Standing("Completed", "done", ready=True), deletionTimestamp="2026-01-01T00:00:00Z"),
            ("Progressing", "it is being deleted"),
        ),
        (
            {"metadata": {"generation": 1}, "status": {"observedGeneration": -1}},
            ("Progressing", "the operator has not seen this generation yet"),
        ),
        ({"metadata": {"generation": 1}}, ("Progressing", "the operator has not seen this generation yet")),
    ],
)
def test_health(obj: dict[str, Any], health: tuple[str, str]) -> None:
    assert _health(obj) == health
