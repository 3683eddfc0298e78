# Where CUDA's libraries are on this machine: functions for run.sh.
#
# They come with a toolkit (CUDA_HOME, or /usr/local/cuda), or with PyTorch, whose
# wheels keep them in the folder of the interpreter's packages: nvidia/cu13/lib,
# nvidia/nccl/lib, in earlier ones nvidia/cublas/lib, ...

# Folders that may have them, one a line: the toolkit's, then those of PyTorch's
# wheels in each of the folders given (python_folders).
cuda_folders() {
  local home=${CUDA_HOME:-/usr/local/cuda}
  printf '%s\n' "$home/lib64" "$home/targets/x86_64-linux/lib"
  local packages
  for packages in "$@"; do
    [ -d "$packages/nvidia" ] || continue
    printf '%s\n' "$packages"/nvidia/*/lib
  done
}

# The folders in which the interpreter $1 looks for packages, one a line; none
# where there is no such interpreter.
python_folders() {
  "$1" -c 'import sys; print("\n".join(p for p in sys.path if p))' 2> /dev/null
}

# The first of the folders ($2...) that has the file $1.
folder_with() {
  local file=$1 folder
  shift
  for folder in "$@"; do
    [ -e "$folder/$file" ] && echo "$folder" && return 0
  done
  return 1
}

# For LD_LIBRARY_PATH: the folders of the files $2..., as seen by the interpreter
# $1, then those that it has already, by which some machines say where the driver
# is. Says on stderr what is missing and where it was looked for.
cuda_library_path() {
  local python=$1 file folder path= packages folders
  shift
  mapfile -t packages < <(python_folders "$python")
  mapfile -t folders < <(cuda_folders "${packages[@]}")
  for file in "$@"; do
    if ! folder=$(folder_with "$file" "${folders[@]}"); then
      echo "$file is in none of ${folders[*]}: install NVIDIA's CUDA toolkit 13" \
        "(CUDA_HOME says where it is), or a PyTorch for CUDA 13 (PYTHON says" \
        "which interpreter has it)" >&2
      return 1
    fi
    case ":$path:" in
      *":$folder:"*) ;;
      *) path=$path${path:+:}$folder ;;
    esac
  done
  echo "$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
