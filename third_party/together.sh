#!/usr/bin/env bash
# together.sh [--names-apart] FILE.cc...: one source of several (troupe.bzl says
# what for). With --names-apart an anonymous namespace comes into one that is named
# after its file.
set -eu
apart=false
if [[ $1 == --names-apart ]]; then
  apart=true
  shift
fi
for file; do
  echo "#line 1 \"$file\""
  if ! $apart; then
    cat "$file"
    continue
  fi
  name=$(basename "$file" | tr -c 'A-Za-z0-9\n' _)
  sed -e "s|^namespace {$|namespace $name { namespace {|" \
      -e 's|^}  // namespace$|} }|' "$file"
done
