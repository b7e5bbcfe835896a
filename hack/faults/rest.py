"""When an agent is at rest after a fault: where it should be, with nothing under way. `find_unrest` is pure."""

import time
from collections.abc import Mapping

import pykube

from hack.faults.scene import name_of
from hack.faults.stage import Stage
from tests.support.e2e_expect import Json, find_condition, status_of

LIMIT = 420.0  # s; a machine that is busy takes minutes for what takes seconds
LOOK, LOOKS = 2.0, 3  # s between looks, and how many in a row have to find everybody at rest
RESTING = ("Done", "Failed")
NO_TURN = ("no turn ended cleanly yet", "no clean turn is left")  # what Checkpointed says where nothing is to be saved


def find_unrest(agent: Json | None, pod: Json | None) -> str:
    """What an agent and its pod are instead of being at rest; empty when they are."""
    if agent is None:
        return "its Agent object is gone"
    status = status_of(agent)
    ready = find_condition(agent, "Ready")
    checks = (
        (status.get("phase") in RESTING, f"its phase is {status.get('phase')}"),
        (ready.get("status") == "True", f"it is not Ready: {ready.get('reason')}: {ready.get('message')}"),
        ((status.get("turn") or {}).get("state", "Running") != "Running", "its turn is not over"),
        (_is_saved(agent), f"it is not saved: {find_condition(agent, 'Checkpointed').get('message')}"),
        (_is_up(pod), "its pod is not up"),
    )
    return next((words for holds, words in checks if not holds), "")


def wait_rest(stage: Stage, limit: float = LIMIT) -> Mapping[str, str]:
    """Wait until everybody rests; by name what those are instead who do not within `limit` seconds."""
    end, quiet = time.monotonic() + limit, 0
    nobody = {name_of(column): "nobody could look at it for long enough" for column in stage.columns}
    unrest: Mapping[str, str] = nobody
    while time.monotonic() < end:
        try:
            unrest = _look(stage)
        except (OSError, pykube.exceptions.PyKubeError) as error:
            unrest = dict.fromkeys(nobody, f"it could not be looked at: {error}")
        quiet = 0 if unrest else quiet + 1
        if quiet == LOOKS:
            return {}
        time.sleep(LOOK)
    return unrest or nobody


def _look(stage: Stage) -> Mapping[str, str]:
    agents, pods = stage.read_agents(), stage.read_pods()
    found = {}
    for column in stage.columns:
        name = name_of(column)
        sandbox = status_of(agents.get(name, {})).get("sandbox") or {}
        if words := find_unrest(agents.get(name), pods.get(sandbox.get("pod", ""))):
            found[name] = words
    return found


def _is_saved(agent: Json) -> bool:
    """Its newest clean turn is in the bucket; or it has none, as one that came back blank."""
    saved = find_condition(agent, "Checkpointed")
    return saved.get("status") == "True" or saved.get("message") in NO_TURN


def _is_up(pod: Json | None) -> bool:
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return False
    return find_condition(pod, "Ready").get("status") == "True"
