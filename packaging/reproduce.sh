#!/usr/bin/env bash
# Makes a release again in another directory, and compares the bytes: reproduce.sh VERSION DIRECTORY. Called by
# `cargo xtask release-check`.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 first=$(realpath "$2")
at=$(mktemp -d)
trap 'git worktree remove --force "$at/again" 2>/dev/null; rm -rf "$at"' EXIT
git worktree add --detach "$at/again" HEAD >/dev/null
CARGO_TARGET_DIR=$at/target "$at/again/packaging/release.sh" "$version" "$at/out" >/dev/null
diff "$first/SHA256SUMS" "$at/out/SHA256SUMS" || { echo 'release-check: the second build differs, in the files above' >&2; exit 1; }
(cd "$first" && sha256sum --quiet -c SHA256SUMS)
echo 'release-check: both builds have the same bytes'
