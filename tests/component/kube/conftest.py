"""The API server that this directory's tests ask."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apiserver import find_kube, run_apiserver


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the API server that ALINEOD_TEST_KUBECONFIG names, or of one of our own."""
    named, kube = os.environ.get("ALINEOD_TEST_KUBECONFIG", ""), find_kube()
    if named:
        yield Path(named)
    elif kube is None:
        pytest.skip("there is no API server to ask: `make bootstrap` builds one")
    else:
        with run_apiserver(kube, tmp_path_factory.mktemp("apiserver")) as server:
            yield server.kubeconfig
