#!/usr/bin/env bash
# Writes what each program of a release is made of, as CycloneDX: sbom.sh DIRECTORY. Called by `cargo xtask sbom` and
# `cargo xtask release`.
#
# CARGO_CYCLONEDX names the program. It writes beside each Cargo.toml and names the directory that it works in, so it works in
# a copy, and the name is replaced. The same commit gives the same bytes.
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."
target=x86_64-unknown-linux-gnu
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

copy=$(realpath "$(mktemp -d)")
trap 'rm -rf "$copy"' EXIT
# Not the commit alone: what is not committed is part of what is built, too.
git ls-files -z -- Cargo.toml Cargo.lock crates tests fuzz | while IFS= read -r -d '' file; do
	[ ! -f "$file" ] || printf '%s\0' "$file"
done | tar --null --files-from - -cf - | tar -xf - -C "$copy"
(cd "$copy" && "$CARGO_CYCLONEDX" cyclonedx --manifest-path crates/cli/Cargo.toml --format json --describe binaries \
	--spec-version 1.5 --target $target --no-build-deps -q)
while read -r crate program; do
	sed "s|path+file://$copy|path+file:///palisade|g" "$copy/crates/$crate/${program}_bin.cdx.json" > "$out/$program.cdx.json"
	if grep -qF "$copy" "$out/$program.cdx.json"; then echo "sbom: $program.cdx.json names $copy" >&2; exit 1; fi
done <<PROGRAMS
cli palisade
controller palisade-controller
webhook palisade-webhook
PROGRAMS
