#!/usr/bin/env bash
# Runs tests under the sanitizers of g++: address and undefined behaviour, then
# threads.
#   tests/sanitize.sh [asan|tsan [TARGET...]]
# Prints how long each took, and ends with 1 where a test fails. Each builds a
# tree of its own, beside the plain one.
#
# Of absl's and OpenMP's locks, which Debian builds without it, the thread
# sanitizer is told (tests/sanitize/synchronization.cc); of gRPC's it is not, so
# that what hands data from thread to thread through gRPC cannot run under it.
# Nor can, under either, what starts the programs of a plain build.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kinds=(asan tsan)
[ $# -eq 0 ] || kinds=("$1")
given=("${@:2}")

# Those that pass today; others are named on the command line.
asan=(
  //tests/proto/base/...
  //tests/proto/plan/...
  //tests/scheduler/layouts/...
  //tests/scheduler/passes/...
  //tests/scheduler/pipelines/...
  //tests/scheduler/planner/...
  //tests/storage/checkpoint/...
  //tests/storage/disk/...
  //tests/storage/engine/...
  //tests/storage/tier/...
  //tests/worker/actor/...
  //tests/worker/collective/in_process/...
  //tests/worker/instructions/...
  //tests/worker/layers/...
  //tests/worker/model/...
)
tsan=(//tests/storage/engine/... //tests/worker/actor/...)

code=0
summary=()
for kind in "${kinds[@]}"; do
  case $kind in
    asan | tsan) ;;
    *) echo "sanitize: $kind is none of asan, tsan" >&2 && exit 2 ;;
  esac
  start=$SECONDS
  tests=("${given[@]}")
  if [ $# -lt 2 ]; then
    [ "$kind" = asan ] && tests=("${asan[@]}") || tests=("${tsan[@]}")
  fi
  said=passes
  bazel test --config="$kind" --keep_going --color=no --curses=no \
    --show_progress_rate_limit=20 --test_summary=short \
    --test_timeout=300,600,1800,3600 \
    "${tests[@]}" ||
    { said=FAILS && code=1; }
  summary+=("$kind $said in $((SECONDS - start)) s")
done
printf '%s\n' "${summary[@]}"
exit "$code"
