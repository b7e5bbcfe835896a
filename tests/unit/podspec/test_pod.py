"""A whole sandbox pod in a file, the API's own models over it, and what may never be in one."""

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import V1Pod

from alineod.podspec.context import Json, PodContext, parse_sandbox_defaults
from alineod.podspec.pod import build_pod
from tests.unit.domain.builders import KEY, build_object, build_spec

GOLDEN = Path(__file__).parent / "sandbox-pod.json"
CONTEXT = PodContext("localhost/agent:1", "localhost/sandbox:1", "Never", "http://alineod.alineod-system.svc:8080", 7)
CREDENTIAL = {"name": "OPENAI_API_KEY", "secretKeyRef": {"name": "model", "key": "api-key"}}


def _build(context: PodContext = CONTEXT, **spec: Any) -> Json:
    harness = {"model": {"provider": "openai", "id": "m"}, "credentials": [CREDENTIAL]}
    return build_pod(KEY, build_object(spec=build_spec(**({"harness": harness} | spec))), 3, context)


def _container(pod: Json, name: str) -> Json:
    everything = [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]
    return next(c for c in everything if c["name"] == name)


def test_the_pod_is_the_one_in_the_file() -> None:
    """After a wished change: write the new pod with `python -m tests.unit.podspec.test_pod`."""
    assert _build() == json.loads(GOLDEN.read_text())


def test_the_api_s_own_models_take_it() -> None:
    assert V1Pod.from_dict(_build()).spec is not None


def test_no_key_and_no_token_of_the_cluster_in_the_agent_s_container() -> None:
    pod = _build()
    mounts = {mount["name"] for mount in _container(pod, "agent")["volumeMounts"]}
    assert mounts == {"home", "workspace", "inputs", "control", "credentials"}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert "AWS" not in json.dumps(pod)
    for name in ("restore", "checkpointer"):
        assert "credentials" not in {mount["name"] for mount in _container(pod, name)["volumeMounts"]}


def test_another_user_passes_the_restricted_standard() -> None:
    pod = _build(sandbox={"runAsUser": 1000, "runAsGroup": 1000, "home": "/home/agent"})
    assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for name in ("restore", "checkpointer", "agent"):
        security = _container(pod, name)["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
    assert {"name": "home", "mountPath": "/home/agent"} in _container(pod, "agent")["volumeMounts"]


def test_a_storage_class_makes_a_claim() -> None:
    pod = _build(sandbox={"storage": {"home": {"storageClassName": "fast", "sizeLimit": "20Gi"}}})
    home = next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "home")
    claim = home["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert (claim["storageClassName"], claim["resources"]) == ("fast", {"requests": {"storage": "20Gi"}})


def test_an_overlay_adds_and_never_replaces_what_is_ours() -> None:
    overlay = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "containers": [{"name": "proxy", "image": "proxy:1"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    }
    pod = _build(sandbox={"podTemplate": overlay})
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["metadata"]["labels"]["alineo.dev/agent"] == "survey-lead"
    assert [c["name"] for c in pod["spec"]["containers"]] == ["agent", "proxy"]
    assert pod["spec"]["nodeSelector"] == {"disk": "fast"}
    assert pod["spec"]["volumes"][-1] == {"name": "data", "emptyDir": {}}


def test_the_release_s_defaults_are_under_every_sandbox() -> None:
    defaults = parse_sandbox_defaults({"tolerations": [{"operator": "Exists"}], "pullSecrets": ["registry"]})
    pod = _build(PodContext("a", "s", "Always", "http://o", 1, defaults=defaults))
    assert pod["spec"]["tolerations"][0] == {"operator": "Exists"}
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize(("policy", "seconds"), [("Replace", 60), ("Wait", None)])
def test_the_cluster_leaves_a_pod_on_a_silent_node_as_long_as_the_policy_says(policy: str, seconds: int | None) -> None:
    tolerations = _build(sandbox={"onNodeLost": policy})["spec"]["tolerations"]
    assert {t["key"].partition("/")[2]: t.get("tolerationSeconds") for t in tolerations} == {
        "not-ready": seconds,
        "unreachable": seconds,
    }


def test_the_pod_ends_only_after_the_grace_of_a_turn_of_its_archive_and_of_its_upload() -> None:
    pod = _build(sandbox={"drainGrace": "90.5s"})
    assert {"name": "ALINEO_DRAIN_GRACE", "value": "90.5"} in _container(pod, "agent")["env"]
    assert {"name": "ALINEO_CUT_GRACE", "value": str(CONTEXT.cut_grace)} in _container(pod, "agent")["env"]
    uploads = {"name": "ALINEO_DRAIN_GRACE", "value": str(CONTEXT.upload_grace)}
    assert uploads in _container(pod, "checkpointer")["env"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > 91 + CONTEXT.cut_grace + CONTEXT.upload_grace


def test_a_pod_says_of_which_spec_it_is_made() -> None:
    def read(**spec: Any) -> str:
        return str(_build(**spec)["metadata"]["annotations"]["alineo.dev/made-of"])

    assert read() == read(prompt="another")
    assert len({read(), read(sandbox={"image": "x:1"}), read(sandbox={"setup": "true"})}) == 3


def test_a_bridge_that_hangs_is_killed_soon_and_not_after_the_grace_of_a_turn() -> None:
    probe = _container(_build(), "agent")["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 60
    assert probe["terminationGracePeriodSeconds"] < 10


@pytest.mark.behaviour("1.4")
def test_the_name_is_the_agent_s_and_the_incarnation_s() -> None:
    assert _build()["metadata"]["name"] == "survey-lead-3"


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(_build(), indent=2) + "\n")
