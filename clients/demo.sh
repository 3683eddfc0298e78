#!/usr/bin/env bash
# The demo: from nothing to a trained model that writes, on one machine.
#
#   clients/demo.sh [--text FILE] [--dir DIR] [--long] [--keep]
#
# Installs what is missing, builds, turns an English text into tokens, starts a
# scheduler and four workers, trains clients/examples/demo.yaml for about three
# minutes (two cores) with live progress, and lets the model write a paragraph.
# Ctrl-C leaves nothing running; a second run starts within seconds.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: clients/demo.sh [--text FILE] [--dir DIR] [--long] [--keep]
                       [--set PATH=VALUE]...
  --text FILE       learn from this text [the King James Bible, public domain]
  --dir DIR         work here: a new or empty folder, or that of an earlier
                    demo [${XDG_CACHE_HOME:-~/.cache}/troupe/demo]
  --long            train ten times as long: about half an hour on two cores
  --keep            leave the cluster running at the end
  --set PATH=VALUE  change a field of the job, as in training.steps=50
TEXT
}

fail() {
  echo "demo: $*" >&2
  exit 1
}

# The demo writes, replaces and removes files in its folder, so that must be its
# own: new, empty, or marked as one by an earlier demo.
claim() {
  local mark=$dir/.troupe-demo
  if [ ! -e "$mark" ] && [ "$dir" != "$default_dir" ]; then
    [ ! -e "$dir" ] || [ -d "$dir" ] || fail "$dir is no folder"
    [ -z "$(ls -A -- "$dir" 2> /dev/null)" ] ||
      fail "$dir has files that are not the demo's, which would replace or" \
        "remove some of them; give a new or an empty folder"
  fi
  { mkdir -p -- "$dir" && : > "$mark"; } || fail "cannot write in $dir"
}

more_steps=4500 # ten times as many
text=
default_dir=${XDG_CACHE_HOME:-$HOME/.cache}/troupe/demo
dir=$default_dir
keep=
settings=()
while [ $# -gt 0 ]; do
  case $1 in
    --text | --dir | --set)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --text) text=$(realpath -- "$2") ;;
        --dir) dir=$(realpath -m -- "$2") ;;
        --set) settings+=(--set "$2") ;;
      esac
      shift 2
      ;;
    --long)
      settings=(--set "training.steps=$more_steps" "${settings[@]}")
      more_steps=$((10 * more_steps))
      shift
      ;;
    --keep) keep=1 && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
done
[ -z "$text" ] || [ -r "$text" ] || fail "cannot read $text"
claim

cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository=$PWD
troupe=
child=

# Whatever happens, what we started ends with us: the command under way, the
# cluster, and the build server if it is ours.
finish() {
  local code=$?
  trap '' INT TERM
  trap - EXIT
  if [ -n "$child" ]; then
    kill "$child" 2> /dev/null || true
    wait "$child" 2> /dev/null || true
  fi
  if [ -n "$troupe" ] && { [ "$code" -ne 0 ] || [ -z "$keep" ]; }; then
    "$troupe" down > /dev/null 2>&1 || true
  fi
  if [ -n "$own_build_server" ]; then bazel shutdown > /dev/null 2>&1 || true; fi
  exit "$code"
}

# Waits for a command so that a signal to this script alone is heard at once.
run() {
  "$@" &
  child=$!
  local code=0
  wait "$child" || code=$?
  child=
  return "$code"
}

# The brackets keep grep from finding itself.
build_server_runs() {
  grep -qsaz -e "[-]-workspace_directory=$repository" /proc/[0-9]*/cmdline
}

own_build_server=
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

run third_party/install.sh
echo "building"
build_server_runs || own_build_server=1
run bazel build //clients/cli:troupe //scheduler:troupe-scheduler \
  //worker:troupe-worker
export TROUPE_DIR=$dir/cluster
troupe=$(bazel info bazel-bin 2> /dev/null)/clients/cli/troupe

if [ -z "$text" ]; then
  text=$dir/bible.txt
  if [ ! -s "$text" ]; then # a verse a line, without its number
    bible -f gen1:1-rev22:21 | sed -E 's/^[0-9A-Za-z]+:[0-9]+ //' > "$text.new"
    mv "$text.new" "$text"
  fi
fi
# Made once for each text; one too short for a vocabulary is learnt byte by byte.
vocabulary=2048
tokenizer=(--tokenizer sentencepiece --vocab-size "$vocabulary")
if [ "$(stat -L -c %s -- "$text")" -lt 1000000 ]; then
  vocabulary=256
  tokenizer=(--tokenizer bytes)
fi
tokens=$dir/$(sha256sum "$text" | cut -c 1-16)-$vocabulary.tokens
if [ ! -s "$tokens" ]; then
  echo
  run "$troupe" data prepare "$text" "${tokenizer[@]}" --out "$tokens"
fi

echo
"$troupe" down > /dev/null 2>&1 || true # what a killed demo may have left
run "$troupe" up --workers 4 > "$dir/up.txt"
cat "$dir/up.txt"
page=$(sed -n 's/^status page *//p' "$dir/up.txt")

echo
rm -rf "$dir/checkpoints"
job=(submit "$repository/clients/examples/demo.yaml" --watch
  --set "data.tokens=$tokens" --set "model.vocab_size=$vocabulary"
  --set "checkpoint.directory=$dir/checkpoints")
run "$troupe" "${job[@]}" "${settings[@]}"

echo
echo "The trained model goes on from \"And the LORD said\":"
echo
run "$troupe" generate latest --prompt "And the LORD said" \
  --max-new-tokens 150 --temperature 0.7 --top-k 20 --seed 1 > "$dir/text.txt"
fold -s -w 78 "$dir/text.txt"

echo
echo "checkpoint   $(find "$dir/checkpoints" -mindepth 1 -maxdepth 1 | sort | tail -n 1)"
echo "status page  $page"
echo
echo "to train it on from there, ten times as long in all:"
[ -n "$keep" ] || printf '  %q up --workers 4 --dir %q\n' "$troupe" "$TROUPE_DIR"
printf '  TROUPE_DIR=%q' "$TROUPE_DIR"
printf ' %q' "$troupe" "${job[@]}" --set "training.steps=$more_steps" \
  --set checkpoint.resume=latest
echo
if [ -n "$keep" ]; then
  printf 'the cluster goes on; stop it with: %q down --dir %q\n' \
    "$troupe" "$TROUPE_DIR"
else
  echo "the cluster is being stopped, and the page with it (--keep leaves both)"
fi
