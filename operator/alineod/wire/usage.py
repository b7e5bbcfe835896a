"""What turns used: read from what a sandbox says, and summed. Pure."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from alineod.wire.turns import Usage

LARGEST_AMOUNT = 10**12  # US dollars; what is more is no price
MOST_TOKENS = 10**12  # of one message; what is more is no number of tokens
NO_USAGE = Usage()


def parse_usage(data: Mapping[str, Any]) -> Usage:
    """What a record says was used; nothing where that is no usage."""
    try:
        usage = msgspec.convert(data.get("usage") or {}, Usage)
    except msgspec.ValidationError:
        return NO_USAGE
    return usage if max(usage.input_tokens, usage.output_tokens) <= MOST_TOKENS else NO_USAGE


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum, which never goes down; the money is unknown from the first part on whose money is.

    What a sandbox says about its money may be anything: what is no amount is not known.
    """
    usd = None
    if one.usd is not None or other.usd is not None:
        known = [_parse_money(usage) for usage in (one, other)]
        usd = None if None in known else str(sum(filter(None, known), Decimal(0)))
    return Usage(
        input_tokens=one.input_tokens + max(other.input_tokens, 0),
        output_tokens=one.output_tokens + max(other.output_tokens, 0),
        usd=usd,
    )


def _parse_money(usage: Usage) -> Decimal | None:
    if usage.usd is None:
        return None if usage.input_tokens or usage.output_tokens else Decimal(0)
    try:
        amount = Decimal(usage.usd)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < LARGEST_AMOUNT else None
