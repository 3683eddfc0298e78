#!/usr/bin/env bash
# Installs, builds and tests everything. The last line stands alone:
#   N passed, N failed, N skipped
# Arguments go to `bazel test` in place of //... (for example //proto/...); without
# them the fuzz targets of file formats run for a few seconds too, and count as one
# test each (all targets: tests/fuzz/run.sh); and where there is a CUDA toolkit,
# everything is built with it, and the tests of what only such a build has run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

third_party/install.sh || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(//...)

log=$(mktemp)
trap 'rm -f "$log"' EXIT

bazel test "${targets[@]}" --color=no --curses=no --show_progress_rate_limit=20 \
  --keep_going --test_summary=short 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
if [ $# -eq 0 ]; then
  # The same inputs in every run: what was green stays green.
  FUZZ_RUNS=30000 tests/fuzz/run.sh "${TROUPE_FUZZ_SECONDS:-10}" \
    job_file manifest safetensors token_file 2>&1 | tee -a "$log"
  [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
  # Where there is a CUDA toolkit, all must build with it too. Its tests skip
  # what needs a GPU that is not there.
  if third_party/install.sh --cuda; then
    cuda=(--config=cuda --color=no --curses=no --show_progress_rate_limit=20 --keep_going)
    bazel build "${cuda[@]}" //... 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
    bazel test "${cuda[@]}" --test_summary=short \
      //tests/ops/cuda/... //tests/worker/collective/nccl/... 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
  fi
fi

# Bazel ends with one line a test: "//tests/proto/plan:mesh_test  PASSED in 0.1s".
passed=$(grep -cE '^//.* (\(cached\) )?PASSED' "$log")
failed=$(grep -cE '^//.* (FAILED|TIMEOUT|FLAKY|NO STATUS|INCOMPLETE)' "$log")
skipped=$(grep -cE '^//.* SKIPPED' "$log")

# A build that broke before any test ran is a failure too.
if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
