"""Pods over HTTP, without a program in between: made, deleted, and watched, with the time at which each word was heard.

It must not know what is measured.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pykube
import requests

from hack.demo.run import DemoError, wait_for

Json = dict[str, Any]
LIMIT = 300.0  # s that anything here may take
LOOK = 0.01  # s between looks at what was heard
AGAIN = 0.5  # s after a watch broke off
MERGE = {"content-type": "application/merge-patch+json"}


@dataclass(frozen=True)
class Word:
    """What the watch said of a pod, `at` in Unix seconds."""

    at: float
    kind: str
    pod: Json


Holds = Callable[[Word], bool]


class Kube:
    """The pods of one namespace, for one thread."""

    def __init__(self, kubeconfig: str, context: str, namespace: str) -> None:
        config = pykube.KubeConfig.from_file(kubeconfig)
        config.set_current_context(context)
        self._client, self.namespace = pykube.HTTPClient(config, timeout=30), namespace

    def create(self, body: Json, plural: str = "pods") -> Json:
        """Make an object of the core API."""
        return self._read(self._client.post(**self._at(plural), data=json.dumps(body)))

    def read(self, path: str, version: str = "v1") -> Json:
        """One object, or a list."""
        return self._read(self._client.get(**{**self._at(path), "version": version}))

    def delete_pod(self, name: str) -> None:
        """At once: nobody waits for its containers."""
        self._read(self._client.delete(**self._at(f"pods/{name}"), data=json.dumps({"gracePeriodSeconds": 0})))

    def write_status(self, name: str, status: Json) -> None:
        """As a kubelet does."""
        body = json.dumps({"status": status})
        self._read(self._client.patch(**self._at(f"pods/{name}/status"), data=body, headers=MERGE))

    def watch(self) -> Iterator[Word]:
        """Every pod that is there, and then every change, until the server ends it."""
        with self._client.get(**self._at("pods"), params={"watch": "1"}, stream=True, timeout=(10, None)) as answer:
            for line in answer.iter_lines(chunk_size=None):
                said = json.loads(line)
                yield Word(time.time(), said["type"], said["object"])

    def _at(self, path: str) -> Json:
        return {"version": "v1", "namespace": self.namespace, "url": path}

    def _read(self, answer: requests.Response) -> Json:
        if not answer.ok:
            raise DemoError(f"the API server refused: {answer.json().get('message')}")
        found: Json = answer.json()
        return found


class PodWatch:
    """Listens on a thread of its own and keeps every word."""

    def __init__(self, kube: Kube) -> None:
        self._kube, self._words, self._stopped = kube, list[Word](), threading.Event()
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            with suppress(OSError, ValueError):
                self._words.extend(self._kube.watch())
            self._stopped.wait(AGAIN)

    def stop(self) -> None:
        """Begin no further watch; the one that is open ends with the process."""
        self._stopped.set()

    def forget(self) -> None:
        """What was heard so far is of no use any more."""
        self._words.clear()

    def find(self, holds: Holds) -> Word | None:
        """The first word of which that is so."""
        return next((word for word in tuple(self._words) if holds(word)), None)

    def wait(self, what: str, holds: Holds) -> Word:
        """The same, once it was said."""
        return wait_for(what, lambda: self.find(holds), LIMIT, LOOK)


@contextmanager
def watching(kube: Kube) -> Iterator[PodWatch]:
    """A watch for as long as the block runs."""
    watch = PodWatch(kube)
    try:
        yield watch
    finally:
        watch.stop()
