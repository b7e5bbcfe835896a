"""The reference pages: fields, columns and conditions of each kind, permissions, metrics, and the chart's values."""

from collections.abc import Iterator
from pathlib import Path

from alineod.crd.base import API_VERSION
from alineod.crd.definition import DEFINITIONS, Definition
from alineod.crd.policy import POLICIES
from alineod.crd.schema import Json, build_schema
from alineod.crd.status import CONDITIONS_OF, MEANINGS
from alineod.generate.roles import EDIT, VIEW, build_rules
from alineod.generate.text import build_page_banner
from alineod.kube.permissions import Scope
from alineod.ledger.reference import build_events_reference
from alineod.metrics import Metrics

FOLDER = "docs/reference"
VALUES = "charts/alineod/values.yaml"
SCOPES = {
    Scope.WATCHED: "In every namespace that is served",
    Scope.OWN: "In its own namespace",
    Scope.CLUSTER: "In the cluster",
}


def build_reference_files(root: Path) -> dict[str, str]:
    """Pages by path below the repository's root."""
    pages = {
        f"{FOLDER}/{definition.kind.lower()}.md": build_page_banner("operator/alineod/crd") + build_kind(definition)
        for definition in DEFINITIONS
    }
    permissions = build_page_banner("operator/alineod/kube/permissions.py") + build_permissions()
    chart = build_page_banner("charts/alineod/values.yaml") + build_chart(
        (root / "charts/alineod/values.yaml").read_text()
    )
    events = build_page_banner("operator/alineod/domain/events.py") + build_events_reference()
    metrics = build_page_banner("operator/alineod/metrics.py") + build_metrics()
    single = {"permissions": permissions, "chart": chart, "events": events, "metrics": metrics}
    return pages | {f"{FOLDER}/{name}.md": page for name, page in single.items()}


def build_kind(definition: Definition) -> str:
    """Everything about one kind."""
    parts = [
        f"# {definition.kind}",
        f"{definition.description}\n\n`apiVersion: {API_VERSION}`, `kind: {definition.kind}`, "
        f"short name `{definition.short}`.",
        "## Fields of `spec`\n\nA field in **bold** must be given.",
        _table(("Field", "Type", "Meaning"), _fields(build_schema(definition.spec), "")),
        "## Refused at the door\n\nBeside what the types above say:",
        "\n".join(f"- {sentence}" for sentence in read_sentences(definition)),
        "## Columns of `kubectl get`\n\nThose in *italics* are shown with `-o wide`.",
        _table(("Column", "Meaning"), ((_column_name(c.name, c.wide), c.description) for c in definition.columns)),
        "## Conditions",
        _table(("Type", "Meaning"), ((f"`{kind}`", MEANINGS[kind]) for kind in CONDITIONS_OF[definition.kind])),
        "## Fields of `status`",
        _table(("Field", "Type", "Meaning"), _fields(build_schema(definition.status), "")),
    ]
    return "\n\n".join(parts) + "\n"


def build_permissions() -> str:
    """What the operator may do, and what the chart adds to people's roles."""
    operator = [f"## {title}\n\n{_rules_table(build_rules(scope))}" for scope, title in SCOPES.items()]
    people = (
        "## What people get\n\nThe chart adds to the cluster's own roles: to `view` and above the first table, to "
        f"`edit` and `admin` the second.\n\n{_rules_table(list(VIEW))}\n\n{_rules_table(list(EDIT))}"
    )
    return "\n\n".join(("# Permissions", "What the operator may do.", *operator, people)) + "\n"


def build_metrics() -> str:
    """Every series, by the name that it is asked for."""
    families = sorted(Metrics().registry.collect(), key=lambda family: family.name)
    suffixes = {"counter": "_total"}
    rows = ((f"`{f.name}{suffixes.get(f.type, '')}`", f.type, f.documentation) for f in families)
    head = "# Metrics\n\nThe operator serves them at `:8082/metrics`, leader and standby alike. Times are in seconds."
    return f"{head}\n\n{_table(('Name', 'Type', 'Meaning'), rows)}\n"


def build_chart(values: str) -> str:
    """The chart's values with their comments, as they stand in the chart."""
    return f"# Values of the chart\n\n```yaml\n{values}```\n"


def _fields(schema: Json, prefix: str) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        path = f"{prefix}{name}"
        shown = f"**`{path}`**" if name in required else f"`{path}`"
        yield shown, _type(field), _meaning(field)
        nested, suffix = (field.get("items", {}), "[].") if field.get("type") == "array" else (field, ".")
        if "properties" in nested:
            yield from _fields(nested, f"{path}{suffix}")


def _type(field: Json) -> str:
    match field:
        case {"enum": values}:
            return " \\| ".join(values)
        case {"x-kubernetes-int-or-string": True}:
            return "quantity"
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": items}:
            return f"map of {_type(items)}"
        case {"type": kind}:
            return str(field.get("format") if kind == "string" and "format" in field else kind)
        case _:
            return "list or object"


def _meaning(field: Json) -> str:
    limits = {"maxLength": "characters", "maxItems": "entries", "maxProperties": "entries"}
    words = [field.get("description", "")]
    words += [f"At most {field[key]} {unit}." for key, unit in limits.items() if key in field and "enum" not in field]
    return " ".join(word.replace("|", "\\|") for word in words if word)


def read_sentences(definition: Definition) -> Iterator[str]:
    """Every rule's sentence once, in the order of the fields."""
    policy = next(policy for policy in POLICIES if policy.definition is definition)
    schema = {"properties": {"spec": build_schema(definition.spec)}}
    found = [*(rule.message for rule in definition.rules), *_messages(schema), *(c.sentence for c in policy.checks)]
    return iter(dict.fromkeys(f"{sentence[0].upper()}{sentence[1:]}." for sentence in found))


def _messages(schema: Json) -> Iterator[str]:
    for field in schema.get("properties", {}).values():
        yield from (rule["message"] for rule in field.get("x-kubernetes-validations", ()))
        yield from _messages(field)
        yield from (rule["message"] for rule in field.get("items", {}).get("x-kubernetes-validations", ()))
        yield from _messages(field.get("items", {}))


def _column_name(name: str, wide: bool) -> str:
    return f"*{name.upper()}*" if wide else name.upper()


def _rules_table(rules: list[Json]) -> str:
    rows = (
        (
            f"`{rule['apiGroups'][0] or 'core'}`",
            ", ".join(f"`{resource}`" for resource in rule["resources"])
            + (f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""),
            ", ".join(rule["verbs"]),
        )
        for rule in rules
    )
    return _table(("Group", "Resources", "Verbs"), rows)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
