#!/usr/bin/env bash
# From the artefacts of a release alone, in an empty directory: verify, install, judge, render the chart.
# smoke.sh ARTIFACTS [HELM]. Without a helm the chart is only unpacked.
set -euo pipefail
artifacts=$(realpath "$1") helm=${2:-}
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
fail() { echo "release-smoke: $1" >&2; exit 1; }
say() { printf '%s\n' "--- $1"; }

say 'what was downloaded is what was released'
(cd "$artifacts" && sha256sum -c SHA256SUMS --quiet)

say 'what the programs are made of'
for program in palisade palisade-controller palisade-webhook; do
	bom=$artifacts/$program.cdx.json
	[ -s "$bom" ] || fail "there is no $program.cdx.json"
	grep -q " $program.cdx.json\$" "$artifacts/SHA256SUMS" || fail "SHA256SUMS does not name $program.cdx.json"
	grep -q '^  "specVersion": "1.5",$' "$bom" || fail "$program.cdx.json is not CycloneDX 1.5"
	echo "$program: $(grep -c '^      "type": "library",$' "$bom") packages"
done

say 'a damaged archive is not installed'
mkdir damaged && cp "$artifacts"/SHA256SUMS "$artifacts"/palisade-*-x86_64-linux.tar.gz damaged/
printf x >> damaged/palisade-*-x86_64-linux.tar.gz
if sh "$artifacts/install.sh" damaged "$at/none" 2>damaged/said; then fail 'install.sh installed a damaged archive'; fi
grep -q 'is not the file that SHA256SUMS names' damaged/said || fail "install.sh said: $(cat damaged/said)"
[ ! -e "$at/none" ] || fail 'install.sh wrote something before it verified the archive'

say 'install'
sh "$artifacts/install.sh" "$artifacts" "$at/prefix"
PATH=$at/prefix/bin:$PATH
palisade --version
kubectl-palisade --version >/dev/null
[ "$(kubectl_complete-palisade chec | head -n 1)" = check ] || fail 'kubectl_complete-palisade does not complete check'
[ -s prefix/share/man/man1/palisade-check.1 ] || fail 'there is no manual page of palisade check'

say 'a first profile, and a first denial'
cat > profile.yaml <<YAML
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: restricted}
spec:
  namespaceSelector: {matchLabels: {tenant: "yes"}}
  baseline: Restricted
YAML
cat > pod.yaml <<YAML
apiVersion: v1
kind: Pod
metadata: {name: first, namespace: tool-a}
spec:
  hostNetwork: true
  containers: [{name: main, image: example.org/main:1, securityContext: {privileged: true}}]
YAML
palisade render profile.yaml > rendered.yaml
grep -q 'kind: ValidatingAdmissionPolicy' rendered.yaml || fail 'the profile became no policy'
code=0
palisade check --profile profile.yaml pod.yaml > said 2>&1 || code=$?
[ $code = 1 ] || fail "palisade check ended with $code: $(cat said)"
head -n 8 said

say 'the image: each blob is what its name says'
mkdir image && tar -xf "$artifacts"/palisade-controller-*.oci.tar -C image
for blob in image/blobs/sha256/*; do
	[ "$(sha256sum < "$blob" | cut -d ' ' -f 1)" = "$(basename "$blob")" ] || fail "$blob is something else"
done
manifest=$(sed 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/' image/index.json)
[ -f "image/blobs/${manifest/://}" ] || fail 'index.json names a manifest that is not there'
mkdir root && tar -xzf "image/blobs/sha256/$(sed 's/.*"layers":\[.*"digest":"sha256:\([0-9a-f]*\)".*/\1/' "image/blobs/${manifest/://}")" -C root
root/usr/local/bin/palisade-controller --version
root/usr/local/bin/palisade-webhook --version

# zlib's bytes, with gzip's head instead of its own; gzip then misses its end, which is not there.
if command -v objcopy >/dev/null; then
	say 'each program says by itself what it is made of'
	for program in prefix/bin/palisade root/usr/local/bin/palisade-controller root/usr/local/bin/palisade-webhook; do
		objcopy --dump-section ".dep-v0=$at/deps" "$(realpath "$program")" /dev/null || fail "$program has no section .dep-v0"
		{ printf '\037\213\010\0\0\0\0\0\0\0'; tail -c +3 deps; } | gzip -dc > deps.json 2>/dev/null || true
		grep -q '"name":"palisade-kube-json"' deps.json || fail "$program does not name palisade-kube-json"
	done
fi

say 'the chart asks for that image'
chart=$(echo "$artifacts"/palisade-chart-*.tgz)
if [ -x "$helm" ]; then
	"$helm" template palisade "$chart" --namespace palisade-system > rendered-chart.yaml
	grep -q "image: .*@$manifest" rendered-chart.yaml || fail 'the chart asks for another image'
else
	tar -xzf "$chart" && grep -q "digest: \"$manifest\"" palisade/values.yaml || fail 'the chart asks for another image'
	echo 'skipped: no helm to render it (cargo xtask helm-program builds one)'
fi
say 'passed'
