#!/usr/bin/env bash
# Installs what Troupe is built with and runs on: Debian 12 packages. Idempotent:
# with all of them there it prints one line and changes nothing.
set -euo pipefail

packages=(
  # the build
  g++ make git bazel-bootstrap bazel-platforms bazel-rules-java
  bazel-rules-proto bazel-skylib protobuf-compiler protobuf-compiler-grpc
  # the second compiler, whose fuzzer tests/fuzz uses
  clang-14 libclang-rt-14-dev
  # the libraries
  libabsl-dev libbenchmark-dev libcli11-dev libcpp-httplib-dev libdnnl-dev
  libfmt-dev libgloo-dev libgmock-dev libgrpc++-dev libgrpc-dev libgtest-dev
  liburing-dev libprotobuf-dev libsentencepiece-dev libspdlog-dev
  libsqlite3-dev libyaml-cpp-dev nlohmann-json3-dev prometheus-cpp-dev
  zlib1g-dev
  # the text of the demo, in the public domain
  bible-kjv bible-kjv-text
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "install: all ${#packages[@]} packages are there"
  exit 0
fi

echo "install: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install: run this as root, or install sudo" >&2
    exit 1
  }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
