#!/usr/bin/env bash
# Three hosts on one machine, as docs/operations.md sets them up: a network
# namespace each, with processes, a host name and an address of its own, joined
# by a switch in a fourth. Trains over TCP, then breaks one thing after another
# and says what is seen and how long it takes:
#   bazel build //clients/cli:troupe //scheduler:troupe-scheduler //worker:troupe-worker
#   tests/cluster/three_hosts.sh [FOLDER_OF_PROGRAMS]    # bazel-bin
# Needs root, ip and unshare; touches no interface of the machine's own. Ends
# with 0 where all went as the page says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. tests/cluster/namespaces.sh "${1:-bazel-bin}"

step_of() { client describe "$1" --json | sed -n 's/.*"steps_done": *"\{0,1\}\([0-9]*\).*/\1/p' | head -n 1; }
has_stepped() { [ "$(step_of "$1")" -ge "$2" ]; }
reason() { client describe "$1" --json | sed -n 's/.*"reason": *"\(.*\)",\{0,1\}$/\1/p' | head -n 1; }

submit() { client submit "$dir/job.yaml" "$@" | sed -n 's/^job \([0-9]*\) .*/\1/p'; }

make_hosts head w1 w2

# --- A cluster, as the page does it ---

mkdir "$dir/data" "$dir/runs"
for i in $(seq 2000); do echo "line $((i * i % 97)) of a text that repeats"; done >"$dir/text.txt"
"$troupe" data prepare "$dir/text.txt" --out "$dir/data/text.tokens" >/dev/null
cat >"$dir/job.yaml" <<'JOB'
name: three-hosts
model: {architecture: gpt2, num_hidden_layers: 2, hidden_size: 64,
        num_attention_heads: 2, vocab_size: 256, max_position_embeddings: 64}
data: {tokens: "data:text.tokens"}
training: {steps: 100000, global_batch_size: 8, micro_batch_size: 2}
optimizer: {lr: 1.0e-3}
parallelism: {data: 2}
checkpoint: {directory: "runs:a", every: 200}
JOB

make_certificates w1 w2

start_scheduler() {
  start scheduler head "$scheduler_program" --state "$dir/cluster" --listen 10.77.0.1:4321
}
start_worker() {
  start "$1" "$1" "$worker_program" --scheduler 10.77.0.1:4321 --address "$(address "$1")" \
    --name "$1" --certificates "$dir/$1-certificate" --threads 1 --device-memory 256MiB \
    --host-memory 64MiB --root "data=$dir/data" --root "runs=$dir/runs"
}
start_scheduler
start_worker w1
await 120 "w1 to register" workers_idle 1
start_worker w2
await 120 "w2 to register" workers_idle 2

job=$(submit)
await 60 "the job to train" has_stepped "$job" 3
client describe "$job" --json | grep gloo >/dev/null || fail "the ranks have not met over TCP"
echo "trains over TCP, two hosts: step $(step_of "$job")"

report() { printf '%-44s %7s s   %s\n' "$1" "$2" "$3"; }

# Until the job that ran has ended; then all is mended, and the next one goes on.
broken() {  # WHAT SINCE
  await 120 "the job to fail: $1" job_is "$job" FAILED
  report "$1" "$(since "$2")" "$(reason "$job")"
}
again() {
  await 60 "both workers to be idle" workers_idle 2
  job=$(submit --set checkpoint.resume=latest)
  await 60 "the job to go on" has_stepped "$job" "$1"
  echo "  goes on from its last checkpoint: step $(step_of "$job")"
}

# --- One thing after another breaks ---

await 60 "a checkpoint" test -d "$dir/runs/a/step-00000200"
began=$(now)
stop w2 KILL
broken "a worker is killed" "$began"
start_worker w2
again 205

began=$(now)
ip -n "$net-switch" link set w2 down
broken "a worker's cable is pulled" "$began"
ip -n "$net-switch" link set w2 up
began=$(now)
await 60 "w2 to come back" workers_idle 2
report "  the cable is back: the worker is" "$(since "$began")" ""
again 205

# The two cannot reach each other; the scheduler reaches both.
began=$(now)
ip -n "$net-w1" route add blackhole 10.77.0.3
ip -n "$net-w2" route add blackhole 10.77.0.2
broken "two workers cannot reach each other" "$began"
ip -n "$net-w1" route del blackhole 10.77.0.3
ip -n "$net-w2" route del blackhole 10.77.0.2
again 205

began=$(now)
step=$(step_of "$job")
stop scheduler KILL
start_scheduler
await 60 "the job to go on with the next scheduler" has_stepped "$job" $((step + 1))
job_is "$job" RUNNING >/dev/null || fail "a scheduler that returned ended the job"
report "the scheduler is killed, and started again" "$(since "$began")" \
  "$(client describe "$job" --json | grep -o 'the scheduler restarted[^"]*' | tail -n 1)"

began=$(now)
kill -STOP "$(daemon_of scheduler)"
sleep 15
kill -CONT "$(daemon_of scheduler)"
step=$(step_of "$job")
await 60 "the job to go on" has_stepped "$job" $((step + 1))
job_is "$job" RUNNING >/dev/null || fail "a paused scheduler ended the job"
report "the scheduler is paused for 15 s" "$(since "$began")" "the job trained on: step $(step_of "$job")"

# As systemd and Slurm do: the job is saved first.
began=$(now)
stop w2 TERM
await 60 "the job to end" job_is "$job" CANCELLED
report "a worker's host is shut down (SIGTERM)" "$(since "$began")" "$(reason "$job")"

# A stranger, with a certificate of nobody's.
"$troupe" cluster certificate w2 --role worker --dir "$dir/other" --out "$dir/stranger" >/dev/null
on w2 timeout 5 "$worker_program" --scheduler 10.77.0.1:4321 --address 10.77.0.3 --name stranger \
  --certificates "$dir/stranger" --threads 1 --device-memory 256MiB >"$dir/stranger.log" 2>&1 || true
grep -q "refused a peer" "$dir/scheduler.log" || fail "a stranger is not in the log"
echo "a worker of another cluster is refused: $(grep -o 'refused a peer.*' "$dir/scheduler.log" | tail -n 1)"

stop w1 TERM
stop scheduler TERM
echo "all as docs/operations.md says"
