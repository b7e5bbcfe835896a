"""The chart's admission policies."""

from alineod.crd.policy import POLICIES, Policy, build_policy_spec
from alineod.crd.schema import Json
from alineod.generate.text import build_banner, render_yaml

PATH = "charts/alineod/templates/admission.yaml"
API = "admissionregistration.k8s.io/v1"

NAME = '{{{{ include "alineod.clusterName" . }}}}-{}'
METADATA = """---
apiVersion: {api}
kind: {kind}
metadata:
  name: {name}
  labels:
    {{{{- include "alineod.labels" . | nindent 4 }}}}
"""
BINDING = """spec:
  policyName: {name}
  validationActions: [Deny]
  {{{{- with .Values.namespaces }}}}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - key: kubernetes.io/metadata.name
          operator: In
          values:
            {{{{- toYaml . | nindent 12 }}}}
  {{{{- end }}}}
"""


def build_policy_files() -> dict[str, str]:
    """The template by its path below the repository's root."""
    text = "".join(_render(policy) for policy in POLICIES)
    banner = build_banner("operator/alineod/crd/policy.py")
    return {PATH: f"{banner}{{{{- if .Values.admissionPolicy.enabled }}}}\n{text}{{{{- end }}}}\n"}


def build_policies() -> list[Json]:
    """The policies and their bindings as plain objects, as an installation for all namespaces has them."""
    found: list[Json] = []
    for policy in POLICIES:
        metadata = {"name": f"alineod-{policy.definition.plural}"}
        binding = {"policyName": metadata["name"], "validationActions": ["Deny"]}
        kinds = {"ValidatingAdmissionPolicy": build_policy_spec(policy), "ValidatingAdmissionPolicyBinding": binding}
        found += [{"apiVersion": API, "kind": kind, "metadata": metadata, "spec": kinds[kind]} for kind in kinds]
    return found


def _render(policy: Policy) -> str:
    name = NAME.format(policy.definition.plural)
    spec = render_yaml({"spec": build_policy_spec(policy)})
    if "{{" in spec:
        raise ValueError(f"the policy of {policy.definition.plural} holds {{{{, which Helm would take for its own")
    return (
        METADATA.format(api=API, kind="ValidatingAdmissionPolicy", name=name)
        + spec
        + METADATA.format(api=API, kind="ValidatingAdmissionPolicyBinding", name=name)
        + BINDING.format(name=name)
    )
