#!/usr/bin/env bash
# Builds the wheel of the Python client and prints its path.
#
#   clients/python/build.sh            # clients/python/dist/troupe-VERSION-py3-none-any.whl
#   clients/python/build.sh OUT        # OUT/troupe-VERSION-py3-none-any.whl
#   PYTHON=python3.12 clients/python/build.sh
#
# Needs setuptools and wheel of that Python, and protoc (third_party/install.sh).
# Nothing is written into the source folder but dist/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$here/dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r "$here/pyproject.toml" "$here/setup.py" "$here/troupe" "$work/"
cd "$work"
TROUPE_PROTO=${TROUPE_PROTO:-$here/../../proto} \
  "${PYTHON:-python3}" setup.py --quiet bdist_wheel --dist-dir "$work/dist" \
  > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
wheel=$(cd "$work/dist" && echo troupe-*.whl)
cp "$work/dist/$wheel" "$out/"
echo "$out/$wheel"
