{{- /* Names in the code and in admission policies are those of one namespace. */ -}}
{{- define "palisade.check" -}}
{{- if ne .Release.Namespace "palisade-system" -}}
{{- fail (printf "namespace %s: Palisade must be installed in the namespace palisade-system; add --namespace palisade-system (with helm install also --create-namespace)" .Release.Namespace) -}}
{{- end -}}
{{- end -}}

{{- define "palisade.name" -}}
{{- if has . (list "controller" "webhook") }}palisade-{{ . }}{{ else }}palisade{{ end -}}
{{- end -}}

{{- /* Of a list: the root, and the component. Helm adds app.kubernetes.io/managed-by automatically. */ -}}
{{- define "palisade.labels" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
app.kubernetes.io/name: {{ include "palisade.name" $component }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ $component }}
app.kubernetes.io/part-of: palisade
{{- with $root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "palisade.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end }}{{ $image.repository -}}
{{- if $image.digest -}}
{{- with $image.tag }}:{{ . }}{{ end }}@{{ $image.digest -}}
{{- else -}}
:{{ $image.tag | default .Chart.AppVersion -}}
{{- end -}}
{{- end -}}

{{- /* Parts of the specs of all pods in the chart. */ -}}
{{- define "palisade.pod" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- /* Parts of all containers in the chart. */ -}}
{{- define "palisade.container" -}}
image: {{ include "palisade.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- /* Where the pods of a Deployment run. Of a list: the component, and its values. */ -}}
{{- define "palisade.scheduling" -}}
{{- $name := include "palisade.name" (index . 0) -}}
{{- with index . 1 }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
{{- range . }}
{{- $own := dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" $name)) }}
  {{- toYaml (list (merge (deepCopy .) $own)) | nindent 2 }}
{{- end }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The volume with what is to be logged. The ConfigMap is optional: create it to change the log level temporarily. */ -}}
{{- define "palisade.log" -}}
- name: log
  configMap:
    name: palisade-log
    optional: true
{{- end -}}
