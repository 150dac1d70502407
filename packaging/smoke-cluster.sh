#!/usr/bin/env bash
# The chart of a release in the cluster of KUBECONFIG, with the first profile and the first denial: smoke-cluster.sh ARTIFACTS HELM
# KUBECTL. For a control plane without nodes, as `controlplane run` starts one: the controller of the image is run as a process.
set -euo pipefail
artifacts=$(realpath "$1") helm=$2 kubectl=$3
: "${KUBECONFIG:?names the cluster, which must be one to throw away}"
at=$(mktemp -d) controller=
trap '[ -z "$controller" ] || kill "$controller"; rm -rf "$at"' EXIT
cd "$at"
export HELM_CACHE_HOME=$at/cache HELM_CONFIG_HOME=$at/config HELM_DATA_HOME=$at/data
fail() { echo "release-smoke-cluster: $1" >&2; tail -n 5 log >&2; exit 1; }
: > log
"$helm" install palisade "$artifacts"/palisade-chart-*.tgz --namespace palisade-system --create-namespace > notes
"$kubectl" wait --for=condition=Established --timeout=120s crd/toolsecurityprofiles.toolsecurity.dev

mkdir image root && tar -xf "$artifacts"/palisade-controller-*.oci.tar -C image
tar -xzf "image/blobs/sha256/$(cat image/blobs/sha256/"$(sed 's/.*"digest":"sha256:\([0-9a-f]*\)".*/\1/' image/index.json)" \
	| sed 's/.*"layers":\[.*"digest":"sha256:\([0-9a-f]*\)".*/\1/')" -C root
root/usr/local/bin/palisade-controller --listen 127.0.0.1:0 > log 2>&1 &
controller=$!

"$kubectl" create namespace tool-a
"$kubectl" label namespace tool-a tenant=yes
"$kubectl" apply -f - <<YAML
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: restricted}
spec:
  namespaceSelector: {matchLabels: {tenant: "yes"}}
  baseline: Restricted
YAML
"$kubectl" wait --for=condition=Ready --timeout=180s toolsecurityprofile/restricted || fail 'the profile is not Ready'
if "$kubectl" create --dry-run=server -f - 2>said <<YAML
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: tool-a}
spec:
  hostNetwork: true
  containers: [{name: main, image: example.org/main:1, securityContext: {privileged: true}}]
YAML
then fail 'a violating pod was admitted'; fi
grep -q 'hostNetwork' said || fail "the pod was denied for something else: $(cat said)"
cat said
echo 'release-smoke-cluster: passed'
