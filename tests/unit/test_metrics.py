"""The series an operator's dashboards and alerts read, by name."""

import socket
import urllib.request

from prometheus_client.openmetrics.exposition import generate_latest

from alineod.metrics import Metrics, start_metrics_server

NAMES = {
    "alineod_watch_events",
    "alineod_sweep_ghosts",
    "alineod_sweep_missed",
    "alineod_sweeps",
    "alineod_passes",
    "alineod_pass_seconds",
    "alineod_queue_depth",
    "alineod_queue_oldest_seconds",
    "alineod_api_requests",
    "alineod_api_writes",
    "alineod_api_request_seconds",
    "alineod_lease_epoch",
    "alineod_lease_renew_seconds",
    "alineod_loop_lag_seconds",
    "alineod_takeover_seconds",
    "alineod_agents",
    "alineod_agent_returns",
    "alineod_agent_blank_returns",
    "alineod_agent_ends",
    "alineod_turns_interrupted",
    "alineod_restores_in_flight",
    "alineod_restores_waiting",
    "alineod_ledger_append_seconds",
    "alineod_ledger_commit_seconds",
    "alineod_ledger_confirm_seconds",
    "alineod_ledger_batch_events",
    "alineod_ledger_failures",
    "alineod_ledger_committed_seq",
    "alineod_ledger_acknowledged_seq",
    "alineod_ledger_lag_events",
    "alineod_ledger_lag_seconds",
    "alineod_ledger_failing_seconds",
}


def observe_everything(metrics: Metrics) -> None:
    metrics.count_event("pods")
    metrics.count_sweep("done")
    metrics.count_ghosts("pods", 2)
    metrics.count_missed("agents", 1)
    metrics.observe_pass("done", 0.2)
    metrics.observe_queue(lambda: 3, lambda: 1.5)
    metrics.observe_call("get", "pods", 200, 0.01)
    metrics.observe_call("apply_status", "agents.alineo.dev", 409, 0.01)
    metrics.observe_renewal(0.01)
    metrics.set_epoch(4)
    metrics.observe_lag(0.1)
    metrics.set_takeover("total", 1.5)
    metrics.set_agents({"Running": 2, "Done": 1})
    metrics.count_return("Restore")
    metrics.count_blank_return()
    metrics.count_end("lost")
    metrics.count_interruption("OOMKilled")
    metrics.set_restores(in_flight=2, waiting=1)
    metrics.observe_append(0.05)
    metrics.observe_commit(7, 0.01)
    metrics.observe_confirm(0.04)
    metrics.count_failure("BucketDenied")
    metrics.observe_ledger(committed=lambda: 12, acknowledged=lambda: 9, lag=lambda: 4.5, failing=lambda: 3.5)


def test_names_are_what_people_have_written_into_dashboards() -> None:
    metrics = Metrics()
    assert {family.name for family in metrics.registry.collect()} == NAMES
    assert all(family.documentation.endswith(".") for family in metrics.registry.collect())


def test_values_are_what_was_observed() -> None:
    metrics = Metrics()
    observe_everything(metrics)
    read = metrics.registry.get_sample_value
    assert read("alineod_sweep_ghosts_total", {"kind": "pods"}) == 2
    assert read("alineod_queue_depth") == 3
    assert read("alineod_queue_oldest_seconds") == 1.5
    assert read("alineod_api_writes_total", {"resource": "agents.alineo.dev"}) == 1
    assert read("alineod_api_writes_total", {"resource": "pods"}) is None
    codes = {"verb": "apply_status", "resource": "agents.alineo.dev", "code": "409"}
    assert read("alineod_api_requests_total", codes) == 1
    assert read("alineod_agents", {"phase": "Running"}) == 2
    metrics.set_agents({"Done": 3})
    assert read("alineod_agents", {"phase": "Running"}) is None
    assert read("alineod_agent_blank_returns_total") == 1
    assert read("alineod_agent_ends_total", {"outcome": "lost"}) == 1
    assert read("alineod_turns_interrupted_total", {"reason": "OOMKilled"}) == 1
    assert read("alineod_restores_in_flight") == 2
    assert read("alineod_restores_waiting") == 1
    assert read("alineod_lease_epoch") == 4
    assert read("alineod_takeover_seconds", {"step": "total"}) == 1.5
    assert read("alineod_ledger_batch_events_sum") == 7
    assert read("alineod_ledger_append_seconds_count") == 1
    assert read("alineod_ledger_commit_seconds_sum") == 0.01
    assert read("alineod_ledger_confirm_seconds_sum") == 0.04
    assert read("alineod_ledger_failures_total", {"reason": "BucketDenied"}) == 1
    assert read("alineod_ledger_committed_seq") == 12
    assert read("alineod_ledger_acknowledged_seq") == 9
    assert read("alineod_ledger_lag_events") == 3
    assert read("alineod_ledger_lag_seconds") == 4.5
    assert read("alineod_ledger_failing_seconds") == 3.5


def test_two_operators_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.set_epoch(1)
    assert other.registry.get_sample_value("alineod_lease_epoch") == 0


def test_they_are_served_as_open_metrics() -> None:
    metrics = Metrics()
    observe_everything(metrics)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stop = start_metrics_server(metrics, port)
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
    finally:
        stop()
    assert 'alineod_agent_returns_total{rung="Restore"} 1.0' in text
    assert text.endswith("# EOF\n")
    assert generate_latest(metrics.registry).decode().count("# TYPE") == len(NAMES)


def test_the_loops_lag_can_be_told_above_and_below_a_tenth_of_a_second() -> None:
    """The promise is that the loop is never held up for longer."""
    metrics = Metrics()
    for seconds in (0.09, 0.1, 0.11):
        metrics.observe_lag(seconds)
    read = metrics.registry.get_sample_value
    assert read("alineod_loop_lag_seconds_bucket", {"le": "0.1"}) == 2
    assert read("alineod_loop_lag_seconds_count") == 3
