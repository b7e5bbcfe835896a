"""Generated files: where they come from, that they are what stands in the repository, and how a difference is told."""

from pathlib import Path

import pytest
import yaml

from alineod.crd.definition import DEFINITIONS, Definition
from alineod.crd.status import CONDITIONS_OF
from alineod.errors import Unavailable
from alineod.generate.crds import build_crd_files
from alineod.generate.files import compare_files, write_files
from alineod.generate.manifest import find_helm
from alineod.generate.policies import build_policies, build_policy_files
from alineod.generate.reference import build_kind, build_reference_files, read_sentences
from alineod.generate.roles import build_role_files, build_rules
from alineod.kube.permissions import PERMISSIONS, Scope

ROOT = Path(__file__).resolve().parents[3]


def test_what_stands_in_the_repository_is_what_the_sources_say() -> None:
    files = build_crd_files() | build_role_files() | build_policy_files() | build_reference_files(ROOT)
    assert list(compare_files(ROOT, files)) == [], "run `make generate`"


def test_the_chart_has_the_same_crds() -> None:
    files = build_crd_files()
    for definition in DEFINITIONS:
        name = f"{definition.plural}.alineo.dev.yaml"
        assert files[f"crds/{name}"] == files[f"charts/alineod/crds/{name}"]
        assert yaml.safe_load(files[f"crds/{name}"])["kind"] == "CustomResourceDefinition"


def test_writing_touches_only_what_differs_and_then_nothing_does(tmp_path: Path) -> None:
    files = {"a/one.yaml": "one\n", "two.md": "two\n"}
    assert write_files(tmp_path, files) == ["a/one.yaml", "two.md"]
    assert write_files(tmp_path, files) == []
    assert list(compare_files(tmp_path, files)) == []
    (tmp_path / "two.md").write_text("changed by hand\n")
    assert write_files(tmp_path, files) == ["two.md"]


def test_a_difference_is_shown_as_one(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old\n")
    assert list(compare_files(tmp_path, {"one": "new\n"})) == [
        "--- one",
        "+++ one (generated)",
        "@@ -1 +1 @@",
        "-old",
        "+new",
    ]
    assert "+all" in list(compare_files(tmp_path, {"missing": "all\n"}))


def test_helm_is_found_or_missed_in_words(tmp_path: Path) -> None:
    own = tmp_path / "helm"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert find_helm({"ALINEOD_HELM": str(own)}) == str(own)
    (tmp_path / "bin").mkdir()
    own.rename(tmp_path / "bin/helm")
    assert find_helm({"ALINEOD_CACHE": str(tmp_path)}) == str(tmp_path / "bin/helm")


def test_without_helm_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="ALINEOD_HELM"):
        find_helm({"ALINEOD_CACHE": str(tmp_path)})


def test_every_permission_is_in_exactly_one_scope() -> None:
    assert sum(len(build_rules(scope)) for scope in Scope) == len(PERMISSIONS)


def test_policies_as_objects_and_as_a_template_are_the_same() -> None:
    (template,) = build_policy_files().values()
    for body in build_policies():
        if body["kind"] == "ValidatingAdmissionPolicy":
            for check in body["spec"]["validations"]:
                assert check["expression"] in template


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_the_reference_leaves_nothing_out(definition: Definition) -> None:
    page = build_kind(definition)
    for column in definition.columns:
        assert column.name.upper() in page
    for condition in CONDITIONS_OF[definition.kind]:
        assert f"`{condition}`" in page
    for sentence in read_sentences(definition):
        assert sentence in page
    assert "| Field | Type | Meaning |" in page
