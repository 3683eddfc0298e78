#!/usr/bin/env bash
# Installs what Troupe is built with and runs on: Debian 12 packages. Idempotent:
# with all of them there it prints one line and changes nothing.
#
# install.sh --cuda installs nothing: it says which CUDA toolkit a build with
# --config=cuda uses, or how to get one.
set -euo pipefail

if [ "${1:-}" = --cuda ]; then
  home=${CUDA_HOME:-/usr/local/cuda}
  missing=()
  for file in bin/nvcc include/cuda.h lib64/libcudart_static.a \
    lib64/libcublasLt.so lib64/libnccl.so include/cudnn_graph.h; do
    [ -e "$home/$file" ] || missing+=("$file")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "install: --config=cuda uses $home:" \
      "$("$home/bin/nvcc" --version | grep release)"
    exit 0
  fi
  echo "install: $home lacks ${missing[*]}" >&2
  echo "install: install NVIDIA's CUDA toolkit 13 with cuBLAS, cuDNN 9 and NCCL" \
    "(Debian has none that knows these GPUs), or set CUDA_HOME to where they" \
    "are; at run time a GPU's driver is needed, to build none" >&2
  exit 1
fi

packages=(
  # the build
  g++ make git bazel-bootstrap bazel-platforms bazel-rules-java
  bazel-rules-proto bazel-skylib protobuf-compiler protobuf-compiler-grpc
  # the compiler, its sanitizers and its fuzzer; g++ brings libstdc++, is nvcc's
  # compiler of host code and the other one that must build the tree (.bazelrc)
  clang-14 libclang-rt-14-dev
  # the libraries
  libabsl-dev libbenchmark-dev libcli11-dev libcpp-httplib-dev libdnnl-dev
  libfmt-dev libgloo-dev libgmock-dev libgrpc++-dev libgrpc-dev libgtest-dev
  libicu-dev libpcre2-dev liburing-dev libprotobuf-dev libsentencepiece-dev
  libspdlog-dev
  libsqlite3-dev libssl-dev libyaml-cpp-dev libzstd-dev nlohmann-json3-dev
  prometheus-cpp-dev zlib1g-dev
  # what the Python client is built with, runs on and is tested with
  python3 python3-grpcio python3-pandas python3-protobuf python3-setuptools
  python3-wheel python3-yaml
  # the browser in which tests/browser looks at charts, and its type
  chromium fonts-liberation
  # what tests/bench measures disks beside
  fio
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
