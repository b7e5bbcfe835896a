"""From records to structural OpenAPI schemas, as a CRD wants them: no references, no unions, bounds everywhere.

Defaults are described and not set: a default in the schema would look like the agent's own word and hide its swarm's
`defaults`, and inside lists GitOps tools would see drift.
"""

import inspect
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import annotated_types as at
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from alineod.crd.base import Record, Rule, Schema, WithoutRules, field_alias

Json = dict[str, Any]

SHOWN_DEFAULT = 40  # longer defaults are not worth a line


def build_schema(record: type[Record]) -> Json:
    """The schema of a record: its fields, what is required, its docstring and its rules."""
    fields = _own_first(record)
    required = [field_alias(name) for name, info in fields.items() if info.is_required()]
    return {
        "type": "object",
        "description": build_description(record),
        **({"required": required} if required else {}),
        "properties": {field_alias(name): build_field_schema(info) for name, info in fields.items()},
        **build_rules(record.RULES),
    }


def build_description(record: type[Record]) -> str:
    """The record's docstring as one paragraph a line."""
    paragraphs = inspect.cleandoc(record.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def build_field_schema(info: FieldInfo) -> Json:
    """The schema of one field, with its description and, in words, its default."""
    schema = _of_type(info.annotation, info.metadata)
    described = " ".join(part for part in (info.description, _default_words(info)) if part)
    return {**schema, **({"description": described} if described else {})}


def _own_first(record: type[Record]) -> dict[str, FieldInfo]:
    """Fields of the class itself before those it inherits: its identity reads first."""
    own = [name for name in record.model_fields if name in inspect.get_annotations(record)]
    if "name" in own:
        own.insert(0, own.pop(own.index("name")))
    return {name: record.model_fields[name] for name in (*own, *(n for n in record.model_fields if n not in own))}


def _default_words(info: FieldInfo) -> str:
    value = info.default
    if info.is_required() or value is None or isinstance(value, BaseModel) or value in ("", (), {}):
        return ""
    serializers = [m for m in info.metadata if hasattr(m, "func") and type(m).__name__ == "PlainSerializer"]
    shown = serializers[0].func(value) if serializers else value
    text = str(shown).lower() if isinstance(shown, bool) else str(shown)
    return f"Default: {text}." if len(text) <= SHOWN_DEFAULT else ""


def _of_type(kind: Any, metadata: Sequence[Any]) -> Json:
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        return _of_type(inner, [*own, *metadata])
    if get_origin(kind) in (Union, UnionType):
        (present,) = (arg for arg in get_args(kind) if arg is not NoneType)
        return _of_type(present, metadata)
    schema = _plain(kind)
    metadata = [part for mark in metadata for part in (mark.metadata if isinstance(mark, FieldInfo) else (mark,))]
    for mark in metadata:
        schema |= _keywords(mark, schema)
    schema |= build_rules([mark for mark in metadata if isinstance(mark, Rule)])
    schema = {key: value for key, value in schema.items() if value is not None}
    return _without_rules(schema) if any(isinstance(mark, WithoutRules) for mark in metadata) else schema


def _plain(kind: Any) -> Json:
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        return {"type": "array", "x-kubernetes-list-type": "atomic", "items": _of_type(args[0], ())}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(args[1], ())} if args[1] is not Any else {}
    if issubclass(kind, Record):
        return build_schema(kind)
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [member.value for member in kind]}
    return dict(PLAIN[kind])


PLAIN: Mapping[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
}


def _keywords(mark: Any, schema: Json) -> Json:
    match mark:
        case Schema(keywords):
            return keywords
        case at.MaxLen(limit) | at.Len(_, limit):
            return {_bound("max", schema): limit}
        case at.MinLen(limit):
            return {_bound("min", schema): limit}
        case at.Ge(limit):
            return {"minimum": limit}
        case at.Le(limit):
            return {"maximum": limit}
        case _:
            return {}


def _bound(end: str, schema: Json) -> str:
    suffix = {"array": "Items", "object": "Properties"}.get(schema.get("type", ""), "Length")
    return end + suffix


def _without_rules(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_rules(value) for key, value in schema.items() if key != "x-kubernetes-validations"}
    return [_without_rules(item) for item in schema] if isinstance(schema, list) else schema


def build_rules(rules: Sequence[Rule]) -> Json:
    if not rules:
        return {}
    return {"x-kubernetes-validations": [_rule(rule) for rule in rules]}


def _rule(rule: Rule) -> Json:
    where = {"fieldPath": rule.field} if rule.field else {}
    return {"rule": rule.rule, "message": rule.message, **where}
