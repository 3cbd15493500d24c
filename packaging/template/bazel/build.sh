#!/bin/sh
# Builds the plug-in and its wheel in dist/, tests the device without TensorFlow, and
# installs the wheel into this environment.
set -eu
cd "$(dirname "$0")"
command -v tfplug >/dev/null || {
  echo "Activate the Python environment that has tfplug and TensorFlow." >&2
  exit 1
}
abseil=$(tfplug abseil)
for repository in "tfplug=$(tfplug --bazeldir)" "com_google_absl=$abseil"; do
  echo "build --override_repository=$repository"
done >.bazelrc.user
# A wheel of tfplug for this processor has its library, compiled, beside Abseil.
[ ! -e "$abseil/lib/libtfplug.a" ] || echo "build --define=tfplug=compiled" >>.bazelrc.user
bazel build //:my_device //:conformance || {
  echo "If Bazel could not download its rules: tfplug's guide \"Build a plug-in\"" \
    "says in \"Bazel\" what takes their place without a network." >&2
  exit 1
}
status=0
bazel-bin/conformance || status=$?
[ $status = 0 ] || [ $status = 77 ]
rm -rf dist
tfplug wheel bazel-bin/libmy_device.so --version 0.1.0
pip install --no-deps --force-reinstall dist/*.whl
