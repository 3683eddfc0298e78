#!/usr/bin/env bash
# A cluster of Troupe in a job of Slurm's, which trains one job file and ends
# (docs/operations.md):
#   sbatch clients/examples/slurm.sh job.yaml
# All nodes see the folder from which it is submitted; the programs are in
# TROUPE_BIN, checkpoints and data in TROUPE_RUNS and TROUPE_DATA, which the job
# names as runs:... and data:...
#SBATCH --job-name=troupe
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
# Workers are told ten minutes before the end, and have the job saved.
#SBATCH --signal=TERM@600
set -euo pipefail

job=$(realpath "$1")
bin=${TROUPE_BIN:-/opt/troupe}
data=${TROUPE_DATA:-$PWD/data}
runs=${TROUPE_RUNS:-$PWD/runs}
# Keys: for this user only, and gone at the end. The state is the first node's.
keys=$PWD/.troupe-$SLURM_JOB_ID
state=$(mktemp -d)
umask 077
mkdir -p "$keys" "$runs"
trap 'kill "${workers:-}" "${scheduler:-}" 2>/dev/null; wait; rm -rf "$keys" "$state"' EXIT

head=$(hostname -I | awk '{print $1}')   # on the network of the nodes
for role in scheduler client; do
  "$bin/troupe" cluster certificate "$head" --role "$role" --dir "$keys" --out "$keys/$role"
done
# One for the workers of all nodes, whatever their names.
"$bin/troupe" cluster certificate "$head" --role worker --name '*' --dir "$keys" --out "$keys/worker"

"$bin/troupe-scheduler" --state "$state" --listen "$head:4321" \
  --certificates "$keys/scheduler" --log "$runs/scheduler-$SLURM_JOB_ID.log" &
scheduler=$!

srun bash -c '
  address=$(hostname -I | cut -d " " -f 1)
  exec "$0/troupe-worker" --scheduler "$1:4321" --address "$address" \
    --name "$(hostname)-$SLURM_LOCALID" --certificates "$2/worker" \
    --threads "${SLURM_CPUS_PER_TASK:-1}" --root "data=$3" --root "runs=$4"
' "$bin" "$head" "$keys" "$data" "$runs" &
workers=$!

client() { "$bin/troupe" "$@" --scheduler "$head:4321" --certificates "$keys/client"; }

until client workers >/dev/null 2>&1; do
  kill -0 "$scheduler" || exit 1
  sleep 1
done

# A job waits in the queue until all its workers are there. Where its file has
#   checkpoint: {directory: runs:NAME, resume: auto}
# the same command, given again, continues from the newest checkpoint.
client submit "$job" --watch "${@:2}" &
watch=$!

# Where the workers end first they were told to, and the job is saved. One with
# `recovery` would wait for others, of which none come.
status=0
wait -n -p first "$watch" "$workers" || status=$?
if [[ $first == "$workers" ]]; then
  sleep 2
  kill "$watch" 2>/dev/null || true
  wait "$watch" || status=$?
fi
exit "$status"
