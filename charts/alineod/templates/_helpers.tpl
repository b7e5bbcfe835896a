{{- define "alineod.fullname" -}}
{{- if contains "alineod" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-alineod" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "alineod.instance" -}}
{{- .Values.instance | default .Release.Name -}}
{{- end -}}

{{- define "alineod.selector" -}}
app.kubernetes.io/name: alineod
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "alineod.labels" -}}
{{ include "alineod.selector" . }}
app.kubernetes.io/part-of: alineod
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "alineod.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "alineod.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | required "serviceAccount.create is false: name the account to use in serviceAccount.name" -}}
{{- end -}}
{{- end -}}

{{- /* Names of what belongs to no namespace carry the release's namespace, so that two releases do not meet. */ -}}
{{- define "alineod.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "alineod.fullname" .) -}}
{{- end -}}

{{- define "alineod.storage" -}}
{{- $storage := .Values.ledger.storage | default (.Values.bucket.name | empty | ternary "claim" "emptyDir") -}}
{{- if and (eq $storage "emptyDir") (not .Values.bucket.name) -}}
{{- fail "without a bucket the ledger would be lost with its pod: set bucket.name, or ledger.storage=claim" -}}
{{- end -}}
{{- if and (eq $storage "claim") (gt (int .Values.replicas) 1) -}}
{{- fail (printf "the ledger's claim can be used by one pod only, and replicas is %d: set replicas=1, or bucket.name and ledger.storage=emptyDir" (int .Values.replicas)) -}}
{{- end -}}
{{- $storage -}}
{{- end -}}

{{- define "alineod.bucketEnv" -}}
- {name: ALINEOD_INSTANCE, value: {{ include "alineod.instance" . | quote }}}
- {name: ALINEOD_LEDGER_DIR, value: /var/lib/alineod}
- {name: ALINEOD_BUCKET_NAME, value: {{ .Values.bucket.name | quote }}}
- {name: ALINEOD_BUCKET_PREFIX, value: {{ .Values.bucket.prefix | quote }}}
- {name: ALINEOD_BUCKET_ENDPOINT, value: {{ .Values.bucket.endpoint | quote }}}
- {name: ALINEOD_BUCKET_REGION, value: {{ .Values.bucket.region | quote }}}
- {name: ALINEOD_BUCKET_FENCING, value: {{ .Values.bucket.fencing | quote }}}
{{- if .Values.bucket.existingSecret }}
- {name: ALINEOD_BUCKET_KEYS, value: /run/alineod-keys}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "alineod.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
