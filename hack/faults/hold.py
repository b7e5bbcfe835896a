"""Holds a sandbox in a state that would pass in a moment, from the node: the cut of an archive, and its upload.

The packer is stopped while its file is half written; an upload does not reach the bucket; a gate of the model keeps
turns and set-ups where they are. All of it goes on when released, or ends with the pod. Works where the cluster's
nodes are namespaces of this machine.
"""

import os
import signal
import threading
import time
import urllib.request
from contextlib import suppress

from pykube.objects import Pod

from hack.chaos.operators import Operator
from hack.chaos.processes import PROC, find_processes, open_network, run_in_network, send_signal
from hack.demo.install import PARTS
from hack.demo.run import DemoError
from hack.faults.groups import find_group
from tests.support.e2e_world import World

GLANCE = 0.02  # s between looks at the packer's volume
SLOW = 10_000  # microseconds of each tenth of a second that a slow packer runs
BUCKET_PORT = "8333"
MODEL_PORT = 8080
RULE = ("OUTPUT", "--protocol", "tcp", "--dport", BUCKET_PORT, "--jump", "DROP")
CHECKPOINTER = "checkpointer"


class CutHold(threading.Thread):
    """Stops the packer of one pod in the middle of its next archive."""

    def __init__(self, sandbox: Operator) -> None:
        super().__init__(name="cut", daemon=True)
        self._container = sandbox.containers[CHECKPOINTER]
        process = PROC / str(find_processes([self._container])[0])
        self._volume = process / "root" / "checkpoints"
        self._quota = find_group((process / "cgroup").read_text(), "cpu") / "cpu.cfs_quota_us"
        self._ending = threading.Event()
        self.caught = threading.Event()

    def run(self) -> None:
        """Slow the packer down, so that its file is seen before it is whole, and stop it then."""
        self._quota.write_text(str(SLOW))
        while not self._ending.is_set():
            with suppress(OSError):
                if any(self._volume.glob("*.tar.zst.partial")):
                    send_signal([self._container], signal.SIGSTOP)
                    self._keep_if_held()
                    if self.caught.is_set():
                        return
            time.sleep(GLANCE)

    def _keep_if_held(self) -> None:
        """The archive may have been finished in the moment between look and signal."""
        if any(self._volume.glob("*.tar.zst.partial")):
            self.caught.set()
        else:
            send_signal([self._container], signal.SIGCONT)

    def release(self) -> None:
        self._ending.set()
        self.join()
        with suppress(OSError):  # the group went with its container
            self._quota.write_text("-1")
        send_signal([self._container], signal.SIGCONT)


class UploadHold:
    """Keeps one pod from the bucket until it is released."""

    def __init__(self, sandbox: Operator) -> None:
        self._network = open_network(sandbox.containers[CHECKPOINTER])
        run_in_network(self._network, "iptables", "--wait", "--insert", *RULE)
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            with suppress(DemoError):  # the network went with its pod
                run_in_network(self._network, "iptables", "--wait", "--delete", *RULE)
            os.close(self._network)


class Gate:
    """Lets the turns of a row go on, and what its sandboxes are set up with. Asked without the API server."""

    def __init__(self, world: World, tag: str) -> None:
        self._world, self._tag = world, tag
        self._address = self._find()

    def open(self) -> None:
        """Open it, at the model's new address where it was started again."""
        try:
            self._post()
        except OSError:
            self._address = self._world.until("the model should have an address", self._find)
            self._world.until("the model should answer", self._is_posted)

    def _is_posted(self) -> bool:
        try:
            self._post()
        except OSError:
            return False
        return True

    def _post(self) -> None:
        request = urllib.request.Request(f"http://{self._address}:{MODEL_PORT}/_gates/{self._tag}", b"")
        urllib.request.urlopen(request, timeout=5).close()

    def _find(self) -> str:
        pods = self._world.read_all(Pod, PARTS, {"app": "scripted-model"})
        return next((pod["status"]["podIP"] for pod in pods if "podIP" in pod["status"]), "")
