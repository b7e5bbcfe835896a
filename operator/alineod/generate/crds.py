"""The CRDs: one file a kind, once for people and once in the chart."""

from alineod.crd.base import GROUP
from alineod.crd.definition import DEFINITIONS, build_crd
from alineod.generate.text import build_banner, render_yaml

FOLDERS = ("crds", "charts/alineod/crds")
SOURCE = "operator/alineod/crd"


def build_crd_files() -> dict[str, str]:
    """Contents by path below the repository's root."""
    return {
        f"{folder}/{definition.plural}.{GROUP}.yaml": build_banner(SOURCE) + render_yaml(build_crd(definition))
        for definition in DEFINITIONS
        for folder in FOLDERS
    }
