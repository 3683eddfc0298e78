#!/usr/bin/env bash
# Installs, builds and tests everything. The last line stands alone and counts
# single tests, not programs of tests:
#   N passed, N failed, N skipped
# Arguments go to `bazel test` in place of //... (for example //proto/...). Without
# them, where there is a CUDA toolkit, everything is built with it first, and the
# tests run of what only such a build has. Among //... are the tests of what
# depends on the processor's instructions once more, held to AVX2:
# *_held_to_avx2_test, the same programs. Fuzzing is a command of its
# own (tests/fuzz/run.sh).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

third_party/install.sh || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

options=(--color=no --curses=no --show_progress_rate_limit=20 --keep_going)
# One test more than there are processors: those of real daemons wait for most of
# their time. Bazel compiles no more at once than there are processors.
tests_at_once=$(($(nproc) + 1))
at_once=(--jobs="$tests_at_once" --local_test_jobs="$tests_at_once")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0

# Adds the tests of the programs that ran, which $log names, to the counts. Where
# Bazel failed and no test says that it did, something broke: one failure.
count() { # CODE of Bazel
  local logs label found newest files=() p=0 f=0 s=0
  logs=$(bazel info bazel-testlogs 2> /dev/null)
  while read -r label; do
    label=${label#//}
    # Others are left from before a program had this number of shards, or any.
    newest=$(ls -td "$logs/${label/://}"/shard_* 2> /dev/null | head -n 1)
    found=("$logs/${label/://}/"${newest:+shard_*_of_"${newest##*_}"/}test.xml)
    files+=("${found[@]}")
  done < <(grep -E '^//.* (PASSED|FAILED|TIMEOUT|FLAKY) in ' "$log" | cut -d' ' -f1)
  if [ ${#files[@]} -gt 0 ]; then
    read -r p f s < <(awk '
      /<testcase / { cases++; open = 1; if (/result="skipped"/) skipped++ }
      /<(failure|error)/ && open { failed++; open = 0 }
      END { print cases - failed - skipped, failed + 0, skipped + 0 }
    ' "${files[@]}")
  fi
  if [ "$1" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

run() { # bazel's command and arguments
  bazel "$@" "${options[@]}" 2>&1 | tee "$log"
  count "${PIPESTATUS[0]}"
}

# With CUDA first, so that bazel-bin is left as a plain build has it.
if [ $# -eq 0 ] && third_party/install.sh --cuda; then
  run build --config=cuda //...
  run test "${at_once[@]}" --config=cuda //tests/ops/cuda/... //tests/worker/collective/nccl/...
fi
[ $# -gt 0 ] || set -- //...
run test "${at_once[@]}" --test_summary=short "$@"

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
