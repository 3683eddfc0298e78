#!/usr/bin/env bash
# Fuzzes the targets, each for SECONDS (default 60) from its corpus:
#   tests/fuzz/run.sh [SECONDS [TARGET...]]
# Prints one line a target, as `bazel test` does, and fails where one crashed,
# leaked, hung or took too much memory; the input that did it is named and kept.
# With FUZZ_DIR=<folder> the inputs that reach new code are kept there too, and
# the next run goes on from them. With FUZZ_RUNS=<n> each target runs n inputs
# at most, the same ones every time.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(corpus_text graph http_request hugging_face job_file job_message manifest rpc_messages safetensors token_file tokenizer_json)
programs=("${targets[@]/#///tests/fuzz:}")
programs=("${programs[@]/%/_fuzz}")

if ! bazel build --config=fuzz --color=no --curses=no \
  --show_progress_rate_limit=20 "${programs[@]}" 2>&1; then
  printf '%s FAILED to build\n' "${programs[@]}"
  exit 1
fi
bin=$(bazel info --config=fuzz bazel-bin 2>/dev/null)

dir=$(mktemp -d)
code=0
same=()
[ -z "${FUZZ_RUNS:-}" ] || same=(-seed=1 -runs="$FUZZ_RUNS")
for target in "${targets[@]}"; do
  program=tests/fuzz/${target}_fuzz
  grown=${FUZZ_DIR:-$dir}/$target
  mkdir -p "$grown"
  dictionary=tests/fuzz/$target.dict
  [ -f "$dictionary" ] && dictionary=(-dict="$dictionary") || dictionary=()
  if "$bin/$program" -max_total_time="$seconds" -timeout=60 \
    -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=4096 \
    -artifact_prefix="$dir/$target-" "${same[@]}" "${dictionary[@]}" \
    "$grown" "tests/fuzz/corpus/$target" >"$dir/log" 2>&1; then
    echo "//${program/fuzz\//fuzz:}  PASSED in ${seconds}s"
  else
    tail -n 60 "$dir/log"
    echo "//${program/fuzz\//fuzz:}  FAILED, see $dir"
    code=1
  fi
done
[ "$code" -ne 0 ] || rm -rf "$dir"
exit "$code"
