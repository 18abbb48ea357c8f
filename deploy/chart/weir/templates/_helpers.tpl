{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* The name of most objects. It leaves room for a suffix, because names have at most 63 characters. */}}
{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "weir.name" .) .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "weir.name" .) | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "weir.selectorLabels" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "weir.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "weir.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "weir.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "weir.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* "true" for the memory store: one server, with a file. */}}
{{- define "weir.inMemory" -}}
{{- if eq .Values.store.kind "memory" }}true{{ end }}
{{- end }}

{{/* "true" if there is a limits file: on DynamoDB the limits are in the table. */}}
{{- define "weir.hasLimits" -}}
{{- if ne .Values.store.kind "dynamodb" }}true{{ end }}
{{- end }}

{{/* The least number of servers. */}}
{{- define "weir.replicas" -}}
{{- if .Values.autoscaling.enabled }}
{{- .Values.autoscaling.minReplicas | int }}
{{- else if kindIs "invalid" .Values.replicas }}
{{- ternary 1 2 (eq .Values.store.kind "memory") }}
{{- else }}
{{- .Values.replicas | int }}
{{- end }}
{{- end }}

{{- define "weir.storeURL" -}}
{{- $s := .Values.store }}
{{- $query := list }}
{{- $at := "memory:" }}
{{- if eq $s.kind "memory" }}
{{- $query = append $query "snapshot=/var/lib/weir/state" }}
{{- else if eq $s.kind "dynamodb" }}
{{- $at = printf "dynamodb://%s" $s.dynamodb.table }}
{{- with $s.dynamodb.region }}{{ $query = append $query (printf "region=%s" .) }}{{ end }}
{{- with $s.dynamodb.namespace }}{{ $query = append $query (printf "namespace=%s" .) }}{{ end }}
{{- else }}
{{- $at = printf "tigerbeetle://%s" (join "," $s.tigerbeetle.addresses) }}
{{- with $s.tigerbeetle.cluster }}{{ $query = append $query (printf "cluster=%s" .) }}{{ end }}
{{- with $s.tigerbeetle.namespace }}{{ $query = append $query (printf "namespace=%s" .) }}{{ end }}
{{- end }}
{{- with $s.query }}{{ $query = append $query . }}{{ end }}
{{- $at }}{{ if $query }}?{{ join "&" $query }}{{ end }}
{{- end }}

{{- define "weir.limitsConfigMap" -}}
{{- default (printf "%s-limits" (include "weir.fullname" .)) .Values.limits.existingConfigMap }}
{{- end }}

{{- define "weir.tokensSecret" -}}
{{- default (printf "%s-tokens" (include "weir.fullname" .)) .Values.tokens.existingSecret }}
{{- end }}

{{/* "true" if the chart makes the bearer tokens. */}}
{{- define "weir.makesTokens" -}}
{{- if not (or .Values.tokens.insecureNone .Values.tokens.existingSecret .Values.tokens.entries) }}true{{ end }}
{{- end }}

{{- define "weir.claim" -}}
{{- default (printf "%s-state" (include "weir.fullname" .)) .Values.store.memory.persistence.existingClaim }}
{{- end }}

{{- define "weir.scheme" -}}
{{- if .Values.tls.existingSecret }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}

{{/* Seconds for which a server that ends still takes calls; 0 for the server's own default. */}}
{{- define "weir.shutdownDelay" -}}
{{- if kindIs "invalid" .Values.server.shutdownDelaySeconds }}
{{- ternary 0 5 (eq .Values.store.kind "memory") }}
{{- else }}
{{- .Values.server.shutdownDelaySeconds | int }}
{{- end }}
{{- end }}

{{/* The delay, the calls in progress, and time for the last snapshot and traces. */}}
{{- define "weir.gracePeriod" -}}
{{- add (include "weir.shutdownDelay" . | int) .Values.server.shutdownTimeoutSeconds 15 }}
{{- end }}

{{/* Fails for values that are right one by one, but not together. */}}
{{- define "weir.check" -}}
{{- $v := .Values }}
{{- if include "weir.inMemory" . }}
{{- if $v.autoscaling.enabled }}
{{- fail "autoscaling.enabled: the memory store is for exactly one server: use dynamodb or tigerbeetle for several" }}
{{- end }}
{{- if gt (include "weir.replicas" . | int) 1 }}
{{- fail "replicas: the memory store is for exactly one server: use dynamodb or tigerbeetle for several" }}
{{- end }}
{{- else if eq $v.store.kind "dynamodb" }}
{{- if not $v.store.dynamodb.table }}
{{- fail "store.dynamodb.table: name the table; weir table create makes one" }}
{{- end }}
{{- if or $v.limits.file $v.limits.existingConfigMap }}
{{- fail "limits: on DynamoDB the limits are in the table: leave out limits.file and limits.existingConfigMap, and use weir limits apply" }}
{{- end }}
{{- else if not $v.store.tigerbeetle.addresses }}
{{- fail "store.tigerbeetle.addresses: give HOST:PORT of each replica" }}
{{- end }}
{{- if and $v.limits.file $v.limits.existingConfigMap }}
{{- fail "limits: give limits.file or limits.existingConfigMap, not both" }}
{{- end }}
{{- if and $v.tokens.existingSecret $v.tokens.entries }}
{{- fail "tokens: give tokens.existingSecret or tokens.entries, not both" }}
{{- end }}
{{- if and $v.tokens.insecureNone (or $v.tokens.existingSecret $v.tokens.entries) }}
{{- fail "tokens.insecureNone: there are bearer tokens: leave out either" }}
{{- end }}
{{- if and $v.autoscaling.enabled (gt ($v.autoscaling.minReplicas | int) ($v.autoscaling.maxReplicas | int)) }}
{{- fail "autoscaling.minReplicas: is above maxReplicas" }}
{{- end }}
{{- if eq ($v.probes.port | int) 7117 }}
{{- fail "probes.port: 7117 is the port of the server" }}
{{- end }}
{{- if and $v.serviceMonitor.enabled (eq ($v.service.port | int) ($v.probes.port | int)) }}
{{- fail "probes.port: is the Service's port too" }}
{{- end }}
{{- if and $v.serviceMonitor.enabled (not $v.tokens.insecureNone) (not (include "weir.makesTokens" .)) (not $v.serviceMonitor.tokenSecret.name) }}
{{- fail "serviceMonitor.tokenSecret.name: name a Secret with a bearer token of the role read" }}
{{- end }}
{{- end }}
