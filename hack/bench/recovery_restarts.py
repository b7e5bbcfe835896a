"""`python3 -m hack.bench.recovery_restarts AGENTS ROUNDS`: an operator's process is restarted over many sandboxes.

Needs the network and the mounts for itself; `measure_restarts` starts it that way. Its last line is what it found. The
process is started again at once: what a kubelet needs for that is not in the figures.
"""

import http.client
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from hack.bench.recovery_kube import Json, Kube
from hack.bench.recovery_report import Restart
from hack.bench.recovery_rig import SPACE, SYSTEM, Rig, having_rig, open_pods
from hack.demo.run import DemoError, wait_for
from hack.demo.show import Show
from hack.demo.target import ROOT
from tests.support.e2e_objects import build_swarm

SWARMS = 10
OPERATOR = "import sys; from alineod.cli.main import main; sys.exit(main(['operator']))"
PRIVATE = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
PREPARE = 'ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/alineod && exec "$@"'
KINDS: Mapping[str, signal.Signals] = {"clean stop": signal.SIGTERM, "crash": signal.SIGKILL}
LIMIT = 600.0  # s
LOOK = 0.05
CALM = 5.0  # s before a fault


def measure_restarts(agents: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Seconds by kind of restart and step."""
    command = [*PRIVATE, "sh", "-c", PREPARE, "sh", sys.executable, "-m", __name__, str(agents), str(rounds)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise DemoError(f"the restarts could not be measured: the process ended with code {done.returncode}")
    found: dict[str, dict[str, list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return found


class Operator:
    """The process, over one rig; `start` it again and again."""

    def __init__(self, rig: Rig, log: Path) -> None:
        self._rig, self._log = rig, log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """As a container is started."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", OPERATOR], env=self._rig.env, stdout=log, stderr=log
            )

    def end(self, number: signal.Signals) -> None:
        """Signal it, and wait until it is gone."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()

    def read_health(self) -> Json:
        """What it says of itself; empty while it says nothing."""
        connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=5)
        try:
            connection.request("GET", "/v1/health")
            health: Json = json.loads(connection.getresponse().read())
            return health
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            connection.close()

    def is_serving(self, after: int = 0) -> bool:
        """Whether it serves, in an epoch after that one."""
        health = self.read_health()
        return health.get("phase") == "serving" and int(health["epoch"]) > after

    def read_tail(self) -> str:
        """Its last words."""
        return self._log.read_text(errors="replace")[-3000:]


def run(agents: int, rounds: int, show: Show) -> dict[str, dict[str, list[float]]]:
    """Every kind of restart in turn."""
    found: dict[str, dict[str, list[float]]] = {kind: {} for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder, having_rig(Path(folder)) as rig:
        operator = Operator(rig, Path(folder) / "operator.log")
        operator.start()
        try:
            with show.step(f"{agents} agents in the middle of a turn"):
                fill(rig, operator, agents)
            for number in range(rounds):
                for kind in KINDS:
                    with show.step(f"round {number + 1}: {kind}"):
                        for step, seconds in restart(rig, operator, KINDS[kind], agents):
                            found[kind].setdefault(step, []).append(seconds)
        except DemoError as error:
            raise DemoError(f"{error}; the operator's last words:\n{operator.read_tail()}") from error
        finally:
            operator.end(signal.SIGKILL)
    return found


def fill(rig: Rig, operator: Operator, agents: int) -> None:
    """Have the agents, each in the middle of a turn."""
    wait("the operator serves", operator.is_serving)
    names = [f"a{number:03d}" for number in range(agents // SWARMS)]
    swarms = [build_swarm(f"s{n}", [{"name": name, "prompt": "Go on."} for name in names]) for n in range(SWARMS)]
    placed = [swarm | {"metadata": {**swarm["metadata"], "namespace": SPACE}} for swarm in swarms]
    if not (said := rig.server.apply(*placed)).ok:
        raise DemoError(f"the API server refused the swarms: {said.text}")
    wait(f"{agents} turns run", lambda: operator.read_health().get("running") == agents)


def restart(rig: Rig, operator: Operator, number: signal.Signals, agents: int) -> Iterator[tuple[str, float]]:
    """One fault, and how long each step took."""
    time.sleep(CALM)
    before = operator.read_health()
    begun = time.time()
    operator.end(number)
    operator.start()
    wait("the next one serves", lambda: operator.is_serving(before["epoch"]))
    served, lease = time.time(), read_lease(open_pods(rig.kubeconfig, SYSTEM))
    # Not every one of a leader's words has to be in before it serves.
    wait(f"{agents} agents are reattached", lambda: len(read_reattached(rig, before["seq"])) == agents)
    yield Restart.LEASE, lease - begun
    yield Restart.REATTACHED, max(read_reattached(rig, before["seq"])) - lease
    yield Restart.SERVING, served - lease
    yield Restart.BACK, served - begun


def read_lease(kube: Kube) -> float:
    """When it was taken, in Unix seconds."""
    spec = kube.read("leases/alineod", "coordination.k8s.io/v1")["spec"]
    return datetime.fromisoformat(spec["acquireTime"]).timestamp()


def read_reattached(rig: Rig, after: int) -> list[float]:
    """When each agent was, by the ledger's rows after that one."""
    program = "import sys; from alineod.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "ledger", "dump", f"--dir={rig.ledger}", f"--after={after}"]
    dumped = subprocess.run(command, env=rig.env, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in dumped.stdout.splitlines()]
    return [row["time"] for row in rows if row["event"] == "agent.restored" and row["payload"]["rung"] == "Reattach"]


def wait(what: str, holds: Callable[[], bool]) -> None:
    """Until it holds."""
    wait_for(what, lambda: holds() or None, LIMIT, LOOK)


def main(arguments: Sequence[str]) -> int:
    agents, rounds = map(int, arguments)
    try:
        found = run(agents, rounds, Show(sys.stderr))
    except DemoError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
