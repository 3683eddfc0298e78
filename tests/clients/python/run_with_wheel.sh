#!/usr/bin/env bash
# Unpacks the wheel of the Python client and runs the tests of one module with it.
set -euo pipefail

for library in google.protobuf grpc numpy pandas yaml; do
  python3 -c "import $library" || {
    echo "python3 has no $library; run third_party/install.sh" >&2
    exit 1
  }
done
site=${TEST_TMPDIR:?}/site
mkdir -p "$site"
python3 -m zipfile -e clients/python/troupe.whl "$site"
export PYTHONPATH=$site:$PWD/tests/clients/python PYTHONDONTWRITEBYTECODE=1
exec python3 -W error::ResourceWarning -m unittest -v "$1"
