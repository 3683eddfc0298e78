#!/usr/bin/env bash
# Runs the tests under the sanitizers of g++: address and undefined behaviour,
# then threads.
#   tests/sanitize.sh [asan|tsan [TARGET...]]
# Prints how long each took, and ends with 1 where a test fails. What cannot run
# under them is left out:
#   both     what starts the programs of a plain build (they are not sanitized),
#            what reads the source tree, CUDA, and benchmarks
#   threads  what hands data from thread to thread through gRPC, whose locks the
#            sanitizer does not see (of absl's and OpenMP's it is told,
#            tests/sanitize/synchronization.cc)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kinds=(asan tsan)
[ $# -eq 0 ] || kinds=("$1")
given=("${@:2}")

without=(//tests/bench/... //tests/browser/... //tests/cluster/... //tests/style/... //tests/gpu/... //tests/fuzz/...)
without_tsan=()

targets() { # KIND
  local kind=$1 target
  if [ ${#given[@]} -gt 0 ]; then
    printf '%s\n' "${given[@]}"
    return
  fi
  printf '%s\n' //tests/... "${without[@]/#/-}"
  [ "$kind" != tsan ] || printf '%s\n' "${without_tsan[@]/#/-}"
}

code=0
summary=()
for kind in "${kinds[@]}"; do
  case $kind in
    asan | tsan) ;;
    *) echo "sanitize: $kind is none of asan, tsan" >&2 && exit 2 ;;
  esac
  start=$SECONDS
  mapfile -t tests < <(targets "$kind")
  said=passes
  bazel test --config="$kind" --keep_going --color=no --curses=no \
    --show_progress_rate_limit=20 --test_summary=short \
    --build_tests_only --test_tag_filters=-external -- "${tests[@]}" ||
    { said=FAILS && code=1; }
  summary+=("$kind $said in $((SECONDS - start)) s")
done
printf '%s\n' "${summary[@]}"
exit "$code"
