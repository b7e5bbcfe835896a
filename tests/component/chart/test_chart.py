"""The chart by Helm alone: what it renders for which values, and what it refuses in which words."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alineod.bucket.keys import NAMES, VARIABLE
from alineod.errors import Unavailable
from alineod.generate.manifest import find_helm
from alineod.kube.permissions import PERMISSIONS
from alineod.settings import parse_settings

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts/alineod"
BUCKET = "--set=bucket.name=b"
Json = dict[str, Any]


@pytest.fixture(scope="session")
def helm() -> str:
    try:
        return find_helm(os.environ)
    except Unavailable as missing:
        pytest.skip(missing.message)


def run(helm: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "HELM_"))}
    return subprocess.run([helm, *words], capture_output=True, text=True, check=False, env=env)


def render(helm: str, *words: str, release: str = "alineod") -> list[Json]:
    done = run(helm, "template", release, str(CHART), "--namespace=system", *words)
    assert done.returncode == 0, done.stderr
    return [body for body in yaml.safe_load_all(done.stdout) if body]


def find(objects: list[Json], kind: str, name: str | None = None) -> Json:
    (found,) = (b for b in objects if b["kind"] == kind and name in (None, b["metadata"]["name"]))
    return found


def read_env(container: Json) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "from elsewhere") for entry in container["env"]}


@pytest.mark.parametrize("words", [(), (BUCKET, "--set=replicas=2,namespaces={a,b},podMonitor.enabled=true")])
def test_lint_has_nothing_to_say(helm: str, words: tuple[str, ...]) -> None:
    done = run(helm, "lint", "--strict", str(CHART), *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ledger.storage=emptyDir"], "set bucket.name, or ledger.storage=claim"),
        (["replicas=2"], "set replicas=1, or bucket.name and ledger.storage=emptyDir"),
        (["bucket.name=b", "ledger.storage=claim", "replicas=2"], "can be used by one pod only, and replicas is 2"),
        (["serviceAccount.create=false"], "name the account to use in serviceAccount.name"),
        (["bucket.nme=b"], "additional properties 'nme' not allowed"),
        (["ledger.storage=disk"], "at '/ledger/storage': value must be one of"),
        (["checkpoints.remoteMinAge=soon"], "at '/checkpoints/remoteMinAge'"),
        (["image.pullPolicy=Sometimes"], "at '/image/pullPolicy'"),
        (["instance=My_Instance"], "at '/instance'"),
        (["bucket.endpoint=bucket:8333"], "at '/bucket/endpoint'"),
        (["bucket.prefix=/a"], "at '/bucket/prefix'"),
    ],
)
def test_wrong_values_are_told_what_to_change(helm: str, words: list[str], sentence: str) -> None:
    done = run(helm, "template", "alineod", str(CHART), *(f"--set={word}" for word in words))
    assert done.returncode != 0
    assert sentence in done.stderr


def test_without_a_bucket_one_replica_keeps_a_claim(helm: str) -> None:
    objects = render(helm)
    spec = find(objects, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    claim = find(objects, "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    (ledger,) = (volume for volume in spec["template"]["spec"]["volumes"] if volume["name"] == "ledger")
    assert ledger["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert "initContainers" not in spec["template"]["spec"]


def test_with_a_bucket_standbys_roll_and_litestream_stands_beside(helm: str) -> None:
    objects = render(helm, BUCKET, "--set=replicas=3,bucket.existingSecret=keys")
    spec = find(objects, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (3, "RollingUpdate")
    assert not [body for body in objects if body["kind"] in ("PersistentVolumeClaim", "Secret")]
    pod = spec["template"]["spec"]
    (sidecar,), (operator,) = pod["initContainers"], pod["containers"]
    assert (sidecar["args"], sidecar["restartPolicy"], operator["args"]) == (["litestream"], "Always", ["operator"])
    mounts = [{m["name"] for m in container["volumeMounts"]} for container in (sidecar, operator)]
    assert mounts == [{"ledger", "run", "tmp", "keys"}, {"ledger", "run", "tmp", "cluster", "keys"}]


@pytest.mark.behaviour("11.12")
def test_keys_of_the_bucket_are_mounted_where_they_are_read_anew(helm: str) -> None:
    """As variables they would be those of the container's start; mounted by `subPath` they would never change."""
    pod = find(render(helm, BUCKET, "--set=bucket.existingSecret=s3"), "Deployment")["spec"]["template"]["spec"]
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == "keys")
    assert volume["secret"]["secretName"] == "s3"
    assert [(item["key"], item["path"]) for item in volume["secret"]["items"]] == [(name, name) for name in NAMES]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert not [name for name in read_env(container) if name.startswith("AWS_")]
        (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "keys")
        assert mount == {"name": "keys", "mountPath": read_env(container)[VARIABLE], "readOnly": True}
    without = find(render(helm, BUCKET), "Deployment")["spec"]["template"]["spec"]
    assert not [volume for volume in without["volumes"] if volume["name"] == "keys"]


def test_only_the_operator_can_talk_to_the_cluster(helm: str) -> None:
    pod = find(render(helm, BUCKET), "Deployment")["spec"]["template"]["spec"]
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize(
    "words",
    [
        (),
        (BUCKET, "--set=bucket.prefix=p,bucket.endpoint=http://s3:1,namespaces={a,b},replicas=2"),
        ("--set=sandboxDefaults.tolerations[0].operator=Exists,sandboxDefaults.pullSecrets={one,two},logFormat=json",),
    ],
)
def test_the_operator_understands_every_setting_of_the_chart(helm: str, words: tuple[str, ...]) -> None:
    objects = render(helm, *words, release="mine")
    (operator,) = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    settings = parse_settings(read_env(operator) | {"ALINEOD_NAMESPACE": "system", "ALINEOD_POD_NAME": "p"})
    assert settings.instance == "mine"
    service = find(objects, "Service")
    assert settings.service_url == f"http://{service['metadata']['name']}.system.svc:8080"
    assert settings.watch_namespaces == (("a", "b") if "namespaces" in str(words) else ())
    assert settings.images.agent == "alineod/agent-pi:0.1.0"


def test_the_service_selects_the_leader_of_this_release(helm: str) -> None:
    objects = render(helm)
    service, deployment = find(objects, "Service"), find(objects, "Deployment")
    selector = dict(service["spec"]["selector"])
    assert selector.pop("alineo.dev/role") == "leader"
    assert selector == deployment["spec"]["selector"]["matchLabels"]
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert "alineo.dev/role" not in deployment["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize("namespaces", [(), ("a", "b")])
def test_roles_are_the_permissions_and_no_more(helm: str, namespaces: tuple[str, ...]) -> None:
    words = [f"--set=namespaces={{{','.join(namespaces)}}}"] if namespaces else []
    objects = [b for b in render(helm, *words) if b["kind"] in ("Role", "ClusterRole")]
    own = [b for b in objects if not b["metadata"]["name"].endswith(("-view", "-edit"))]
    granted = {
        (group, resource, verb)
        for body in own for rule in body["rules"]
        for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip
    wanted = {(p.group, resource, verb) for p in PERMISSIONS for resource in p.resources for verb in p.verbs}
    assert granted == wanted
    places = sorted(body["metadata"].get("namespace", "") for body in own)
    assert places == sorted(["", "system", *(namespaces or [""])])
    bound = [b["roleRef"]["name"] for b in render(helm, *words) if b["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    assert sorted(bound) == sorted(body["metadata"]["name"] for body in own)


def test_policies_hold_where_the_release_serves(helm: str) -> None:
    bindings = [b for b in render(helm, "--set=namespaces={a,b}") if b["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert len(bindings) == 2
    for body in bindings:
        (selector,) = body["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert (selector["key"], selector["values"]) == ("kubernetes.io/metadata.name", ["a", "b"])
    without = render(helm, "--set=admissionPolicy.enabled=false")
    assert not [b for b in without if b["kind"].startswith("ValidatingAdmission")]


def test_two_releases_do_not_meet(helm: str) -> None:
    first, second = render(helm, release="one"), render(helm, release="two")

    def names(objects: list[Json]) -> set[tuple[str, str]]:
        return {(b["kind"], b["metadata"]["name"]) for b in objects}

    assert names(first).isdisjoint(names(second))


def test_options_are_off_until_asked_for(helm: str) -> None:
    kinds = {body["kind"] for body in render(helm)}
    assert kinds.isdisjoint({"PodDisruptionBudget", "PodMonitor", "NetworkPolicy", "Secret", "Namespace"})
    words = "--set=podDisruptionBudget.enabled=true,podMonitor.enabled=true,networkPolicy.enabled=true"
    assert {"PodDisruptionBudget", "PodMonitor", "NetworkPolicy"} <= {body["kind"] for body in render(helm, words)}


def test_the_notes_tell_how_to_see_a_first_swarm_run(helm: str, tmp_path: Path) -> None:
    # `helm template` shows no notes: they are rendered as a manifest of a copy.
    chart = tmp_path / "alineod"
    shutil.copytree(CHART, chart)
    (chart / "templates/NOTES.txt").rename(chart / "templates/notes.yaml")
    (chart / "templates/notes.yaml").write_text(
        '{{- define "notes" }}' + (chart / "templates/notes.yaml").read_text() + "{{ end }}\nkind: Notes\n"
        'text: {{ include "notes" . | quote }}\n'
    )
    done = run(helm, "template", "alineod", str(chart), "--namespace=system", "--show-only=templates/notes.yaml")
    assert done.returncode == 0, done.stderr
    text = next(yaml.safe_load_all(done.stdout))["text"]
    assert "kubectl --namespace research get swarms,agents --watch" in text
    assert "No bucket is configured" in text
    swarm = yaml.safe_load(text.split("<<'EOF'\n")[1].split("EOF")[0])
    assert swarm["kind"] == "Swarm"


def test_every_value_has_its_comment() -> None:
    """A line of values.yaml that sets something stands under a comment or in a block that has one."""
    commented: dict[int, bool] = {}
    before = ""
    for line in (CHART / "values.yaml").read_text().splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip().startswith("#"):
            commented[indent] = True
        elif not line.strip():
            commented = {}
        else:
            assert any(level <= indent for level in commented) or line.endswith(":"), f"{line!r} after {before!r}"
        before = line
