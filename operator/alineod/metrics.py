"""What the operator counts and measures, under the names that dashboards and alerts use.

One `Metrics` is built by the composition root and passed to who observes. It must not know what it is told about.
"""

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

# From a read served by memory to a call at its deadline.
_CALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)
# From a pass that finds nothing to do to one at its limit.
_PASS_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)

# To the most that one transaction takes.
_BATCH_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Around the tenth of a second above which callers begin to feel it.
_LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

# The verbs of `kube.gateway` that change something in the cluster.
_WRITES = frozenset({"create", "delete", "apply", "apply_status", "patch"})


class Metrics:
    """Every series of the operator in a registry of its own; times are in seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._count_watched()
        self._count_passes()
        self._count_calls()
        self._count_leadership()
        self._count_work()
        self._count_ledger()

    def _count_watched(self) -> None:
        self._events = self._counter("alineod_watch_events", "Watch events received.", "kind")
        self._ghosts = self._counter(
            "alineod_sweep_ghosts", "Objects a sweep found gone that no watch had told of; should stay near 0.", "kind"
        )
        self._missed = self._counter(
            "alineod_sweep_missed", "Objects a sweep found that no watch had told of in time; should stay at 0.", "kind"
        )
        self._sweeps = self._counter("alineod_sweeps", "Sweeps by result: done or failed.", "result")

    def _count_passes(self) -> None:
        self._passes = self._counter("alineod_passes", "Passes over a key by outcome.", "outcome")
        self._pass_seconds = Histogram(
            "alineod_pass_seconds", "Duration of a pass.", registry=self.registry, buckets=_PASS_BUCKETS
        )
        self._depth = self._gauge("alineod_queue_depth", "Keys that wait for a worker.")
        self._age = self._gauge("alineod_queue_oldest_seconds", "How long the first of them has waited.")

    def _count_calls(self) -> None:
        self._calls = self._counter(
            "alineod_api_requests",
            "Requests to the API server by verb, resource and code; code 0 had no answer.",
            "verb",
            "resource",
            "code",
        )
        self._writes = self._counter("alineod_api_writes", "Requests that may change something.", "resource")
        self._call_seconds = Histogram(
            "alineod_api_request_seconds",
            "Duration of a request.",
            ("verb",),
            registry=self.registry,
            buckets=_CALL_BUCKETS,
        )

    def _count_leadership(self) -> None:
        self._epoch = self._gauge("alineod_lease_epoch", "The epoch this process leads in; 0 on a standby.")
        self._renewals = Histogram(
            "alineod_lease_renew_seconds",
            "Duration of a renewal of the lease.",
            registry=self.registry,
            buckets=_CALL_BUCKETS,
        )
        self._takeover = self._gauge(
            "alineod_takeover_seconds",
            "How long becoming the leader took, by step; some go on beside each other. `total` is from the lease until"
            " the API serves.",
            "step",
        )
        self._lag = Histogram(
            "alineod_loop_lag_seconds",
            "How late the event loop came to its turn, looked at twenty times a second.",
            registry=self.registry,
            buckets=_LAG_BUCKETS,
        )

    def _count_work(self) -> None:
        self._agents = self._gauge("alineod_agents", "Agents by phase.", "phase")
        self._returns = self._counter("alineod_agent_returns", "Agents that came back, by the rung that held.", "rung")
        self._blank = self._counter(
            "alineod_agent_blank_returns", "Those of them that came back by Restore without any conversation."
        )
        self._ends = self._counter(
            "alineod_agent_ends",
            "Agents that ended, by outcome; `released` ones had finished before and could not be brought back.",
            "outcome",
        )
        self._interrupted = self._counter(
            "alineod_turns_interrupted",
            "Turns that were cut off, by the reason in the condition; `Other` for reasons that are not well known.",
            "reason",
        )
        self._restores = self._gauge("alineod_restores_in_flight", "Restores that are under way.")
        self._restores_waiting = self._gauge(
            "alineod_restores_waiting",
            "Restores that wait: for a place among those under way, or for what the agent's condition says.",
        )

    def _count_ledger(self) -> None:
        def histogram(name: str, help_text: str, buckets: Sequence[float] = _CALL_BUCKETS) -> Histogram:
            return Histogram(f"alineod_ledger_{name}", help_text, registry=self.registry, buckets=buckets)

        self._append_seconds = histogram("append_seconds", "From an append's call to its acknowledgement.")
        self._commit_seconds = histogram("commit_seconds", "Duration of a transaction on the ledger's volume.")
        self._confirm_seconds = histogram("confirm_seconds", "How long the bucket took to confirm a transaction.")
        self._batch = histogram("batch_events", "Events in a transaction, repeated ones too.", _BATCH_BUCKETS)
        self._failures = self._counter(
            "alineod_ledger_failures", "Tries to write or to confirm that failed, by the reason in the log.", "reason"
        )
        self._committed = self._gauge("alineod_ledger_committed_seq", "The newest event on the ledger's volume.")
        self._acknowledged = self._gauge(
            "alineod_ledger_acknowledged_seq", "The newest event that is acknowledged: with a bucket, that is in it."
        )
        self._lag_events = self._gauge("alineod_ledger_lag_events", "Events that wait for their acknowledgement.")
        self._lag_seconds = self._gauge("alineod_ledger_lag_seconds", "How long the oldest of them has waited.")
        self._failing = self._gauge(
            "alineod_ledger_failing_seconds", "How long writing or confirming has been failing; 0 while it does not."
        )

    def count_event(self, kind: str) -> None:
        """A watch event about an object of this kind."""
        self._events.labels(kind).inc()

    def count_sweep(self, result: str) -> None:
        """A sweep ended: `done` or `failed`."""
        self._sweeps.labels(result).inc()

    def count_ghosts(self, kind: str, number: int) -> None:
        """Objects found gone, and found missing from the store."""
        self._ghosts.labels(kind).inc(number)

    def count_missed(self, kind: str, number: int) -> None:
        """Objects that a sweep had to fetch because no watch brought them."""
        self._missed.labels(kind).inc(number)

    def observe_pass(self, outcome: str, seconds: float) -> None:
        """A pass over a key."""
        self._passes.labels(outcome).inc()
        self._pass_seconds.observe(seconds)

    def observe_queue(self, depth: Callable[[], float], age: Callable[[], float]) -> None:
        """Read the queue's depth and the age of its head whenever someone scrapes."""
        self._depth.set_function(depth)
        self._age.set_function(age)

    def observe_call(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """A request to the API server."""
        self._calls.labels(verb, resource, str(code)).inc()
        self._call_seconds.labels(verb).observe(seconds)
        if verb in _WRITES:
            self._writes.labels(resource).inc()

    def observe_renewal(self, seconds: float) -> None:
        """A renewal of the lease."""
        self._renewals.observe(seconds)

    def set_epoch(self, epoch: int) -> None:
        """This process leads in `epoch`; 0 for not leading."""
        self._epoch.set(epoch)

    def set_takeover(self, step: str, seconds: float) -> None:
        """A step of becoming the leader was taken; `total` is from the lease to the first answer."""
        self._takeover.labels(step).set(seconds)

    def observe_lag(self, seconds: float) -> None:
        """How late the event loop came to its turn."""
        self._lag.observe(seconds)

    def set_agents(self, by_phase: Mapping[str, int]) -> None:
        """How many agents are in each phase; phases that are not named have none."""
        self._agents.clear()
        for phase, number in by_phase.items():
            self._agents.labels(phase).set(number)

    def count_return(self, rung: str) -> None:
        """An agent came back, and which rung held."""
        self._returns.labels(rung).inc()

    def count_blank_return(self) -> None:
        """An agent came back without its conversation."""
        self._blank.inc()

    def count_end(self, outcome: str) -> None:
        """An agent ended, or a finished one was released."""
        self._ends.labels(outcome).inc()

    def count_interruption(self, reason: str) -> None:
        """A turn was cut off. `reason` is one of a set that does not grow."""
        self._interrupted.labels(reason).inc()

    def set_restores(self, in_flight: int, waiting: int) -> None:
        """How many restores are under way, and how many wait."""
        self._restores.set(in_flight)
        self._restores_waiting.set(waiting)

    def observe_append(self, seconds: float) -> None:
        """An append was acknowledged."""
        self._append_seconds.observe(seconds)

    def observe_commit(self, events: int, seconds: float) -> None:
        """A transaction stands."""
        self._batch.observe(events)
        self._commit_seconds.observe(seconds)

    def observe_confirm(self, seconds: float) -> None:
        """What was committed was confirmed."""
        self._confirm_seconds.observe(seconds)

    def count_failure(self, reason: str) -> None:
        """A try to write or to confirm failed."""
        self._failures.labels(reason).inc()

    def observe_ledger(
        self,
        committed: Callable[[], float],
        acknowledged: Callable[[], float],
        lag: Callable[[], float],
        failing: Callable[[], float],
    ) -> None:
        """Read the newest events and the ages (s) whenever someone scrapes."""
        self._committed.set_function(committed)
        self._acknowledged.set_function(acknowledged)
        self._lag_events.set_function(lambda: max(0.0, committed() - acknowledged()))
        self._lag_seconds.set_function(lag)
        self._failing.set_function(failing)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(name, help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(name, help_text, labels, registry=self.registry)


def start_metrics_server(metrics: Metrics, port: int) -> Callable[[], None]:
    """Serve `/metrics` on every address from a thread; what is returned stops it."""
    server, thread = start_http_server(port, registry=metrics.registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
