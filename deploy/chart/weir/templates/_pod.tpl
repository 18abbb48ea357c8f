{{/* The arguments of the program. */}}
{{- define "weir.args" -}}
- serve
- {{ printf "--store=%s" (include "weir.storeURL" .) | quote }}
{{- if include "weir.hasLimits" . }}
- {{ printf "--limits=/etc/weir/limits/%s" .Values.limits.key | quote }}
{{- end }}
- --listen=:7117
- --probe-listen=:{{ .Values.probes.port }}
{{- if .Values.tokens.insecureNone }}
- --insecure-no-tokens
{{- else }}
- {{ printf "--tokens=/etc/weir/tokens/%s" .Values.tokens.key | quote }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- {{ printf "--tls-cert=/etc/weir/tls/%s" .Values.tls.certKey | quote }}
- {{ printf "--tls-key=/etc/weir/tls/%s" .Values.tls.keyKey | quote }}
{{- end }}
- --log-format={{ .Values.server.logFormat }}
- --log-level={{ .Values.server.logLevel }}
{{- with include "weir.shutdownDelay" . | int }}
- --shutdown-delay={{ . }}s
{{- end }}
- --shutdown-timeout={{ .Values.server.shutdownTimeoutSeconds }}s
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/*
Whole folders are mounted, never a subPath: a file that is mounted alone is not changed while the
pod runs, and weir reads the limits, the bearer tokens and the certificate again when they change.
*/}}
{{- define "weir.mounts" -}}
{{- if include "weir.hasLimits" . }}
- name: limits
  mountPath: /etc/weir/limits
  readOnly: true
{{- end }}
{{- if not .Values.tokens.insecureNone }}
- name: tokens
  mountPath: /etc/weir/tokens
  readOnly: true
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/weir/tls
  readOnly: true
{{- end }}
{{- if include "weir.inMemory" . }}
- name: state
  mountPath: /var/lib/weir
{{- end }}
{{- end }}

{{/* Secrets are root's, with mode 0400; fsGroup gives the server's group the right to read them. */}}
{{- define "weir.volumes" -}}
{{- if include "weir.hasLimits" . }}
- name: limits
  configMap:
    name: {{ include "weir.limitsConfigMap" . }}
{{- end }}
{{- if not .Values.tokens.insecureNone }}
- name: tokens
  secret:
    secretName: {{ include "weir.tokensSecret" . }}
    defaultMode: 0400
    items:
      - key: {{ .Values.tokens.key }}
        path: {{ .Values.tokens.key }}
{{- end }}
{{- if .Values.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ .Values.tls.existingSecret }}
    defaultMode: 0400
    items:
      - key: {{ .Values.tls.certKey }}
        path: {{ .Values.tls.certKey }}
      - key: {{ .Values.tls.keyKey }}
        path: {{ .Values.tls.keyKey }}
{{- end }}
{{- if include "weir.inMemory" . }}
- name: state
  {{- if .Values.store.memory.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ include "weir.claim" . }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- end }}
