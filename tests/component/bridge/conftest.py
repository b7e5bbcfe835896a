"""Fixtures of the bridge's component tests; what they give is described in bridge_rig."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.component.bridge.bridge_rig import Bridge, Cutter, ScriptedModel


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedModel]:
    model = ScriptedModel(tmp_path_factory.mktemp("model"))
    yield model
    model.close()


@pytest.fixture
def make_bridge(tmp_path: Path, model: ScriptedModel) -> Iterator[Callable[..., Bridge]]:
    made: list[Bridge] = []

    def make(name: str = "sandbox", model_url: str = "", **environment: str) -> Bridge:
        made.append(Bridge(tmp_path / name, model_url or model.url, **environment))
        return made[-1]

    yield make
    for bridge in made:
        bridge.close()


@pytest.fixture
def bridge(make_bridge: Callable[..., Bridge]) -> Bridge:
    return make_bridge().start()


@pytest.fixture
def cutter() -> Iterator[Cutter]:
    cutter = Cutter()
    yield cutter
    cutter.close()
