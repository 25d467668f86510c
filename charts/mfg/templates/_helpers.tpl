{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* Labels by which objects of the operator find each other. */}}
{{- define "mfg.selectorLabels" -}}
app.kubernetes.io/name: mfg
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mfg.labels" -}}
{{ include "mfg.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/*
Where the operator runs: not beside what it has to fail over, and no two replicas together. What the values say of pods wins over both.
Only pods of the same template must keep apart: with no free node a new one could otherwise never start, and so no old one end.
*/}}
{{- define "mfg.affinity" -}}
{{- $own := dict "podAntiAffinity" (include "mfg.antiAffinity" . | fromYaml) -}}
{{- toYaml (merge (deepCopy .Values.affinity) (ternary dict $own (hasKey .Values.affinity "podAntiAffinity"))) -}}
{{- end }}

{{- define "mfg.antiAffinity" -}}
{{- if and (gt (int .Values.replicas) 1) .Values.replicasApart }}
requiredDuringSchedulingIgnoredDuringExecution:
  - topologyKey: kubernetes.io/hostname
    labelSelector:
      matchLabels:
        {{- include "mfg.selectorLabels" . | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
preferredDuringSchedulingIgnoredDuringExecution:
  {{- if gt (int .Values.replicas) 1 }}
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "mfg.selectorLabels" . | nindent 10 }}
  {{- end }}
  - weight: 60
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      namespaceSelector: {}
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: mysql
          mysql-mfg.io/role: primary
  - weight: 20
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      namespaceSelector: {}
      labelSelector:
        matchLabels:
          app.kubernetes.io/name: mysql
        matchExpressions:
          - key: mysql-mfg.io/failover-group
            operator: Exists
{{- end }}

{{/* An image by digest if there is one, else by tag. Takes (list <image values> <chart>). */}}
{{- define "mfg.image" -}}
{{- $image := index . 0 -}}
{{- $chart := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The name of cluster-scoped objects: two releases in two namespaces must not share one. */}}
{{- define "mfg.clusterName" -}}
mfg-operator-{{ .Release.Namespace }}
{{- end }}

{{/* The rules for the objects of a group, given for the whole cluster or for single namespaces. */}}
{{- define "mfg.groupRules" -}}
- apiGroups: [mysql-mfg.io]
  resources: [mysqlfailovergroups]
  verbs: [get, list, watch, patch]
- apiGroups: [mysql-mfg.io]
  resources: [mysqlfailovergroups/status]
  verbs: [patch]
- apiGroups: [mysql-mfg.io]
  resources: [mysqlfailovergroups/finalizers]
  verbs: [update]
# Schedules make backups and retention removes them; the finalizer holds one until its storage was dealt with.
- apiGroups: [mysql-mfg.io]
  resources: [mysqlbackups]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [mysql-mfg.io]
  resources: [mysqlbackups/status]
  verbs: [patch]
- apiGroups: [mysql-mfg.io]
  resources: [mysqlbackups/finalizers]
  verbs: [update]
# The Jobs that make, verify and remove backups. They have no account of their own.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
# The monitor labels pods with role and health; the deployments create them. The pod of a clone that mysqld cannot cancel is
# deleted.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps, persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
# Secrets are read one by one, by name: the operator cannot list the Secrets of other applications. Its own namespace is the exception.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create, patch, delete]
{{- if .Values.auxiliary.escrowTLS.enabled }}
# Except for keyrings in escrow: the number of the next version is that of the highest there is, and one more, and one that
# is deleted must be noticed at once. There is no narrower right. The operator asks only for names, labels and annotations,
# and only of Secrets with the label of keyrings.
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch]
{{- end }}
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [cert-manager.io]
  resources: [certificates]
  verbs: [get, create, patch]
# The record of the active site, for external-dns (spec.dns).
- apiGroups: [externaldns.k8s.io]
  resources: [dnsendpoints]
  verbs: [get, create, patch, delete]
{{- end }}

{{/* The labels by which the operator, Services and budgets find and tell apart the pods of a group, as a list in CEL. */}}
{{- define "mfg.podLabelKeys" -}}
['app.kubernetes.io/name', 'mysql-mfg.io/failover-group', 'mysql-mfg.io/site', 'mysql-mfg.io/role', 'mysql-mfg.io/healthy',
        'mysql-mfg.io/readable', 'mysql-mfg.io/protected', 'mysql-mfg.io/cache-role', 'mysql-mfg.io/cache-traffic']
{{- end }}
