#!/bin/sh
# Builds the plug-in's wheel in dist/, installs it into this environment, and tests
# the device without TensorFlow.
set -eu
cd "$(dirname "$0")"
# A build directory keeps its compiler, whatever CXX is later.
[ ! -e build/cxx ] || [ "$(cat build/cxx)" = "${CXX:-}" ] || rm -rf build
mkdir -p build
echo "${CXX:-}" >build/cxx
tfplug abseil >/dev/null || echo "Continuing: CMake fetches Abseil." >&2
pip install --quiet scikit-build-core cmake ninja
rm -rf dist
pip wheel --no-build-isolation --no-deps -w dist .
pip install --no-deps --force-reinstall dist/*.whl
cmake --build build --target conformance
ctest --test-dir build --output-on-failure
