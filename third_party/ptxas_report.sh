#!/usr/bin/env bash
# What ptxas said of each kernel: registers, shared memory, spills.
#
#   bazel build --config=cuda --config=packed --output_groups=resources //ops/cuda:all
#   third_party/ptxas_report.sh            # a line for each kernel and GPU
#   third_party/ptxas_report.sh --spills   # only those that spill; none is well
set -euo pipefail
cd "$(dirname "$0")/.."

reports=${PTXAS_REPORTS:-$(bazel info --config=cuda --config=packed bazel-bin 2>/dev/null)}
find -L "$reports/ops/cuda" -name '*.ptxas.txt' -print0 | sort -z |
  xargs -0 cat | c++filt | awk -v only="${1:-}" '
  /Compiling entry function/ {
    kernel = $0
    sub(/.*entry function \x27/, "", kernel); sub(/\x27 for.*/, "", kernel)
    gsub(/troupe::cuda::|troupe::|\(anonymous namespace\)::|^void /, "", kernel)
    sub(/\(.*/, "", kernel)
    gpu = $NF; gsub(/\x27/, "", gpu)
  }
  /spill stores/ { stack = $1; stores = $5; loads = $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
    kernels++
    if (stores + loads > 0) spilling++
    if (only == "--spills" && stores + loads == 0) next
    printf "%-8s %3d registers %6d B shared %4d B stack %4d B spilled  %s\n",
           gpu, registers, shared, stack, stores + loads, kernel
  }
  END { printf "%d kernels, %d that spill\n", kernels, spilling }'
