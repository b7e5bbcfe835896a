"""The faults by row. Each is a context: entered it strikes, and what it holds at a distance ends when it is left.

A strike returns once it has struck: what was to go has gone, as the cluster shows it. What comes after is not its
business. `stage.release` is called as soon as the blow has fallen, so that whatever was held in its state goes on.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from hack.faults import strike_bucket, strike_cluster, strike_node, strike_pod
from hack.faults.scene import Needs
from hack.faults.stage import Stage
from hack.faults.table import Row

Strike = Callable[[Stage], AbstractContextManager[None]]

STRIKES: Mapping[Row, Strike] = {
    Row.OPERATOR_KILLED: strike_cluster.kill_operator,
    Row.OPERATOR_AND_NODE_GONE: strike_node.stop,
    Row.HARNESS_KILLED: strike_pod.kill_harness,
    Row.BRIDGE_KILLED: strike_pod.kill_bridge,
    Row.BRIDGE_HUNG: strike_pod.hang_bridge,
    Row.AGENT_OOM: strike_pod.exhaust_memory,
    Row.CONTAINER_KILLED: strike_pod.kill_containers,
    Row.POD_DELETED: strike_pod.delete,
    Row.POD_FORCE_DELETED: strike_pod.force_delete,
    Row.POD_EVICTED: strike_pod.evict,
    Row.EVICTED_FOR_STORAGE: strike_pod.exhaust_storage,
    Row.NODE_DRAINED: strike_node.drain,
    Row.NODE_CUT_AND_BACK: strike_node.cut_and_join,
    Row.NODE_CUT_FOR_GOOD: strike_node.cut,
    Row.NODE_REBOOTED: strike_node.reboot,
    Row.CLUSTER_REBOOTED: strike_node.reboot_cluster,
    Row.BUCKET_AWAY: strike_bucket.take_away,
    Row.BUCKET_SLOW: strike_bucket.slow_down,
    Row.NEWEST_DAMAGED: strike_bucket.damage_newest,
    Row.ALL_DAMAGED: strike_bucket.damage_all,
    Row.API_SERVER_AWAY: strike_cluster.stop_api_server,
    Row.TWO_LEADERS: strike_cluster.have_two_leaders,
    Row.OPERATOR_UPGRADED: strike_cluster.upgrade,
}

NEEDS: Mapping[Row, Needs] = {
    Row.AGENT_OOM: Needs(memory=strike_pod.MEMORY),
    Row.EVICTED_FOR_STORAGE: Needs(home=strike_pod.HOME),
    Row.NEWEST_DAMAGED: Needs(clean_turns=2),
    Row.ALL_DAMAGED: Needs(clean_turns=2),
}
