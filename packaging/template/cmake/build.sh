#!/bin/sh
# Builds the plug-in's wheel in dist/, tests the device without TensorFlow, and
# installs the wheel into this environment. JOBS=1 ./build.sh compiles one file at a time,
# with less memory.
set -eu
cd "$(dirname "$0")"
command -v tfplug >/dev/null || {
  echo "Activate the Python environment that has tfplug and TensorFlow." >&2
  exit 1
}
# A build directory keeps its compiler, whatever CXX is later.
[ ! -e build/cxx ] || [ "$(cat build/cxx)" = "${CXX:-}" ] || rm -rf build
mkdir -p build
echo "${CXX:-}" >build/cxx
tfplug abseil >/dev/null || echo "Continuing: CMake fetches Abseil." >&2
pip install --quiet scikit-build-core cmake ninja
rm -rf dist
# -v shows the progress.
[ -z "${JOBS:-}" ] || export CMAKE_BUILD_PARALLEL_LEVEL="$JOBS"
pip wheel -v --no-build-isolation --no-deps -w dist .
ctest --test-dir build --output-on-failure
pip install --no-deps --force-reinstall dist/*.whl
