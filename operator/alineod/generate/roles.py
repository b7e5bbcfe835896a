"""The chart's roles: the operator's own from its table of permissions, and what they add to people's roles."""

from collections.abc import Iterable

from alineod.crd.base import GROUP
from alineod.crd.definition import DEFINITIONS
from alineod.crd.schema import Json
from alineod.generate.text import build_banner, render_yaml
from alineod.kube.permissions import PERMISSIONS, Permission, Scope

END = "{{- end }}\n"
LABELS = '  labels:\n    {{- include "alineod.labels" . | nindent 4 }}\n'
SUBJECTS = (
    "subjects:\n  - kind: ServiceAccount\n"
    '    name: {{ include "alineod.serviceAccount" . }}\n    namespace: {{ .Release.Namespace }}\n'
)

PLURALS = [definition.plural for definition in DEFINITIONS]

VERBS_OF_AGENTS = ("prompt", "steer", "pause", "resume", "stop", "notify-on", "deliver")
READS_OF_AGENTS = ("result", "transcript", "await", "inbox", "events")
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str], names: Iterable[str] = ()) -> Json:
    narrowed = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(resources), **narrowed, "verbs": list(verbs)}


VIEW = (
    _rule(GROUP, PLURALS, READ),
    _rule(GROUP, [f"{plural}/status" for plural in PLURALS], ["get"]),
    _rule(GROUP, [f"agents/{read}" for read in READS_OF_AGENTS], ["get"]),
)
EDIT = (
    _rule(GROUP, PLURALS, WRITE),
    _rule(GROUP, [f"agents/{verb}" for verb in VERBS_OF_AGENTS], ["create"]),
)
PEOPLE = {"view": (VIEW, ["view", "edit", "admin"]), "edit": (EDIT, ["edit", "admin"])}


def build_role_files() -> dict[str, str]:
    """Chart templates by path below the repository's root."""
    templates = "charts/alineod/templates"
    return {
        f"{templates}/roles.yaml": build_banner("operator/alineod/kube/permissions.py") + _build_operator_roles(),
        f"{templates}/people.yaml": build_banner("operator/alineod/generate/roles.py") + _build_people_roles(),
    }


def build_rules(scope: Scope) -> list[Json]:
    """The operator's rules in one scope."""
    chosen: list[Permission] = [permission for permission in PERMISSIONS if permission.scope is scope]
    return [_rule(p.group, p.resources, p.verbs, p.names) for p in chosen]


def _build_operator_roles() -> str:
    cluster = _role("ClusterRole", "-cluster", "", build_rules(Scope.CLUSTER))
    everywhere = _role("ClusterRole", "", "", build_rules(Scope.WATCHED))
    listed = _role("Role", "", "{{ $namespace }}", build_rules(Scope.WATCHED))
    own = _role("Role", "-own", "{{ .Release.Namespace }}", build_rules(Scope.OWN))
    each = f"{{{{- range $namespace := .Values.namespaces }}}}\n{{{{- with $ }}}}\n{listed}{END}{END}"
    chosen = f"{{{{- if .Values.namespaces }}}}\n{each}{{{{- else }}}}\n{everywhere}{END}"
    return f"{{{{- if .Values.rbac.create }}}}\n{cluster}{chosen}{own}{END}"


def _role(kind: str, suffix: str, namespace: str, rules: list[Json]) -> str:
    """A role and its binding to the operator's account."""
    named = f'  name: {{{{ include "alineod.clusterName" . }}}}{suffix}\n'
    metadata = named + (f"  namespace: {namespace}\n" if namespace else "") + LABELS
    head = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {}\nmetadata:\n{}"
    reference = f"roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n{named}"
    return (
        head.format(kind, metadata)
        + render_yaml({"rules": rules})
        + head.format(f"{kind}Binding", metadata)
        + reference
        + SUBJECTS
    )


def _build_people_roles() -> str:
    text = "{{- if .Values.rbac.aggregate }}\n"
    for name, (rules, targets) in PEOPLE.items():
        labels = "".join(f'    rbac.authorization.k8s.io/aggregate-to-{target}: "true"\n' for target in targets)
        text += (
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n"
            f'  name: {{{{ include "alineod.clusterName" . }}}}-{name}\n'
            f"{LABELS}{labels}"
        ) + render_yaml({"rules": list(rules)})
    return text + "{{- end }}\n"
