"""A local port that leads to something in the cluster. Works on every cluster that kubectl reaches."""

import contextlib
import re
import subprocess
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from hack.demo.run import DemoError
from hack.demo.target import Target

LISTENS = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
START_LIMIT = 20.0  # s


class Forward:
    """`kubectl port-forward`, started when it is first needed and again when it went: pods come and go behind it."""

    def __init__(self, target: Target, namespace: str, what: str, port: int) -> None:
        self._words = [f"--namespace={namespace}", "port-forward", "--address=127.0.0.1", what, f":{port}"]
        self._target = target
        self._process: subprocess.Popen[str] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> int:
        """The local port.

        Raises:
            DemoError: nothing runs there that a port could lead to.
        """
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._start()
        return self._port

    def close(self) -> None:
        """End it; `open` starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        process = subprocess.Popen(
            [*self._target.build_kubectl(), *self._words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        late = threading.Timer(START_LIMIT, process.kill)
        late.start()
        try:
            found = LISTENS.search(process.stdout.readline() if process.stdout else "")
        finally:
            late.cancel()
        if found is None:
            process.kill()
            words = process.communicate()[1].strip()
            raise DemoError(f"there is no way to {self._words[3]}: {words or 'kubectl port-forward did not start'}")
        self._process, self._port = process, int(found[1])


@contextlib.contextmanager
def forwarding(target: Target, namespace: str, what: str, port: int) -> Iterator[int]:
    """A local port for as long as the block runs."""
    with Forward(target, namespace, what, port) as forward:
        yield forward.open()
