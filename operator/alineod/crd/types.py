"""Value types of the specs: durations, quantities, money, names. Each is parsed once, here, and has one schema."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from alineod.crd.base import Rule, Schema

UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
DURATION = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"
QUANTITY = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
MONEY = r"[0-9]{1,9}(\.[0-9]{1,6})?"
DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"

MAX_LABEL = 63
INCARNATION_ROOM = 6  # a dash and five digits: what a pod's name adds to its agent's
MAX_OBJECT_NAME = MAX_LABEL - INCARNATION_ROOM
NAME_SENTENCE = "use lower case letters, digits and '-', with a letter or digit at both ends"


def parse_duration(value: object) -> float:
    """Seconds of a duration as Go writes it: `30s`, `30m`, `1h30m`. A float is seconds already.

    Raises:
        ValueError: the text is no duration; the message says how one is written.
    """
    if isinstance(value, float):
        return value
    if not isinstance(value, str) or not re.fullmatch(DURATION, value):
        raise ValueError(f"is no duration ({value!r}): write one with its unit, such as 30s, 30m or 1h30m")
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", value))


def format_duration(seconds: float) -> str:
    """The duration as text that `parse_duration` reads back, to the millisecond: `1h30m`."""
    rest = round(seconds * 1000)
    text = ""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _parse_quantity(value: object) -> str:
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    if not re.fullmatch(QUANTITY, text):
        raise ValueError(f"is no quantity ({value!r}): write one such as 500m, 2 or 512Mi")
    return text


def _check_money(value: str) -> str:
    if not re.fullmatch(MONEY, value):
        raise ValueError(f'is no amount of dollars ({value!r}): write one such as "25" or "0.50"')
    return value


def _check_name(value: str) -> str:
    if not re.fullmatch(DNS_LABEL, value):
        raise ValueError(f"is no name ({value!r}): {NAME_SENTENCE}")
    return value


def _check_env_name(value: str) -> str:
    if not re.fullmatch(ENV_NAME, value):
        raise ValueError(f"is no name of an environment variable ({value!r}): use letters, digits and '_'")
    return value


def _whole(pattern: str) -> str:
    return f"self.matches('^{pattern}$')".replace("\\", "\\\\")


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration),
    Schema({"type": "string", "maxLength": 32}),
    Rule(_whole(DURATION), "this is no duration: write one with its unit, such as 30s, 30m or 1h30m"),
]
"""Seconds in Python, `30m` outside."""

Quantity = Annotated[
    str,
    BeforeValidator(_parse_quantity),
    Schema({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": f"^{QUANTITY}$",
        "maxLength": 32,
    }),
]  # fmt: skip
"""A Kubernetes quantity, as text."""

Money = Annotated[
    str,
    Field(max_length=16),
    AfterValidator(_check_money),
    Rule(_whole(MONEY), 'this is no amount of dollars: write one such as "25" or "0.50"'),
]
"""A decimal of US dollars, as text."""

Name = Annotated[
    str,
    Field(min_length=1, max_length=MAX_OBJECT_NAME),
    AfterValidator(_check_name),
    Rule(_whole(DNS_LABEL), f"this is no name: {NAME_SENTENCE}"),
]
"""A short name of an agent, or a name of one of our objects."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
"""The name of an object of another kind, such as a Secret."""

EnvName = Annotated[
    str,
    Field(min_length=1, max_length=128),
    AfterValidator(_check_env_name),
    Schema({"pattern": f"^{ENV_NAME}$"}),  # a rule would cost too much: swarm lists times credential lists
]
