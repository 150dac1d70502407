#!/usr/bin/env bash
# Pushes the image of a release to a registry on this machine and pulls it back, by digest: registry.sh ARTIFACTS.
# The registry is that of Debian's package docker-registry. Where there is none, it says so and passes.
set -euo pipefail
artifacts=$(realpath "$1")
program=$(command -v docker-registry) || { echo 'skipped: there is no docker-registry (Debian has a package of that name)'; exit 0; }
at=$(mktemp -d) registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$at"' EXIT
fail() { echo "release-registry: $1" >&2; cat "$at/log" >&2; exit 1; }
port=${PALISADE_REGISTRY_PORT:-$((20000 + $$ % 20000))}
cat > "$at/config.yml" <<YAML
version: 0.1
storage: {filesystem: {rootdirectory: $at/storage}}
http: {addr: "127.0.0.1:$port"}
YAML
"$program" serve "$at/config.yml" > "$at/log" 2>&1 &
registry=$!
url=http://127.0.0.1:$port
for _ in $(seq 300); do curl -fsS "$url/v2/" >/dev/null 2>&1 && break; kill -0 "$registry" || fail 'the registry ended'; sleep 0.2; done

mkdir "$at/image" && tar -xf "$artifacts"/palisade-controller-*.oci.tar -C "$at/image"
manifest=$(sed 's/.*"digest":"\(sha256:[0-9a-f]*\)".*/\1/' "$at/image/index.json")
api=$url/v2/palisade-controller
for blob in "$at"/image/blobs/sha256/*; do
	digest=sha256:$(basename "$blob")
	[ "$digest" != "$manifest" ] || continue
	upload=$(curl -fsS -X POST -D - -o /dev/null "$api/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
	case $upload in *\?*) upload="$upload&digest=$digest" ;; *) upload="$upload?digest=$digest" ;; esac
	curl -fsS -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$blob" "$upload" || fail "$digest was not taken"
done
curl -fsS -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' \
	--data-binary "@$at/image/blobs/${manifest/://}" "$api/manifests/$manifest" || fail 'the manifest was not taken'
for blob in "$at"/image/blobs/sha256/*; do
	digest=sha256:$(basename "$blob") path=blobs
	[ "$digest" != "$manifest" ] || path=manifests
	curl -fsS -H 'Accept: application/vnd.oci.image.manifest.v1+json' "$api/$path/$digest" | cmp - "$blob" \
		|| fail "$digest came back as something else"
done
echo "release-registry: palisade-controller@$manifest was pushed and pulled back"
