"""The rows and columns of the matrix, which cells cannot be, and which come with a later step. Pure."""

from collections.abc import Iterator, Sequence
from enum import StrEnum


class Column(StrEnum):
    """A state an agent is in when the fault strikes."""

    IDLE = "idle"
    BEFORE_OUTPUT = "before-output"
    WITH_TEXT = "with-text"
    IN_TOOL = "in-tool"
    CUTTING = "cutting"
    UPLOADING = "uploading"
    HELD = "held"
    PROVISIONING = "provisioning"
    DONE = "done"
    PAUSED_FROZEN = "paused-frozen"
    PAUSED_HIBERNATED = "paused-hibernated"
    BLOCKED = "blocked"


class Row(StrEnum):
    """A fault."""

    OPERATOR_KILLED = "operator-killed"
    OPERATOR_AND_NODE_GONE = "operator-and-node-gone"
    HARNESS_KILLED = "harness-killed"
    BRIDGE_KILLED = "bridge-killed"
    BRIDGE_HUNG = "bridge-hung"
    AGENT_OOM = "agent-oom"
    CONTAINER_KILLED = "container-killed"
    POD_DELETED = "pod-deleted"
    POD_FORCE_DELETED = "pod-force-deleted"
    POD_EVICTED = "pod-evicted"
    EVICTED_FOR_STORAGE = "evicted-for-storage"
    NODE_DRAINED = "node-drained"
    NODE_CUT_AND_BACK = "node-cut-and-back"
    NODE_CUT_FOR_GOOD = "node-cut-for-good"
    NODE_REBOOTED = "node-rebooted"
    CLUSTER_REBOOTED = "cluster-rebooted"
    BUCKET_AWAY = "bucket-away"
    BUCKET_SLOW = "bucket-slow"
    NEWEST_DAMAGED = "newest-checkpoint-damaged"
    ALL_DAMAGED = "all-checkpoints-damaged"
    API_SERVER_AWAY = "api-server-away"
    TWO_LEADERS = "two-leaders"
    OPERATOR_UPGRADED = "operator-upgraded"
    DISK_LOST = "disks-lost"
    CLUSTER_LOST = "cluster-lost"


COLUMN_WORDS = {
    Column.IDLE: "its last turn ended cleanly and is saved; nobody waits for it",
    Column.BEFORE_OUTPUT: "in a turn, before the model has said anything",
    Column.WITH_TEXT: "in a turn, with text already said",
    Column.IN_TOOL: "in a turn, in a tool call",
    Column.CUTTING: "at the end of a turn, while the archive is cut",
    Column.UPLOADING: "after a turn, with the archive cut and not yet in the bucket",
    Column.HELD: "held by waitFor; it has no pod, so what is struck is the agent it waits for",
    Column.PROVISIONING: "its pod runs its setup; no turn has begun",
    Column.DONE: "finished, its result read; the parent of all the others",
    Column.PAUSED_FROZEN: "paused by freeze",
    Column.PAUSED_HIBERNATED: "paused by hibernate",
    Column.BLOCKED: "a cut turn waits for somebody's decision",
}

ROW_WORDS = {
    Row.OPERATOR_KILLED: "every process of the leading operator's pod gets SIGKILL",
    Row.OPERATOR_AND_NODE_GONE: "the node of the leading operator, and of every agent, loses its power for good",
    Row.HARNESS_KILLED: "Pi gets SIGKILL",
    Row.BRIDGE_KILLED: "the bridge, PID 1 of the agent's container, gets SIGKILL",
    Row.BRIDGE_HUNG: "the bridge gets SIGSTOP from the node and nothing wakes it",
    Row.AGENT_OOM: "a process in the agent's container outgrows its memory limit and the bridge is the kernel's victim",
    Row.CONTAINER_KILLED: "the runtime kills the agent's container and the checkpointer's",
    Row.POD_DELETED: "kubectl delete pod",
    Row.POD_FORCE_DELETED: "kubectl delete pod --force --grace-period=0",
    Row.POD_EVICTED: "the eviction API",
    Row.EVICTED_FOR_STORAGE: "the home outgrows its sizeLimit and the kubelet evicts the pod",
    Row.NODE_DRAINED: "kubectl drain",
    Row.NODE_CUT_AND_BACK: "the node's network is cut for half a minute",
    Row.NODE_CUT_FOR_GOOD: "the node's network is cut until every agent is back elsewhere, then joined",
    Row.NODE_REBOOTED: "the node loses its power and comes back",
    Row.CLUSTER_REBOOTED: "both nodes and the control plane stop and come back",
    Row.BUCKET_AWAY: "the bucket is away for a minute, and the pods of those who rest are deleted meanwhile",
    Row.BUCKET_SLOW: "for a minute each answer of the bucket comes up to two seconds late",
    Row.NEWEST_DAMAGED: "the newest checkpoint of each agent is damaged in the bucket and its pod is gone",
    Row.ALL_DAMAGED: "every checkpoint of each agent is damaged in the bucket and its pod is gone",
    Row.API_SERVER_AWAY: "the API server does not answer for a minute",
    Row.TWO_LEADERS: "the leader is stopped until another leads, and then wakes",
    Row.OPERATOR_UPGRADED: "helm upgrade rolls the operator's pods",
    Row.DISK_LOST: "the disks of the cluster are lost and the bucket is kept",
    Row.CLUSTER_LOST: "the cluster is lost and the bucket is brought to another",
}

NO_HARNESS = "Pi runs only while a turn runs"
NO_POD = "it has no pod, and its first turn is not there to be saved"
NOTHING_SAVED = "no turn of it is saved yet, so no checkpoint is there to be damaged"

LATER_COLUMNS = {
    Column.PAUSED_FROZEN: "joins with step 4",
    Column.PAUSED_HIBERNATED: "joins with step 4",
    Column.BLOCKED: "joins with step 4",
}
TODAY = tuple(column for column in Column if column not in LATER_COLUMNS)
LATER_ROWS = {Row.DISK_LOST: "joins with step 5", Row.CLUSTER_LOST: "joins with step 5"}

TURNING = (Column.BEFORE_OUTPUT, Column.WITH_TEXT, Column.IN_TOOL)
DAMAGING = (Row.NEWEST_DAMAGED, Row.ALL_DAMAGED)
NODE_ROWS = (
    Row.OPERATOR_AND_NODE_GONE,
    Row.NODE_DRAINED,
    Row.NODE_CUT_AND_BACK,
    Row.NODE_CUT_FOR_GOOD,
    Row.NODE_REBOOTED,
)
"""Rows that strike a whole node: every agent is on it."""


def find_later(row: Row, column: Column) -> str:
    """When a cell joins; empty for one that is there."""
    return LATER_ROWS.get(row) or LATER_COLUMNS.get(column, "")


def find_impossible(row: Row, column: Column) -> str:
    """Why a cell cannot be; empty for one that can."""
    if row is Row.HARNESS_KILLED and column not in TURNING:
        return NO_HARNESS
    if row in DAMAGING and column is Column.HELD:
        return NO_POD
    if row in DAMAGING and column is Column.PROVISIONING:
        return NOTHING_SAVED
    return ""


def find_cells(row: Row, columns: Sequence[Column] = TODAY) -> tuple[Column, ...]:
    """The cells of a row that are run with these columns on the stage."""
    return tuple(c for c in columns if not find_later(row, c) and not find_impossible(row, c))


def list_rows() -> Iterator[Row]:
    """The rows that can be run."""
    yield from (row for row in Row if row not in LATER_ROWS)
