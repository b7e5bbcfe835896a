"""`manifests/install.yaml`: the chart with its default values, rendered, for people without Helm."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from alineod.errors import Unavailable
from alineod.generate.text import build_banner

PATH = "manifests/install.yaml"
NAMESPACE = "alineod-system"
CHART = "charts/alineod"

NAMESPACE_OBJECT = f"""---
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""


def find_helm(env: Mapping[str, str]) -> str:
    """The Helm to use: ALINEOD_HELM, our own toolchain's, or the one on the path.

    Raises:
        Unavailable: there is none.
    """
    cache = env.get("ALINEOD_CACHE") or f"{env.get('XDG_CACHE_HOME') or str(Path.home() / '.cache')}/alineod"
    places = (env.get("ALINEOD_HELM", ""), f"{cache}/bin/helm", "helm")
    found = next((path for place in places if place and (path := shutil.which(place))), None)
    if found is None:
        raise Unavailable("NoHelm", "helm is not there: `make bootstrap` builds it, or name yours in ALINEOD_HELM")
    return found


def build_manifest_file(root: Path, files: Mapping[str, str], helm: str) -> dict[str, str]:
    """Render the chart as it will be once `files` (generated contents by path) are written."""
    with tempfile.TemporaryDirectory() as scratch:
        chart = Path(scratch) / "alineod"
        shutil.copytree(root / CHART, chart)
        for path, text in files.items():
            if path.startswith(f"{CHART}/"):
                target = chart / Path(path).relative_to(CHART)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        rendered = render_chart(chart, helm, ["--include-crds"])
    return {PATH: build_banner(CHART) + NAMESPACE_OBJECT + rendered}


def render_chart(chart: Path, helm: str, more: list[str]) -> str:
    """`helm template` of a chart, with `more` words for it.

    Raises:
        subprocess.CalledProcessError: Helm refused; its sentence is in `stderr`.
    """
    words = [helm, "template", "alineod", str(chart), f"--namespace={NAMESPACE}", *more]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "HELM_"))}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=env).stdout
