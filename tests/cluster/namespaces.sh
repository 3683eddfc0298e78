# Hosts on one machine, for the scripts beside it: a network namespace each, with
# processes, a host name and an address of its own, joined by a switch in one
# more. To be sourced, with the folder of programs as the first argument; ends
# the script with 2 where it cannot be done here. Needs root, ip and unshare;
# touches no interface of the machine's own.
#
#   . tests/cluster/namespaces.sh "${1:-bazel-bin}"
#   make_hosts head w1 w2                # 10.77.0.1, .2, .3
#   start scheduler head "$scheduler_program" --listen "$(address head):4321"

bin=$(realpath "$1")
troupe=$bin/clients/cli/troupe
scheduler_program=$bin/scheduler/troupe-scheduler
worker_program=$bin/worker/troupe-worker
for program in "$troupe" "$scheduler_program" "$worker_program"; do
  [ -x "$program" ] || { echo "no $program: build it, or name the folder" >&2; exit 2; }
done
[ "$(id -u)" -eq 0 ] || { echo "needs root, for network namespaces" >&2; exit 2; }

dir=$(mktemp -d)
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$dir/cache}
net=troupe$$
hosts=()
declare -A pid=()   # of what stands for each daemon, by name

address() {
  local i
  for i in "${!hosts[@]}"; do
    [ "${hosts[$i]}" != "$1" ] || echo "10.77.0.$((i + 1))"
  done
}

cleanup() {
  local name
  for name in "${!pid[@]}"; do end "$name"; done
  for name in "${hosts[@]}" switch; do ip netns del "$net-$name" 2>/dev/null || true; done
  [ "${keep:-0}" = 1 ] || rm -rf "$dir"
}
trap cleanup EXIT

fail() {
  echo "FAILED: $*" >&2
  tail -n 15 "$dir"/*.log >&2
  keep=1
  echo "logs are in $dir" >&2
  exit 1
}

# A host's processes see each other only, as on a machine of their own: ranks on
# two hosts do not take shared memory for a way.
on() {
  local name=$1
  shift
  ip netns exec "$net-$name" unshare --pid --fork --kill-child --uts --mount-proc \
    bash -c 'hostname "$0"; exec "$@"' "$name" "$@"
}

start() {  # NAME HOST COMMAND...
  local name=$1 host=$2
  shift 2
  on "$host" "$@" >>"$dir/$name.log" 2>&1 &
  pid[$name]=$!
}

# The daemon itself, below ip, unshare and its shell.
daemon_of() {
  local parent=${pid[$1]} child
  while child=$(pgrep -P "$parent" | head -n 1) && [ -n "$child" ]; do parent=$child; done
  echo "$parent"
}

stop() {  # NAME SIGNAL
  kill "-$2" "$(daemon_of "$1")"
  wait "${pid[$1]}" 2>/dev/null || true
  unset "pid[$1]"
}

# Kills all that was started under the name: its process namespace ends with
# unshare.
end() {  # NAME
  kill -KILL "$(pgrep -P "${pid[$1]}" | head -n 1)" 2>/dev/null || true
  wait "${pid[$1]}" 2>/dev/null || true
  unset "pid[$1]"
}

client() { on head "$troupe" "$@" --scheduler 10.77.0.1:4321 --certificates "$dir/cluster/trust/client"; }

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }

await() {  # SECONDS WHAT COMMAND...
  local until=$((SECONDS + $1)) what=$2
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || fail "waited in vain: $what"
    sleep 0.1
  done
}

workers_idle() { [ "$(client workers --json | grep -c '"state": *"IDLE"')" -eq "$1" ]; }
job_is() { client describe "$1" --json | grep "\"state\": *\"$2\""; }

make_hosts() {  # HOST...
  local host
  hosts=("$@")
  ip netns add "$net-switch"
  ip -n "$net-switch" link add br0 type bridge
  ip -n "$net-switch" link set br0 up
  for host in "$@"; do
    ip netns add "$net-$host"
    ip -n "$net-$host" link add eth0 type veth peer name "$host" netns "$net-switch"
    ip -n "$net-switch" link set "$host" master br0 up
    ip -n "$net-$host" address add "$(address "$host")/24" dev eth0
    ip -n "$net-$host" link set eth0 up
    ip -n "$net-$host" link set lo up
  done
}

# Certificates of the workers' hosts, and of the scheduler and client on head.
make_certificates() {  # HOST...
  local host
  for host in "$@"; do
    "$troupe" cluster certificate "$host" "$(address "$host")" --role worker \
      --dir "$dir/cluster" --out "$dir/$host-certificate" >/dev/null
  done
  "$troupe" cluster certificate head 10.77.0.1 --role scheduler \
    --dir "$dir/cluster" --out "$dir/cluster/trust/scheduler" >/dev/null
  "$troupe" cluster certificate head --role client \
    --dir "$dir/cluster" --out "$dir/cluster/trust/client" >/dev/null
}
