"""Fixtures of the end-to-end tier: a cluster that we were told to use, alineod in it by Helm, a namespace per module.

pytest tests/e2e                      the development cluster of this checkout, started when it is not up
CLUSTER=kind pytest tests/e2e         a kind cluster
CLUSTER=current pytest tests/e2e      the current context, on purpose
pytest tests/e2e -m smoke             one level of it
pytest tests/e2e -m long              what takes minutes, and is left out where it is not named
"""

import os
import re
import secrets
from collections.abc import Callable, Iterator

import pytest
from pykube.objects import Namespace

from hack.demo.api import ControlApi
from hack.demo.forward import Forward
from hack.demo.install import PARTS, SYSTEM, Images, build_images, install_chart, install_parts, load_images
from hack.demo.target import Kind, Target, have_cluster
from tests.support.e2e_objects import MODEL_KEY, MODEL_SECRET, build_secret
from tests.support.e2e_parts import AuditLog, Bucket, ScriptedModel, clear_environment
from tests.support.e2e_world import Release, World

LEVELS = {
    "smoke": "the demo's facts, one by one",
    "api_door": "what the API server refuses, and in what words",
    "bad_input": "what goes wrong later, and in what words",
    "identity": "which run is which, and what deletion leaves",
    "disruptive": "takes away what other tests stand on; runs last",
    "long": "takes minutes, and runs only where `-m` names it",
}
OURS = "alineo.dev/e2e"
# In the names of namespaces: the ledger of a cluster that was used before remembers what ran in them.
RUN = secrets.token_hex(2)
Spaces = Callable[[str], str]


def pytest_configure(config: pytest.Config) -> None:
    for name, words in LEVELS.items():
        config.addinivalue_line("markers", f"{name}: {words}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What disrupts others runs after them, what takes minutes only by its name."""
    if "long" not in config.getoption("markexpr"):
        left_out = [item for item in items if item.get_closest_marker("long") is not None]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    items.sort(key=lambda item: item.get_closest_marker("disruptive") is not None)


@pytest.fixture(scope="session")
def target() -> Target:
    """The cluster; started when it is ours and not up."""
    clear_environment()
    return have_cluster(os.environ)


@pytest.fixture(scope="session")
def images(target: Target) -> Images:
    built = build_images()
    load_images(target, built)
    return built


@pytest.fixture(scope="session")
def world(target: Target, images: Images) -> Iterator[World]:
    """alineod installed, with the bucket and the scripted model beside it. It stays for the next run."""
    install_parts(target, images)
    install_chart(target, images)
    world = World(target, Release())
    remove_leftovers(world)
    yield world
    world.kube.session.close()


def remove_leftovers(world: World) -> None:
    """Namespaces of a run that was killed."""
    for namespace in Namespace.objects(world.kube).filter(selector={OURS: "true"}):
        namespace.delete()


@pytest.fixture(scope="module")
def spaces(world: World, request: pytest.FixtureRequest) -> Iterator[Spaces]:
    """Makes namespaces with the model's key in them; they are removed after the module."""
    made: list[str] = []
    stem = re.sub(r"[^a-z0-9]+", "-", request.module.__name__.rpartition(".")[2].removeprefix("test_"))

    def make(name: str = "") -> str:
        namespace = "-".join(filter(None, ("e2e", stem, name, RUN)))
        world.create_namespace(namespace, {OURS: "true", "pod-security.kubernetes.io/enforce": "baseline"})
        made.append(namespace)
        world.apply(namespace, build_secret(MODEL_SECRET, {"api-key": MODEL_KEY}))
        return namespace

    yield make
    for namespace in made:
        world.remove_namespace(namespace, wait=False)


@pytest.fixture(scope="module")
def space(spaces: Spaces) -> str:
    """The namespace of a module that needs one."""
    return spaces("")


@pytest.fixture(scope="session")
def bucket(world: World) -> Iterator[Bucket]:
    with Forward(world.target, PARTS, "service/bucket", 8333) as forward:
        yield Bucket(forward)


@pytest.fixture(scope="session", autouse=True)
def model(world: World) -> ScriptedModel:
    """What it is asked from the beginning of the tests on."""
    return ScriptedModel(world.target)


@pytest.fixture(scope="session")
def forward(world: World) -> Iterator[Forward]:
    with Forward(world.target, SYSTEM, f"service/{world.release.fullname}", 8080) as forward:
        yield forward


@pytest.fixture(scope="module")
def api(world: World, forward: Forward, space: str) -> ControlApi:
    """The control API, asked by a person who may edit in the module's namespace."""
    return ControlApi(forward, make_editor(world, space))


def make_editor(world: World, namespace: str) -> str:
    """The token of somebody who may edit in this namespace and nowhere else."""
    world.kubectl(namespace, "create", "serviceaccount", "editor")
    subject = f"--serviceaccount={namespace}:editor"
    world.kubectl(namespace, "create", "rolebinding", "editor", "--clusterrole=edit", subject)
    return world.kubectl(namespace, "create", "token", "editor").strip()


@pytest.fixture(scope="session")
def audit(target: Target) -> AuditLog:
    if target.kind is not Kind.DEV or target.audit_log is None:
        pytest.skip("the API server's audit log can be read on the development cluster alone")
    return AuditLog(target.audit_log)
