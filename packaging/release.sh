#!/usr/bin/env bash
# Makes all artefacts of a release: release.sh VERSION DIRECTORY. Called by `cargo xtask release`.
#
# The same commit gives the same bytes: binaries name no path of this machine, archives are sorted and have the time of
# the commit. CARGO_AUDITABLE and CARGO_CYCLONEDX name the programs that write into binaries and beside them what they are made
# of. PALISADE_BINARIES names a directory with binaries that are built already; then nothing is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 out=$2
platform=x86_64-linux target=x86_64-unknown-linux-gnu
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
fail() { echo "release: $1" >&2; exit 1; }

of_workspace=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
[ "$version" = "$of_workspace" ] || fail "VERSION is $version, and Cargo.toml says $of_workspace: set it there and in charts/palisade/Chart.yaml, and commit it"
[ "$(grep -c "ersion: $version\$" charts/palisade/Chart.yaml)" = 2 ] || fail "charts/palisade/Chart.yaml does not say $version twice"

# Sorted, of nobody, of the time of the commit.
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=ustar -cf - "$@"; }
digest() { sha256sum "$1" | cut -d ' ' -f 1; }

binaries=${PALISADE_BINARIES:-}
if [ -z "$binaries" ]; then
	RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=/palisade --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
		"$CARGO_AUDITABLE" auditable build --release --locked --target $target -p palisade-cli -p palisade-controller -p palisade-webhook
	binaries=${CARGO_TARGET_DIR:-target}/$target/release
fi
for program in palisade palisade-controller palisade-webhook; do
	[ -x "$binaries/$program" ] || fail "there is no $binaries/$program"
	[ -z "${PALISADE_BINARIES:-}" ] || continue
	# Not by a pipe: `grep -q` ends it early, which then looks like a failure of readelf.
	segments=$(readelf -lW "$binaries/$program") sections=$(readelf -SW "$binaries/$program")
	# A loader that the binary asks for is not in the image.
	! grep -q INTERP <<<"$segments" || fail "$program is not static"
	grep -qF .dep-v0 <<<"$sections" || fail "$program does not say what it is made of"
done

rm -rf "$out" && mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

licences() {
	echo 'The licences of what is compiled into the programs of this archive and image.'
	cargo tree --locked --prefix none --edges normal --target $target --format '{p}|{l}' \
		-p palisade-cli -p palisade-controller -p palisade-webhook \
		| sed 's/ (\*)$//; s/ (proc-macro)//' | grep -v '^palisade-' | sort -u | while IFS='|' read -r package licence; do
		[ -n "$package" ] || continue
		printf '\n=== %s: %s\n' "$package" "$licence"
		directory=$(printf '%s' "$package" | sed 's/ v/-/; s/ .*//')
		for file in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$directory"/{LICENSE,LICENCE,COPYING,NOTICE,license}*; do
			[ ! -f "$file" ] || { printf '\n--- %s\n' "$(basename "$file")"; cat "$file"; }
		done
	done
}
licences > "$work/LICENSES-THIRD-PARTY"

# 1. The command line.
tree=$work/palisade-$version-$platform
mkdir -p "$tree/completions" "$tree/man"
install -m 755 "$binaries/palisade" packaging/kubectl_complete-palisade "$tree/"
ln -s palisade "$tree/kubectl-palisade"
cp LICENSE README.md "$work/LICENSES-THIRD-PARTY" "$tree/"
"$tree/palisade" completions bash > "$tree/completions/palisade.bash"
"$tree/palisade" completions zsh > "$tree/completions/_palisade"
"$tree/palisade" completions fish > "$tree/completions/palisade.fish"
"$tree/palisade" completions powershell > "$tree/completions/palisade.ps1"
"$tree/palisade" man --directory "$tree/man"
archive=palisade-$version-$platform.tar.gz
(cd "$work" && pack "palisade-$version-$platform") | gzip -n9 > "$out/$archive"

# 2. The image of controller and webhook, as an OCI layout. Nothing in it but the programs: no shell, no loader.
root=$work/root blobs=$work/image/blobs/sha256
mkdir -p "$root/usr/local/bin" "$root/etc" "$root/usr/share/doc/palisade" "$blobs"
install -m 755 "$binaries/palisade-controller" "$binaries/palisade-webhook" "$root/usr/local/bin/"
echo 'palisade:x:65532:65532::/:/sbin/nologin' > "$root/etc/passwd"
cp LICENSE "$work/LICENSES-THIRD-PARTY" "$root/usr/share/doc/palisade/"
(cd "$root" && pack etc usr) > "$work/layer.tar"
gzip -n9 < "$work/layer.tar" > "$work/layer.tar.gz"
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
printf '{"architecture":"amd64","os":"linux","created":"%s","config":{"User":"65532:65532","Env":["PATH=/usr/local/bin"],"Entrypoint":["palisade-controller"],"Labels":{"org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"Apache-2.0"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"cargo xtask release"}]}' \
	"$created" "$version" "$(digest "$work/layer.tar")" "$created" > "$work/config.json"
described() { printf '{"mediaType":"%s","digest":"sha256:%s","size":%s}' "$1" "$(digest "$2")" "$(stat -c %s "$2")"; }
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
	"$(described application/vnd.oci.image.config.v1+json "$work/config.json")" \
	"$(described application/vnd.oci.image.layer.v1.tar+gzip "$work/layer.tar.gz")" > "$work/manifest.json"
for blob in layer.tar.gz config.json manifest.json; do cp "$work/$blob" "$blobs/$(digest "$work/$blob")"; done
image=sha256:$(digest "$work/manifest.json")
printf '{"imageLayoutVersion":"1.0.0"}' > "$work/image/oci-layout"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"%s","size":%s,"platform":{"architecture":"amd64","os":"linux"},"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
	"$image" "$(stat -c %s "$work/manifest.json")" "$version" > "$work/image/index.json"
(cd "$work/image" && pack blobs index.json oci-layout) > "$out/palisade-controller-$version.oci.tar"

# 3. The chart, which asks for just this image. `helm package` would write the time of day into it.
cp -r charts/palisade "$work/palisade"
rm -f "$work/palisade/.helmignore"
sed -i "s/^  digest: \"\"\$/  digest: \"$image\"/" "$work/palisade/values.yaml"
grep -q "^  digest: \"$image\"\$" "$work/palisade/values.yaml" || fail 'charts/palisade/values.yaml has no image.digest to set'
(cd "$work" && pack palisade) | gzip -n9 > "$out/palisade-chart-$version.tgz"

# 4. What the programs are made of, what the others are installed by, and the notes.
packaging/sbom.sh "$out"
sed "s/@VERSION@/$version/g; s/@ARCHIVE@/$archive/g; s/@SHA256@/$(digest "$out/$archive")/" packaging/krew.yaml > "$out/palisade.yaml"
install -m 755 packaging/install.sh "$out/install.sh"
notes() { awk -v head="## [$1]" 'index($0, "## [") == 1 { on = index($0, head) == 1; next } on' CHANGELOG.md; }
notes "$version" > "$work/notes"
if ! grep -q . "$work/notes"; then
	echo "release: CHANGELOG.md has no section [$version]; the notes are those of [Unreleased]" >&2
	notes Unreleased > "$work/notes"
fi
{ printf 'Image: palisade-controller@%s\n' "$image"; cat "$work/notes"; } > "$out/RELEASE-NOTES.md"
(cd "$out" && sha256sum -- * > "$work/SHA256SUMS" && mv "$work/SHA256SUMS" SHA256SUMS)
ls -l "$out"
