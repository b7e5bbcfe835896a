"""The manifest and the chart as the API server takes them: every object valid, the operator's pod `restricted`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from alineod.generate.manifest import find_helm, render_chart
from tests.component.door.conftest import Door

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts/alineod"
NAMESPACE = "alineod-system"
Json = dict[str, Any]

VARIANTS = {
    "as it comes": [],
    "bucket and standbys": ["--set=bucket.name=b,bucket.existingSecret=s,replicas=3,podDisruptionBudget.enabled=true"],
    "namespaces": ["--set=namespaces={default,kube-public},networkPolicy.enabled=true,serviceAccount.annotations.a=b"],
    "extras": [
        '--set-json=extraVolumes=[{"name":"x","emptyDir":{}}]',
        '--set-json=extraVolumeMounts=[{"name":"x","mountPath":"/x"}]',
        '--set-json=extraEnv=[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]',
        '--set-json=tolerations=[{"operator":"Exists"}]',
        '--set-json=affinity={"nodeAffinity":{}}',
        "--set=nodeSelector.disk=ssd,priorityClassName=system-cluster-critical,podLabels.a=b,podAnnotations.c=d",
    ],
}


@pytest.fixture(scope="module")
def installed(door: Door) -> Door:
    """The manifest, applied as its reader would."""
    applied = door.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "manifests/install.yaml"))
    assert applied.ok, applied.text
    return door


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_server_takes_every_object_of_the_chart(installed: Door, variant: str) -> None:
    objects = render(VARIANTS[variant])
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    answer = installed.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", stdin=body)
    assert answer.ok, answer.text
    assert "Warning" not in answer.text


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_operators_pod_passes_the_restricted_standard(installed: Door, variant: str) -> None:
    (deployment,) = (body for body in render(VARIANTS[variant]) if body["kind"] == "Deployment")
    template = deployment["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] = {**template["metadata"], "name": "probe", "namespace": NAMESPACE}
    answer = installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    assert answer.ok, answer.text
    # The namespace of the manifest does enforce it.
    pod["spec"] = {**pod["spec"], "securityContext": {}}
    assert "restricted" in installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod)).text


def test_people_get_our_kinds_with_their_ordinary_roles(installed: Door) -> None:
    roles = {body["metadata"]["name"]: body for body in render([]) if body["kind"] == "ClusterRole"}
    view, edit = roles[f"{NAMESPACE}-alineod-view"], roles[f"{NAMESPACE}-alineod-edit"]
    aggregate = "rbac.authorization.k8s.io/aggregate-to-{}"
    assert {aggregate.format(role) for role in ("view", "edit", "admin")} <= set(view["metadata"]["labels"])
    assert aggregate.format("view") not in edit["metadata"]["labels"]
    assert "create" not in json.dumps(view["rules"])


def render(more: list[str]) -> list[Json]:
    """The chart's objects."""
    return [body for body in yaml.safe_load_all(render_chart(CHART, find_helm(os.environ), more)) if body]
