#!/bin/sh
# Builds the plug-in and its wheel in dist/, runs the tests without TensorFlow, and
# installs the wheel into this environment.
#
#   ./build.sh [--offline] [OPTION OF BAZEL...]
#
#   --offline   takes tfplug's stand-ins for the rules that Bazel downloads
set -eu
cd "$(dirname "$0")"
command -v tfplug >/dev/null || {
  echo "Activate the Python environment that has tfplug and TensorFlow." >&2
  exit 1
}
abseil=$(tfplug abseil)
option=--override_repository absl=com_google_absl stand_ins=
case $(bazel --version) in
  "bazel "[6-9].* | "bazel "[1-9][0-9].*) option=--override_module absl=abseil-cpp ;;
esac
if [ "${1:-}" = --offline ]; then
  shift
  stand_ins="rules_cc rules_java remote_coverage_tools"
fi
{
  for command in build query; do
    echo "$command $option=tfplug=$(tfplug --bazeldir)"
    echo "$command $option=$absl=$abseil"
    for rules in $stand_ins; do
      echo "$command --override_repository=$rules=$(tfplug --bazelrules)/$rules"
    done
  done
  # A wheel of tfplug for this processor has its library, compiled, beside Abseil.
  [ ! -e "$abseil/lib/libtfplug.a" ] || echo "build --define=tfplug=compiled"
} >.bazelrc.user
tests=$(bazel query 'kind(cc_test, //...)') && bazel build "$@" //:my_device $tests || {
  echo "If Bazel could not download its rules, ./build.sh --offline does without them." >&2
  exit 1
}
for test in $tests; do
  status=0
  "bazel-bin/$(echo "$test" | sed 's#^//:*##; s#:#/#')" || status=$?
  [ $status = 0 ] || [ $status = 77 ]  # 77: this machine has no device
done
rm -rf dist
tfplug wheel bazel-bin/libmy_device.so --version 0.1.0
pip install --no-deps --force-reinstall dist/*.whl
