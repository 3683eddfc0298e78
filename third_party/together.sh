#!/usr/bin/env bash
# together.sh FILE.cc...: one source of several (troupe.bzl says what for). An
# anonymous namespace comes into one that is named after its file.
set -eu
for file; do
  name=$(basename "$file" | tr -c 'A-Za-z0-9\n' _)
  echo "#line 1 \"$file\""
  sed -e "s|^namespace {$|namespace $name { namespace {|" \
      -e 's|^}  // namespace$|} }|' "$file"
done
