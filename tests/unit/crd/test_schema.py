"""Records as structural schemas: what a CRD may hold and must hold."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from alineod.crd.base import Record, Rule, Schema
from alineod.crd.definition import DEFINITIONS, Definition, build_crd
from alineod.crd.schema import build_schema
from alineod.crd.status import CONDITIONS_OF, MEANINGS, ConditionType
from alineod.crd.types import Duration

Json = dict[str, Any]
FREE = (
    "spec.sandbox.podTemplate.spec",
    "spec.defaults.sandbox.podTemplate.spec",
    "spec.agents[].sandbox.podTemplate.spec",
)
EITHER = ("spec.waitFor", "spec.agents[].waitFor")


class Inner(Record):
    """What is inside.

    With a second
    paragraph.
    """

    RULES = (Rule("self.a != self.b", "they differ", ".a"),)

    a: int = Field(ge=1, description="The first.")
    b_c: Annotated[str, Field(max_length=9)] = Field(default="x", description="The second.")


class Outer(Inner):
    """All of it."""

    name: str = Field(description="Its name.")
    wait: Duration | None = None
    items: Annotated[tuple[Inner, ...], Schema({"x-kubernetes-list-type": "map"})] = Field(default=(), max_length=3)


def test_a_record_becomes_a_schema() -> None:
    assert build_schema(Inner) == {
        "type": "object",
        "description": "What is inside.\n\nWith a second paragraph.",
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "format": "int64", "minimum": 1, "description": "The first."},
            "bC": {"type": "string", "maxLength": 9, "description": "The second. Default: x."},
        },
        "x-kubernetes-validations": [{"rule": "self.a != self.b", "message": "they differ", "fieldPath": ".a"}],
    }


def test_what_is_its_own_comes_first_and_the_outermost_word_wins() -> None:
    schema = build_schema(Outer)
    assert list(schema["properties"]) == ["name", "wait", "items", "a", "bC"]
    assert schema["properties"]["wait"]["type"] == "string"
    assert schema["properties"]["items"]["x-kubernetes-list-type"] == "map"
    assert schema["properties"]["items"]["maxItems"] == 3


def walk(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def read_root(definition: Definition) -> Json:
    (version,) = build_crd(definition)["spec"]["versions"]
    root: Json = version["schema"]["openAPIV3Schema"]
    return root


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_a_crd_is_structural_bounded_and_described(definition: Definition) -> None:
    for path, schema in walk(read_root(definition), ""):
        assert "$ref" not in schema
        assert "default" not in schema or path == "status", f"{path} has a default"
        if path in EITHER:
            assert "type" not in schema
            assert schema["x-kubernetes-preserve-unknown-fields"] is True
            continue
        if "x-kubernetes-int-or-string" not in schema:
            assert schema["type"], path
        if schema.get("type") == "string" and "enum" not in schema and path.startswith(("spec", "status")):
            assert "maxLength" in schema, f"{path} has no bound"
        if schema.get("type") == "array":
            assert "maxItems" in schema, f"{path} has no bound"
            assert schema["x-kubernetes-list-type"] in ("atomic", "map")
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, f"{path} has no bound"
        assert ("x-kubernetes-preserve-unknown-fields" in schema) is (path in FREE), path
        if path and not path.startswith("metadata") and not path.endswith(("[]", "{}")):
            assert schema.get("description"), f"{path} is not described"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind)
def test_names_versions_and_status(definition: Definition) -> None:
    crd = build_crd(definition)
    (version,) = crd["spec"]["versions"]
    assert crd["metadata"]["name"] == f"{definition.plural}.alineo.dev"
    assert crd["spec"]["names"]["categories"] == ["alineo"]
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}
    assert read_root(definition)["properties"]["status"]["default"] == {"observedGeneration": -1}


@pytest.mark.behaviour("2.11", "2.12", "2.17")
def test_conditions_are_known_and_explained() -> None:
    assert set(MEANINGS) == set(ConditionType)
    kstatus = {ConditionType.READY, ConditionType.RECONCILING, ConditionType.STALLED}
    assert all(kstatus <= set(kinds) for kinds in CONDITIONS_OF.values())
    assert set(CONDITIONS_OF["Swarm"]) == kstatus | {"Interrupted", "Lost", "LedgerReplicated"}
    assert set(CONDITIONS_OF["Agent"]) == kstatus | {"Running", "Interrupted", "Lost", "Checkpointed", "UpToDate"}
    for definition in DEFINITIONS:
        condition = read_root(definition)["properties"]["status"]["properties"]["conditions"]["items"]
        assert {"observedGeneration", "reason", "message", "lastTransitionTime"} <= set(condition["properties"])
