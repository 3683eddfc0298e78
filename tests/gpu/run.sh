#!/usr/bin/env bash
# Checks Troupe on this machine's GPU, from the archive that pack.sh made:
#
#   troupe-gpu/run.sh [--seconds N] [--out DIR] [--only "tests cluster bench"]
#
#   1. the tests of kernels, streams, communicators and whole training runs;
#   2. a scheduler and several workers that share the GPU, through the host and by
#      NCCL, beside one worker on it, and that beside a CPU: the losses of a job
#      must be the same, also where a worker is killed;
#   3. training steps beside PyTorch's, where `python3` (or PYTHON) has one.
#
# Ends with a table in Markdown, which DIR/table.md has too, within N seconds
# (default 570). Ends with 0 unless something failed; what there is no GPU, PyTorch
# or time for is skipped and said to be.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/libraries.sh"

seconds=570
only="tests cluster bench"
out=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 && shift 2 ;;
    --out) out=$2 && shift 2 ;;
    --only) only=$2 && shift 2 ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
  esac
done
out=${out:-$(mktemp -d /tmp/troupe-gpu.XXXXXX)}
mkdir -p "$out/logs" || exit 1
rows=$out/rows.tsv
: > "$rows"
python=${PYTHON:-python3}

wanted() { [[ " $only " == *" $1 "* ]]; }
left() { echo $((seconds - SECONDS)); }
row() { printf '%s\t%s\t%s\n' "$@" | tee -a "$rows"; }
at_most() { [ "$1" -lt "$(left)" ] && echo "$1" || left; }

cuda_path=$(cuda_library_path "$python" libcublasLt.so.13 libnccl.so.2) || exit 1
# Attention is by cuDNN where there is one.
with_cudnn=$(cuda_library_path "$python" libcublasLt.so.13 libnccl.so.2 \
  libcudnn.so.9 2> /dev/null) && cuda_path=$with_cudnn
# HOME is where workers keep what they measure.
ours() { HOME=$out LD_LIBRARY_PATH=$cuda_path "$@"; }

# Why there is no GPU, or nothing.
no_gpu() {
  ours timeout 60 "$here/bin/troupe" doctor 2> /dev/null |
    sed -n 's/^\([a-z]*\)  *CUDA  *\(.*\)/\1 \2/p' | sed -n '/^ok /!s/^[a-z]* //p'
}

# One test program; its log is counted later.
run_test() {
  local name limit=$((tests_end - $(date +%s)))
  name=$(basename "$1")
  [ "$limit" -gt 0 ] || return
  timeout --kill-after=5 "$limit" "$1" --gtest_color=no \
    --gtest_filter='-*/cpu_*' > "$out/logs/$name.log" 2>&1
  echo $? > "$out/logs/$name.code"
}
count() { # STATE: tests of all logs that ended so
  cat "$out"/logs/*.log | sed -n "s/^\[  *$1 *\] \([0-9]*\) test.*/\1/p" |
    awk '{sum += $1} END {print sum + 0}'
}

run_tests() {
  local code name broken=0 tests_end
  tests_end=$(($(date +%s) + $(at_most 170)))
  export -f run_test
  export out tests_end
  printf '%s\n' "$here"/tests/* |
    ours xargs -P 4 -I{} bash -c 'run_test "$1"' _ {}
  for name in "$here"/tests/*; do
    name=$(basename "$name")
    code=$(cat "$out/logs/$name.code" 2> /dev/null || echo "no time left")
    [ "$code" = 0 ] && continue
    broken=$((broken + 1))
    row tests "$name" "FAILED: ended with $code, see $out/logs/$name.log"
    grep -E 'Failure|FAILED|error|Check' "$out/logs/$name.log" | head -5
  done
  local skipped
  skipped=$(count SKIPPED)
  row tests "$(ls "$here/tests" | wc -l) programs" \
    "$(count PASSED) passed, $(count FAILED) failed, $skipped skipped${1:+, no GPU: $1};\
 $broken programs failed"
}

reason=$(no_gpu)
gpu=${reason:-$(ours timeout 60 "$here/bin/troupe" doctor | sed -n 's/^ok  *CUDA  *//p')}
echo "GPU: $gpu"
echo "CUDA libraries: $cuda_path; logs: $out/logs"
reason=${reason%% (*}
wanted tests && run_tests "$reason"
if [ -n "$reason" ]; then
  wanted cluster && row cluster "losses" "skipped, no GPU: $reason"
  wanted bench && row bench "steps" "skipped, no GPU: $reason"
  only=
fi
if wanted cluster; then
  limit=$(at_most 130)
  ours timeout --kill-after=10 "$limit" "$python" "$here/cluster.py" \
    --bin "$here/bin" --work "$out/cluster" --rows "$rows" \
    --seconds $((limit - 10))
  code=$?
  [ "$code" = 0 ] || grep -q '^cluster.*FAILED' "$rows" ||
    row cluster "all of it" "FAILED: ended with $code"
fi
if wanted bench; then
  XDG_CACHE_HOME=$out/.cache \
    "$python" "$here/bench/versus_pytorch_gpu.py" "$here/bin/step_bench" \
    --libraries "$cuda_path" --seconds "$(($(left) - 10))" --rows "$rows"
  grep -q '^bench' "$rows" || row bench "steps" "FAILED: they were not done"
fi

table() {
  echo "$(date --utc +%F), commit $(cat "$here/commit"): $gpu"
  echo
  echo "| part | what | result |"
  echo "|---|---|---|"
  awk -F'\t' '{gsub(/\|/, "/"); printf "| %s | %s | %s |\n", $1, $2, $3}' "$rows"
}

echo
table | tee "$out/table.md"
echo
echo "took $SECONDS s; the table is in $out/table.md"
! grep -q 'FAILED' "$rows"
