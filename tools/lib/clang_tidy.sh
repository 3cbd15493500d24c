#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the checks in .clang-tidy on C++ files, two at a time, with the Abseil that
# tools/setup built.
#
#   tools/lib/clang_tidy.sh FILE...      relative to the project
set -euo pipefail
# shellcheck source=tools/lib/setup.sh
. "$(dirname "$0")/setup.sh"
cd "$TFPLUG_ROOT"
abseil=$(find_abseil)
[ -n "$abseil" ] || die "Abseil is missing. Run tools/setup, which builds it."
# shellcheck disable=SC2016
printf '%s\0' "$@" | xargs -0 -n 1 -P 2 bash -c '
  file=${!#} example=${file#*/}
  exec clang-tidy --quiet --warnings-as-errors="*" --header-filter="^$" "$file" \
    -- -x c++ "-Iexamples/${example%%/*}" "${@:1:$#-1}"
' - -std=c++17 -Iinclude -Itests -Iexamples/cpu_sim -Iexamples/cuda_like \
  -isystem /usr/include/eigen3 -isystem "$abseil/include"
