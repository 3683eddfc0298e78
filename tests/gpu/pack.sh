#!/usr/bin/env bash
# Packs what checks a machine's GPUs into one archive, for machines that have
# neither Bazel nor our libraries nor a network:
#
#   tests/gpu/pack.sh [FILE]                  # default: troupe-gpu.tar.xz
#   scp troupe-gpu.tar.xz gpu-box: && ssh gpu-box
#   tar xf troupe-gpu.tar.xz && troupe-gpu/run.sh
#
# Our binaries are linked from archives where Debian has them (--config=packed);
# its shared libraries lie in lib/ beside them. Not packed are CUDA's libraries,
# which the machine has (libraries.sh), and glibc, libstdc++ and libgcc: of these
# a process has one of each, shared with the driver's libraries, so they are the
# machine's. This checks that they need not be newer than Ubuntu 22.04's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=$(realpath -m -- "${1:-troupe-gpu.tar.xz}")
bytes_max=60000000
glibc_max=2.35
glibcxx_max=3.4.30

programs=(
  //clients/cli:troupe
  //scheduler:troupe-scheduler
  //worker:troupe-worker
  //tests/bench:step_bench
)
tests=(
  //tests/ops:ops_test
  //tests/ops/cuda:any_build_test
  //tests/ops/cuda:cuda_build_test
  //tests/worker/collective/nccl:any_build_test
  //tests/worker/collective/nccl:cuda_build_test
  //tests/worker/collective/staged:staged_communicator_test
  //tests/worker/service:open_device_test
  //tests/equivalence:gpu_test
)
# Those of the machine.
machines='^(linux-vdso|ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcublasLt|libcudart|libnccl)\.'

bazel build --config=cuda --config=packed "${programs[@]}" "${tests[@]}"
bin=$(bazel info --config=cuda --config=packed bazel-bin 2> /dev/null)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/troupe-gpu
mkdir -p "$top"/{bin,tests,lib,bench}

file_of() { # of a label
  local path=${1#//}
  echo "$bin/${path/://}"
}
for label in "${programs[@]}"; do
  strip -o "$top/bin/${label##*:}" "$(file_of "$label")"
done
for label in "${tests[@]}"; do
  name=${label#//tests/}
  name=${name//\//.}
  strip -o "$top/tests/${name/:/.}" "$(file_of "$label")"
done
cp tests/gpu/{run.sh,libraries.sh,cluster.py} "$top"
git describe --always --dirty > "$top/commit"
cp tests/bench/{versus_pytorch_gpu,pytorch_step,pytorch_models,pytorch_tensor}.py "$top/bench"

# The closure of shared libraries, but for the machine's.
ldd "$top"/bin/* "$top"/tests/* | awk '$2 == "=>" {print $1, $3}' | sort -u |
  while read -r name path; do
    grep -qE "$machines" <<< "$name" && continue
    [ -e "$path" ] || { echo "pack: $name is nowhere" >&2; exit 1; }
    cp -L "$path" "$top/lib/$name"
  done

newest() { # PREFIX of a symbol version, among all that is packed
  objdump -T "$top"/{bin,tests,lib}/* 2> /dev/null |
    grep -oE "\b$1_[0-9.]+" | sed "s/$1_//" | sort -uV | tail -1
}
for limit in "GLIBC $glibc_max" "GLIBCXX $glibcxx_max"; do
  read -r prefix max <<< "$limit"
  needs=$(newest "$prefix")
  echo "pack: needs $prefix $needs, may need $max"
  [ "$(printf '%s\n' "$needs" "$max" | sort -V | tail -1)" = "$max" ] || exit 1
done

# A dictionary that spans several binaries: they have most of their code in
# common, which is where the size goes; searching harder saves little.
tar --create --directory="$work" --sort=name --owner=0 --group=0 troupe-gpu |
  xz --lzma2=preset=1,dict=64MiB > "$out"
bytes=$(stat --format=%s "$out")
echo "pack: $out, $((bytes / 1000000)) MB, unpacked" \
  "$(du --summarize --si "$top" | cut -f1)"
[ "$bytes" -lt "$bytes_max" ] || { echo "pack: too large" >&2; exit 1; }
