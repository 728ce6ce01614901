{{- /* Names are fixed, not made of the release's: pods of jobs ask for di-server, and one operator is what a namespace needs. */ -}}

{{- define "tutti.namespace" -}}
{{ .Values.namespace.name | default .Release.Namespace }}
{{- end -}}

{{- define "tutti.labels" -}}
app.kubernetes.io/part-of: tutti
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "tutti.selector" -}}
app.kubernetes.io/name: di-operator
{{- end -}}

{{- /* "yes", or nothing, which is false to `if`. */ -}}
{{- define "tutti.cluster" -}}
{{- if eq .Values.scope "cluster" }}yes{{ end -}}
{{- end -}}

{{- define "tutti.crds" -}}
{{- if kindIs "bool" .Values.crds.enabled }}{{ if .Values.crds.enabled }}yes{{ end }}{{ else }}{{ include "tutti.cluster" . }}{{ end -}}
{{- end -}}

{{- define "tutti.replicas" -}}
{{- if kindIs "invalid" .Values.replicas }}{{ ternary 2 1 (eq .Values.scope "cluster") }}{{ else }}{{ int .Values.replicas }}{{ end -}}
{{- end -}}

{{- define "tutti.gpusPerNode" -}}
{{- if not (kindIs "invalid" .Values.gpusPerNode) }}{{ int .Values.gpusPerNode }}{{ else if eq .Values.scope "namespace" }}8{{ end -}}
{{- end -}}

{{- define "tutti.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}

{{- /* A list of: the root, a role's name, its kind, the account and where that is, its rules as YAML. The role, and its binding to the account. */ -}}
{{- define "tutti.grantTo" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $kind := index . 2 }}{{ $space := index . 3 }}{{ $account := index . 4 }}{{ $rules := index . 5 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- if eq $kind "Role" }}
  namespace: {{ $space }}
  {{- end }}
  labels:
    {{- include "tutti.labels" $root | nindent 4 }}
rules:
{{- $rules | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- if eq $kind "Role" }}
  namespace: {{ $space }}
  {{- end }}
  labels:
    {{- include "tutti.labels" $root | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ $name }}}
subjects:
- {kind: ServiceAccount, name: {{ $account }}, namespace: {{ $space }}}
{{- end -}}

{{- /* The same for the operator's account: the root, a role's name, its kind, its rules. */ -}}
{{- define "tutti.grant" -}}
{{- $root := index . 0 -}}
{{ include "tutti.grantTo" (list $root (index . 1) (index . 2) (include "tutti.namespace" $root) $root.Values.serviceAccount.name (index . 3)) }}
{{- end -}}

{{- /* A ClusterRole that a cluster adds to those of its users: the root, its name, the roles it is added to, its rules as YAML. */ -}}
{{- define "tutti.userRole" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}{{ $to := index . 2 }}{{ $rules := index . 3 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "tutti.labels" $root | nindent 4 }}
    {{- range $to }}
    rbac.authorization.k8s.io/aggregate-to-{{ . }}: "true"
    {{- end }}
rules:
{{- $rules | nindent 0 }}
{{- end -}}

{{- /* The file of accelerators; "" where the operator gets none. */}}
{{- define "tutti.accelerators" -}}
{{- if and .Values.tfjob.enabled .Values.tfjob.accelerators -}}
{{- dict "accelerators" .Values.tfjob.accelerators | toYaml -}}
{{- end -}}
{{- end -}}
