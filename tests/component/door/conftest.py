"""A real API server with our CRDs and policies in it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from alineod.crd.definition import DEFINITIONS, build_crd
from alineod.generate.policies import build_policies
from tests.support.apiserver import Answer, ApiServer, find_kube, run_apiserver
from tests.support.door_cases import CASES, Change, build_object

Json = dict[str, Any]


class Door:
    """The API server as somebody meets it who writes Swarms and Agents."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.kubectl = server.kubectl
        self.apply = server.apply

    def create(self, body: Json, *, dry_run: bool = False) -> Answer:
        """As `kubectl create` asks for it: unknown fields are refused."""
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.server.request("POST", self._path(body["kind"]) + query, body)

    def replace(self, body: Json) -> Answer:
        """The whole object anew."""
        path = f"{self._path(body['kind'])}/{body['metadata']['name']}"
        version = json.loads(self.server.request("GET", path).text)["metadata"]["resourceVersion"]
        return self.server.request("PUT", path, body | {"metadata": body["metadata"] | {"resourceVersion": version}})

    def read(self, kind: str, name: str) -> Json:
        answer = self.server.request("GET", f"{self._path(kind)}/{name}")
        assert answer.ok, answer.text
        return dict(json.loads(answer.text))

    def delete(self, kind: str, name: str) -> Answer:
        return self.server.request("DELETE", f"{self._path(kind)}/{name}")

    def change(self, change: Change) -> Answer:
        """Make the old, ask for the new, and clear up."""
        old, new = (build_object(change.kind, spec, "changing") for spec in (change.old, change.new))
        made = self.create(old)
        assert made.ok, made.text
        try:
            return self.replace(new)
        finally:
            self.delete(change.kind, "changing")

    def _path(self, kind: str) -> str:
        return f"/apis/alineo.dev/v1alpha1/namespaces/default/{kind.lower()}s"


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With nothing of ours."""
    kube = find_kube()
    if kube is None:
        pytest.skip("there is no API server to ask: `make bootstrap` builds one")
    directory: Path = tmp_path_factory.mktemp("apiserver")
    with run_apiserver(kube, directory) as server:
        yield server


@pytest.fixture(scope="session")
def door(bare: ApiServer) -> Door:
    """With the CRDs and the policies, and both at work."""
    installed = bare.apply(*(build_crd(definition) for definition in DEFINITIONS), *build_policies())
    assert installed.ok, installed.text
    door = Door(bare)
    wait_until_guarded(door)
    return door


def wait_until_guarded(door: Door) -> None:
    """A policy is at work some time after it was made."""
    for kind in ("Swarm", "Agent"):
        wrong = next(case for case in CASES if case.kind == kind and "waitFor is" in case.words[0])
        wait_until(door, wrong.build(), refused=True)


def wait_until(door: Door, body: Json, *, refused: bool) -> None:
    """Try until the door does with `body` as expected."""
    for _ in range(300):
        answer = door.create(body, dry_run=True)
        if answer.ok is not refused and (answer.ok or "denied request" in answer.text):
            return
        time.sleep(0.2)
    raise AssertionError(f"the policies are not as they should be: {answer.text}")
