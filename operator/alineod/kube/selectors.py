"""Label selectors as far as this program writes them: `a=b`, `a!=b`, `a`, `!a`, joined by commas. Pure."""

from collections.abc import Callable, Mapping

Matcher = Callable[[Mapping[str, str]], bool]


def parse_selector(text: str) -> Matcher:
    """What decides whether labels match; an empty selector matches everything."""
    rules = [_parse_rule(rule.strip()) for rule in text.split(",") if rule.strip()]
    return lambda labels: all(rule(labels) for rule in rules)


def _parse_rule(text: str) -> Matcher:
    label, unequal, value = text.partition("!=")
    if unequal:
        return lambda labels: labels.get(label.strip()) != value.strip()
    label, equal, value = text.partition("=")
    if equal:
        return lambda labels: labels.get(label.strip()) == value.strip("= ")
    if text.startswith("!"):
        return lambda labels: text[1:] not in labels
    return lambda labels: text in labels
