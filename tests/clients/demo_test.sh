#!/usr/bin/env bash
# The demo works in a folder of its own: where --dir has files that no demo made,
# it says so at once and leaves all of them as they were.
set -euo pipefail

export HOME=${TEST_TMPDIR:?}
demo=$PWD/clients/demo.sh
folder=$(mktemp -d "${TEST_TMPDIR:?}/demo.XXXXXX")
said=$folder.said

fail() {
  echo "$*" >&2
  cat "$said" >&2
  exit 1
}

# Refused, with these words, and with the folder as it was.
expect_refusal() {
  local before
  before=$(find "$folder" | sort)
  if "$demo" --dir "$1" > "$said" 2>&1; then fail "took $1"; fi
  grep -qF -- "$2" "$said" || fail "did not say: $2"
  [ "$(find "$folder" | sort)" = "$before" ] || fail "changed $folder"
}

mkdir -p "$folder/mine/checkpoints/step-00000001"
echo weights > "$folder/mine/checkpoints/step-00000001/rank-00000.safetensors"
expect_refusal "$folder/mine" "has files that are not the demo's"
mkdir "$folder/hidden" && : > "$folder/hidden/.profile"
expect_refusal "$folder/hidden" "has files that are not the demo's"
: > "$folder/file"
expect_refusal "$folder/file" "is no folder"

# What it may take: it goes on to the install, which fails here.
mkdir -p "$folder/copy/clients" "$folder/copy/third_party" "$folder/empty"
cp "$demo" "$folder/copy/clients/demo.sh"
printf '#!/bin/sh\necho installing\nexit 7\n' > "$folder/copy/third_party/install.sh"
chmod +x "$folder/copy/third_party/install.sh"
for dir in "$folder/new/one" "$folder/empty" "$folder/new/one"; do
  code=0
  "$folder/copy/clients/demo.sh" --dir "$dir" > "$said" 2>&1 || code=$?
  [ "$code" = 7 ] || fail "ended with $code in $dir"
  [ -e "$dir/.troupe-demo" ] || fail "did not mark $dir"
done
