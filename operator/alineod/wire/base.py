"""The codec: frozen records in Python, camelCase JSON outside, unknown fields ignored, missing ones defaulted."""

from typing import Any, TypeVar

import msgspec

from alineod.errors import Refused


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A record that crosses a process boundary."""


M = TypeVar("M")


def encode(message: Any) -> bytes:
    """The message as one line of JSON without a line feed."""
    return msgspec.json.encode(message)


def decode(kind: type[M], body: bytes) -> M:
    """Parse `body` as `kind`.

    Raises:
        Refused: reason `InvalidBody`; the message names the failing field.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("InvalidBody", str(error)) from error
