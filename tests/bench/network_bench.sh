#!/usr/bin/env bash
# All-reduce between hosts on networks of unlike speed (network_bench.cc), in
# network namespaces whose links tc limits: shapes 2 x 2, 2 x 4 and 2 x 2 x 2,
# each level four and ten times slower than the one within it.
#   bazel build //tests/bench:network_bench
#   tests/bench/network_bench.sh [PROGRAM [MBIT [MIB...]]]   # of the slowest links; 100, and 1 4 16 64
# Needs root, ip and tc; touches no interface of the machine's own, and removes
# all that it made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

program=${1:-bazel-bin/tests/bench/network_bench}
slowest=${2:-100}
shift $(($# < 2 ? $# : 2))
[ -x "$program" ] || { echo "no $program: bazel build //tests/bench:network_bench" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "needs root, for network namespaces" >&2; exit 2; }
command -v tc > /dev/null || { echo "needs tc" >&2; exit 2; }

net=troupe$$-
made=()
remove() {
  local name
  for name in "${made[@]}"; do ip netns del "$net$name" 2> /dev/null || true; done
  made=()
}
trap remove EXIT

space() {  # NAME: a namespace
  ip netns add "$net$1"
  made+=("$1")
  ip -n "$net$1" link set lo up
}

switch() {  # NAME: one with a bridge
  space "$1"
  ip -n "$net$1" link add br0 type bridge
  ip -n "$net$1" link set br0 up
}

# Both ends: tbf holds what goes out only. Its bucket is what a link sends in
# two milliseconds, and a packet that the kernel has joined of many.
limit() {  # NAME DEVICE MBIT
  local bucket=$(($3 * 250))
  [ "$bucket" -gt 70000 ] || bucket=70000
  tc -n "$net$1" qdisc add dev "$2" root tbf rate "$3mbit" burst "$bucket" latency 100ms
}

join() {  # LOWER DEVICE UPPER PORT MBIT: a link of that rate
  ip -n "$net$1" link add "$2" type veth peer name "$4" netns "$net$3"
  ip -n "$net$3" link set "$4" master br0 up
  ip -n "$net$1" link set "$2" up
  limit "$1" "$2" "$5"
  limit "$3" "$4" "$5"
}

# A tree of switches above the ranks; the members of a level share its switch,
# and the uplink of that.
make_tree() {  # SIZES RATES, the innermost first
  local sizes rates ranks=1 level=0 below rank width=1 above
  IFS=x read -ra sizes <<< "$1"
  IFS=, read -ra rates <<< "$2"
  for below in "${sizes[@]}"; do ranks=$((ranks * below)); done
  for ((rank = 0; rank < ranks; ++rank)); do space "$rank"; done
  for ((level = 0; level < ${#sizes[@]}; ++level)); do
    above=$((width * sizes[level]))
    for ((rank = 0; rank < ranks; rank += above)); do switch "s$level-$rank"; done
    for ((rank = 0; rank < ranks; rank += width)); do
      below=$rank
      [ "$level" -eq 0 ] || below=s$((level - 1))-$rank
      join "$below" "$([ "$level" -eq 0 ] && echo eth0 || echo uplink)" \
        "s$level-$((rank / above * above))" "p$rank" "${rates[$level]}"
      [ "$level" -eq 0 ] || ip -n "$net$below" link set uplink master br0
    done
    width=$above
  done
  for ((rank = 0; rank < ranks; ++rank)); do
    ip -n "$net$rank" address add "10.78.0.$((rank + 1))/24" dev eth0
  done
}

for ratio in 10 4; do
  for sizes in 2x2 4x2 2x2x2; do
    rates=$((slowest * ratio)),$slowest
    [ "$sizes" != 2x2x2 ] || rates=$((slowest * ratio * ratio)),$rates
    make_tree "$sizes" "$rates"
    "$program" "$net" "$sizes" "$rates" "$@"
    remove
  done
done
