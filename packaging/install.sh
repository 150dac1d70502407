#!/bin/sh
# Installs palisade: install.sh [DIRECTORY WITH THE RELEASE] [PREFIX]. It verifies SHA256SUMS before it writes anything.
# Download palisade-VERSION-x86_64-linux.tar.gz and SHA256SUMS of one release into that directory first.
set -eu
from=${1:-.}
prefix=${2:-$HOME/.local}
fail() { echo "install.sh: $1" >&2; exit 1; }
[ -f "$from/SHA256SUMS" ] || fail "there is no $from/SHA256SUMS; name the directory that you downloaded the release into"
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "no binary for $(uname -s) on $(uname -m): docs/install.md says how to build one"
set -- "$from"/palisade-*-x86_64-linux.tar.gz
[ $# -eq 1 ] && [ -f "$1" ] || fail "there must be one palisade-*-x86_64-linux.tar.gz in $from"
archive=$(basename "$1")
(cd "$from" && grep " $archive\$" SHA256SUMS | sha256sum -c - >/dev/null) \
	|| fail "$archive is not the file that SHA256SUMS names; download both again"
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
tar -xzf "$from/$archive" -C "$at" --strip-components=1
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
	"$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
cp "$at/palisade" "$prefix/bin/palisade"
ln -sf palisade "$prefix/bin/kubectl-palisade"
cp "$at/kubectl_complete-palisade" "$prefix/bin/"
cp "$at"/man/*.1 "$prefix/share/man/man1/"
cp "$at/completions/palisade.bash" "$prefix/share/bash-completion/completions/palisade"
cp "$at/completions/_palisade" "$prefix/share/zsh/site-functions/"
cp "$at/completions/palisade.fish" "$prefix/share/fish/vendor_completions.d/"
echo "installed $("$prefix/bin/palisade" --version) into $prefix/bin"
