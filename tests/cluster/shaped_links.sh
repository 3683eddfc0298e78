#!/usr/bin/env bash
# Predicted and measured steps over links of known speed: two hosts of two
# workers each, in network namespaces, whose adapters tc holds to one rate after
# another. The workers measure their links themselves; then ten jobs train, and
# a table says what each step was predicted to take and what it took:
#   bazel build //clients/cli:troupe //scheduler:troupe-scheduler //worker:troupe-worker
#   tests/cluster/shaped_links.sh [FOLDER_OF_PROGRAMS [RATE...]]   # bazel-bin 100mbit 200mbit 400mbit
# Needs root, ip, unshare and tc. Ends with 0 where at each rate the median of
# the ten differences is 15 % at most.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/cluster/namespaces.sh "${1:-bazel-bin}"
shift || true
rates=("$@")
[ ${#rates[@]} -gt 0 ] || rates=(100mbit 200mbit 400mbit)
command -v tc >/dev/null || { echo "needs tc" >&2; exit 2; }

steps=8
make_hosts head w1 w2
make_certificates w1 w2
mkdir "$dir/data"
for i in $(seq 4000); do echo "line $((i * i % 97)) of a text that repeats"; done >"$dir/text.txt"
"$troupe" data prepare "$dir/text.txt" --out "$dir/data/text.tokens" >/dev/null
cat >"$dir/job.yaml" <<JOB
name: shaped
model: {architecture: llama, num_hidden_layers: 4, hidden_size: 256, intermediate_size: 1024,
        num_attention_heads: 4, num_key_value_heads: 4, vocab_size: 512, max_position_embeddings: 256}
data: {tokens: "data:text.tokens"}
training: {steps: $steps, global_batch_size: 4, micro_batch_size: 1, sequence_length: 128}
optimizer: {lr: 1.0e-3}
JOB

# What each of the ten sets, over all four workers.
jobs=(
  "zero 0|parallelism.data=4"
  "zero 1|parallelism.data=4 parallelism.zero=1"
  "zero 2|parallelism.data=4 parallelism.zero=2"
  "zero 3|parallelism.data=4 parallelism.zero=3"
  "zero 0, bf16 gradients|parallelism.data=4 training.precision=bf16 training.gradient_precision=parameters"
  "zero 3, bf16|parallelism.data=4 parallelism.zero=3 training.precision=bf16"
  "tensor 2 x data 2|parallelism.tensor=2 parallelism.data=2"
  "context 4, ring|parallelism.context=4 parallelism.context_method=ring"
  "context 4, ulysses|parallelism.context=4 parallelism.context_method=ulysses"
  "pipeline 2 x data 2|parallelism.pipeline=2 parallelism.data=2"
)

# Both workers of a host see each other's processes, and share memory.
start_host() {
  start "$1" "$1" bash -c '
    for i in 0 1; do
      "$0" --scheduler 10.77.0.1:4321 --address "$1" --name "$2-$i" --certificates "$3" \
        --threads 1 --device-memory 512MiB --host-memory 64MiB --root "data=$4" &
    done
    wait' "$worker_program" "$(address "$1")" "$1" "$dir/$1-certificate" "$dir/data"
}

links_measured() {
  client workers --json | python3 -c '
import json, sys
hosts = json.load(sys.stdin).get("topology", {}).get("hosts", [])
links = [d["between"] for h in hosts for d in h["devices"]]
sys.exit(len(links) != 4 or any(l.get("source") != "MEASURED" for l in links))'
}

say_links() {
  client workers --json | python3 -c '
import json, sys
for host in json.load(sys.stdin)["topology"]["hosts"]:
    link = host["devices"][0]["between"]
    rate = link["rate"]
    shared = [n["link"]["rate"]["bytes_per_second"] for n in host.get("nics", [])]
    print("  %s: a worker %.1f MB/s, %.0f us; its host %s; %s" % (
        host["host"], rate["bytes_per_second"] / 1e6, rate["latency_us"],
        ", ".join("%.1f MB/s" % (s / 1e6) for s in shared) or "an adapter each",
        link.get("why", "")))'
}

job_ended() { client describe "$1" --json | grep -E '"state": *"(SUCCEEDED|FAILED)"'; }

for rate in "${rates[@]}"; do
  for host in w1 w2; do
    # Both ends: tbf holds what goes out only.
    for end in "$host eth0" "switch $host"; do
      read -r where device <<<"$end"
      tc -n "$net-$where" qdisc replace dev "$device" root tbf rate "$rate" burst 256kb latency 50ms
    done
  done
  start scheduler head "$scheduler_program" --state "$dir/cluster" --listen 10.77.0.1:4321
  start_host w1
  start_host w2
  await 240 "four workers to register" workers_idle 4
  await 180 "the links to be measured" links_measured
  echo "$rate"
  say_links
  : >"$dir/table"
  for job in "${jobs[@]}"; do
    sets=()
    for set in ${job#*|}; do sets+=(--set "$set"); done
    id=$(client submit "$dir/job.yaml" "${sets[@]}" | sed -n 's/^job \([0-9]*\) .*/\1/p')
    [ -n "$id" ] || fail "${job%%|*} was refused"
    await 300 "${job%%|*} to end" job_ended "$id"
    client describe "$id" --json | NAME=${job%%|*} python3 -c '
import json, os, statistics, sys
job = json.load(sys.stdin)
name = os.environ["NAME"]
status = job.get("status", job)
if status["state"] != "SUCCEEDED":
    sys.exit(name + ": " + status.get("reason", ""))
measured = statistics.median(s["step_seconds"] for s in job["steps"][2:])
predicted = job["plan"]["prediction"]["step_seconds"]
print("%s\t%.4f\t%.4f" % (name, predicted, measured))' >>"$dir/table" || fail "job $id"
    await 60 "all workers to be idle" workers_idle 4
  done
  python3 - "$dir/table" "$rate" <<'PY' || bad=1
import statistics, sys
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[1])]
off = []
print("  %-24s %10s %10s %7s" % ("job", "predicted", "measured", "off"))
for name, predicted, measured in rows:
    predicted, measured = float(predicted), float(measured)
    off.append(predicted / measured - 1)
    print("  %-24s %8.0f ms %8.0f ms %+6.0f %%" % (name, 1e3 * predicted, 1e3 * measured, 100 * off[-1]))
median = statistics.median(abs(o) for o in off)
print("  median of the differences at %s: %.0f %%" % (sys.argv[2], 100 * median))
sys.exit(median > 0.15)
PY
  for name in w1 w2 scheduler; do end "$name"; done
  # The next rate is measured anew.
  rm -f "$dir"/cluster/troupe.db*
done
[ "${bad:-0}" = 0 ] || { echo "more than 15 % off" >&2; exit 1; }
