#!/bin/bash
# Records what this version writes and says, for later ones to be held to
# (README.md). Run it in the root of the tree, after building the programs; it
# needs protoc and sqlite3.
set -euo pipefail

root=$PWD
bin=$root/bazel-bin
version=$(sed -n 's/.* kProtocolVersion = \([0-9]*\);/\1/p' proto/protocol_version.h)
out=$root/tests/compatibility/protocol_$version
dir=$(mktemp -d)
export XDG_CACHE_HOME=$dir/cache
troupe() { "$bin/clients/cli/troupe" "$@"; }
in_cluster() { troupe "$@" --dir "$dir/cluster"; }
finish() {
  in_cluster down --now > "$dir/down" 2>&1 || true
  rm -rf "$dir"
}
trap finish EXIT

cat > "$dir/tiny.yaml" <<JOB
name: tiny
model: {architecture: gpt2, num_hidden_layers: 2, hidden_size: 32,
        num_attention_heads: 2, vocab_size: 256, max_position_embeddings: 16}
data: {tokens: tiny.tokens, validation_fraction: 0.1}
training: {steps: 4, global_batch_size: 8, micro_batch_size: 1, seed: 7}
optimizer: {lr: 1.0e-3}
parallelism: {data: 2}
JOB
seq -f 'line %g of a text that repeats;' 800 > "$dir/tiny.txt"
troupe data prepare "$dir/tiny.txt" --out "$dir/tiny.tokens"
in_cluster up --workers 3 --threads 1
submit() { in_cluster submit "$dir/tiny.yaml" "$@"; }
# Until the job has done some steps.
await_steps() {
  until [ "$(in_cluster describe "$1" --json |
             sed -n 's/.*"steps_done": *"\{0,1\}\([0-9]*\).*/\1/p' | head -n 1)" -gt 20 ]; do
    sleep 0.1
  done
}
submit --set checkpoint.directory="$dir/saved" --set checkpoint.every=2 --watch
submit --set name=cancelled --set training.steps=1000000
await_steps 2
in_cluster cancel 2
submit --set name=recovers --set training.steps=1000000 --set recovery.every=5 \
  --set checkpoint.directory="$dir/saved-3" --set checkpoint.every=100000
submit --set name=waits --set parallelism.data=8
await_steps 3
kill -9 $(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$dir/cluster/pids.json")

mkdir -p "$out"
cp "$dir/cluster/troupe.db"* "$out"
sqlite3 "$out/troupe.db" "PRAGMA journal_mode = delete;
  DELETE FROM steps WHERE step > 20; VACUUM;"
sqlite3 "$out/troupe.db" \
  "SELECT writefile('$dir/spec', spec) FROM jobs WHERE id = 3"
"$bin/worker/troupe-worker" calibrate --describe --threads 1 --name worker-0 \
  > "$dir/worker"
decode() { protoc -I "$root" --decode="troupe.$1" "$root/proto/$2.proto"; }
encode() { protoc -I "$root" --encode="troupe.$1" "$root/proto/$2.proto"; }
{
  echo "register { protocol_version: $version pid: 4711 address: '127.0.0.1'"
  echo "build { build: 'recorded' protocol: $version oldest_protocol: $version }"
  echo "worker {"
  decode WorkerDescription cluster < "$dir/worker"
  echo "} }"
} | encode WorkerMessage worker > "$out/register.bin"
{
  echo "job {"
  decode JobSpec job < "$dir/spec"
  echo "}"
} | encode SubmitJobRequest scheduler > "$out/submit_job.bin"
ls -l "$out"
