#!/usr/bin/env bash
# Of libraries.sh, on folders made here.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/libraries.sh"

failures=0
expect() { # WHAT GOT WANT
  if [ "$2" != "$3" ]; then
    printf '%s\n  is   %s\n  want %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
toolkit=$root/toolkit
wheels=$root/packages
mkdir -p "$toolkit/lib64" "$wheels/nvidia/cu13/lib" "$wheels/nvidia/nccl/lib"

# An interpreter that has its packages in $wheels, and looks in one more place.
cat > "$root/python" << SCRIPT
#!/bin/sh
printf '%s\n' "$root/nowhere" "$wheels"
SCRIPT
chmod +x "$root/python"

export CUDA_HOME=$toolkit
unset LD_LIBRARY_PATH
find_both() {
  cuda_library_path "$root/python" libcublasLt.so.13 libnccl.so.2 2> "$root/said"
}

got=$(find_both)
expect "code without any" $? 1
expect "path without any" "$got" ""
said=$(cat "$root/said")
case $said in
  "libcublasLt.so.13 is in none of $toolkit/lib64 "*"$wheels/nvidia/cu13/lib"*) ;;
  *) expect "the message" "$said" "file and folders" ;;
esac

touch "$wheels/nvidia/cu13/lib/libcublasLt.so.13"
find_both > /dev/null
expect "code with one of two" $? 1
case $(cat "$root/said") in
  "libnccl.so.2 is in none of "*) ;;
  *) expect "the message" "$(cat "$root/said")" "the other file" ;;
esac

touch "$wheels/nvidia/nccl/lib/libnccl.so.2"
expect "wheels" "$(find_both)" "$wheels/nvidia/cu13/lib:$wheels/nvidia/nccl/lib"

touch "$toolkit/lib64/libcublasLt.so.13"
expect "the toolkit comes first" "$(find_both)" \
  "$toolkit/lib64:$wheels/nvidia/nccl/lib"

touch "$toolkit/lib64/libnccl.so.2"
expect "one folder once" "$(find_both)" "$toolkit/lib64"

expect "where the driver may be comes last" \
  "$(LD_LIBRARY_PATH=/driver/lib64 find_both)" "$toolkit/lib64:/driver/lib64"

expect "no interpreter" \
  "$(cuda_library_path "$root/none" libnccl.so.2)" "$toolkit/lib64"

[ "$failures" -eq 0 ]
