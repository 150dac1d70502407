#!/bin/sh
# Renders the profiles: the policies once, for all clusters, and the parameters of each cluster's namespaces. It fails if a
# profile is rejected, or if a namespace would deny all its pods because a parameter is missing or malformed.
set -eu
cd "$(dirname "$0")"
profile=profiles/tools.yaml
version=${KUBE_VERSION:-1.36}

palisade render "$profile" --kube-version "$version" > rendered/policies/policies.yaml
for namespaces in clusters/*/parameters/namespaces.yaml; do
  parameters=$(dirname "$namespaces")/parameters.yaml
  # Parameters come first in what is rendered. The rest is the same for all clusters.
  palisade render "$profile" --namespaces "$namespaces" --kube-version "$version" > "$parameters.new"
  sed '/^apiVersion: admissionregistration/,$d' "$parameters.new" > "$parameters"
  rm "$parameters.new"
  # palisade has named each namespace and its problem by now.
  if grep '^  problem:' "$parameters" | grep -qv '^  problem: ""$'; then
    exit 1
  fi
done
