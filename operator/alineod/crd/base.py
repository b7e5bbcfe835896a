"""Base of the records: snake_case in Python, camelCase outside, frozen, unknown fields refused.

A field's default is what holds when neither the agent nor its swarm's `defaults` set it. Which fields were written is
kept by pydantic (`model_fields_set`), so that merging can tell "not written" from "written as the default".
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from alineod.errors import Refused

GROUP = "alineo.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

ALIASES = {"from_": "from", "base_url": "baseURL"}


def field_alias(name: str) -> str:
    """The name a field has outside Python."""
    return ALIASES.get(name) or to_camel(name)


@dataclass(frozen=True)
class Rule:
    """A CEL rule of the CRD with the sentence a person reads when it does not hold.

    `field` is where below the ruled record the fault is shown, such as `.spec.parent`; empty: at the record itself.
    """

    rule: str
    message: str
    field: str = ""


@dataclass(frozen=True, eq=False)
class Schema:
    """Keywords laid over the schema derived from a field's type, as `items` do: the field's word wins."""

    keywords: dict[str, Any]


@dataclass(frozen=True)
class WithoutRules:
    """Leaves out the CEL rules within a field that CEL cannot look into."""


class Record(BaseModel):
    """A part of a spec. `RULES` are CEL rules over the whole record."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=field_alias, validate_by_name=True, validate_by_alias=True
    )
    RULES: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def parse(cls, raw: object, at: str = "spec") -> Self:
        """`raw` (as JSON has it) as this record.

        Raises:
            Refused: reason `InvalidSpec`; the message names the field below `at` and says what is wrong with it.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise Refused("InvalidSpec", "; ".join(_sentence(at, dict(e)) for e in error.errors())) from error

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself, since nobody changes it: pydantic copies every default, a hundred times for a swarm of a hundred."""
        return self

    def dump(self) -> dict[str, Any]:
        """Only what was written, as JSON has it; `parse` of it gives an equal record."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)

    def digest(self, *fields: str) -> str:
        """Sixteen characters that change when what was written changes, in `fields` or, without any, anywhere."""
        said = self.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude_none=True, include=set(fields) or None
        )
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


class Observed(Record):
    """A part of something the server holds: fields of other versions are ignored."""

    model_config = ConfigDict(extra="ignore")


def _sentence(at: str, error: dict[str, Any]) -> str:
    path = at
    for part in error["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    path = path.lstrip(".")
    match error["type"]:
        case "extra_forbidden":
            return f"{path} is not a known field: remove it or correct its name"
        case "missing":
            return f"{path} is missing"
        case "value_error":
            return f"{path} {error['ctx']['error']}"
        case _:
            return f"{path}: {error['msg'][:1].lower()}{error['msg'][1:]}, not {_shown(error['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
