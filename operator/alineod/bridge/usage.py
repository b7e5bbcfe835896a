"""Sums of what turns used. Pure."""

from decimal import Decimal

from alineod.wire.turns import Usage


def add_usage(one: Usage, other: Usage) -> Usage:
    """Summed; the money is unknown as soon as some of it is: a cost that is not known is not zero."""
    unknown = any(part.usd is None and (part.input_tokens or part.output_tokens) for part in (one, other))
    known = [] if unknown else [Decimal(usd) for usd in (one.usd, other.usd) if usd is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        usd=format(sum(known, Decimal(0)).normalize(), "f") if known else None,
    )
