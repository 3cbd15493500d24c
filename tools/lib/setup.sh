# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the commands in tools/, which source this file and call set_up, or, if
# they only build examples/cpu_sim or examples/cuda_like, `set_up plugin`. set_up
# installs and builds whatever is missing, does nothing if everything is present,
# and exports these variables:
#
#   TFPLUG_ROOT       this project
#   TFPLUG_VENV       virtual environment with TensorFlow: $TFPLUG_VENV/bin/python
#   PKG_CONFIG_PATH   begins with the static, position-independent Abseil and
#                     (not for `set_up plugin`) libprotobuf
#   MESON             the Meson of that environment
#   TFPLUG_BUILD      build directory of the plug-ins: configure "$TFPLUG_BUILD"
#
# Settings, from the environment:
#
#   TFPLUG_TENSORFLOW  release of TensorFlow, such as 2.15.1; default: the newest
#   TFPLUG_PYTHON      the Python to use; default: the first suitable one
#   XDG_CACHE_HOME     results are cached in tfplug/ below it

TFPLUG_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export TFPLUG_ROOT
export TFPLUG_BUILD=$TFPLUG_ROOT/build/gcc
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tfplug
# Change it together with build_protobuf, so that a build cached by an older recipe
# is not used.
PROTOBUF_RECIPE='1: static, position-independent, hidden, C++17, without zlib'
LOCK=$TFPLUG_ROOT/tools/lib/requirements.txt

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$(basename "$0"): $*"
  exit 1
}

# quietly TITLE COMMAND...: prints TITLE and runs COMMAND, whose output is shown
# only if it fails.
quietly() {
  local title=$1 log start=$SECONDS
  shift
  log=$(mktemp)
  say "$title ..."
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    say "Failed: $title"
    return 1
  fi
  rm -f "$log"
  say "$title: done in $((SECONDS - start)) s"
}

# at_least MINIMUM VERSION: succeeds if VERSION is not older than MINIMUM.
at_least() { printf '%s\n' "$1" "$2" | sort -VC; }

# ---- Packages of the machine -------------------------------------------------

# Prints the first Python, 3.10 or newer, that can create virtual environments.
find_python() {
  local python
  for python in ${TFPLUG_PYTHON:-python3 /usr/bin/python3 python3.13 \
    python3.12 python3.11 python3.10}; do
    if "$python" -c 'import ensurepip, ssl, sys, venv
sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  return 1
}

# missing_packages [plugin|site|judge]: prints the missing packages, one per line: all
# but the last kind, or only those needed to build and run a plug-in, to build the
# documentation site, or to compile kernels in other languages (tools/language-sweep).
missing_packages() {
  local probe package purpose
  while read -r probe package purpose; do
    case ${1:-}:$purpose in
      :judge) continue ;;
      :* | "$purpose:$purpose") ;;
      *) continue ;;
    esac
    case $probe in
      python) find_python >/dev/null ;;
      libgcc32) [ -e "$(cc -m32 -print-libgcc-file-name 2>/dev/null)" ] ;;
      /*) [ -e "$probe" ] ;;
      *.so.* | lib*.so | *.a) compgen -G "/usr/lib/*/$probe" >/dev/null ;;
      */*) [ -e "/usr/include/$probe" ] || [ -e "/usr/local/include/$probe" ] ;;
      *) command -v "$probe" >/dev/null ;;
    esac || echo "${package/VERSION/$(cc -dumpversion 2>/dev/null)}"
  done <<'EOF'
g++ g++ plugin
ninja ninja-build plugin
cmake cmake plugin
pkg-config pkg-config plugin
dpkg-source dpkg-dev plugin
eigen3/Eigen/Core libeigen3-dev plugin
python python3-venv plugin
ccache ccache test
clang++ clang test
clang-tidy clang-tidy test
valgrind valgrind test
gdb gdb test
protoc protobuf-compiler test
dot graphviz site
doxygen doxygen site
doctest/doctest.h doctest-dev test
glslangValidator glslang-tools test
spirv-val spirv-tools test
CL/cl.h opencl-c-headers test
/etc/OpenCL/vendors/pocl.icd pocl-opencl-icd test
libOpenCL.so.1 ocl-icd-libopencl1 test
vulkan/vulkan.h libvulkan-dev test
glslang/Public/resource_limits_c.h glslang-dev test
libSPIRV-Tools-opt.a spirv-tools test
libvulkan_lvp.so mesa-vulkan-drivers test
libVkLayer_khronos_validation.so vulkan-validationlayers test
libgcc32 lib32gcc-VERSION-dev judge
hip/hip_runtime.h hipcc judge
spirv-cross spirv-cross judge
EOF
}

# install_judges: installs those compilers of kernels that the distribution has.
# The tests leave out the others.
install_judges() {
  local package found=() as_root=()
  for package in $(missing_packages judge); do
    apt-cache show "$package" >/dev/null 2>&1 && found+=("$package")
  done
  [ ${#found[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  quietly "apt-get install ${found[*]}" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${found[@]}" ||
    say "Kernels in some languages will not be compiled."
}

# install_packages [plugin|site]
# shellcheck disable=SC2120
install_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    die "This is not a Debian or Ubuntu machine. Install the equivalents of" \
      "these Debian packages by hand and run this again: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "Packages are missing, and there is no sudo. Run as root:" \
        "apt-get install ${missing[*]}"
    as_root=(sudo)
    sudo -v || die "sudo refused. Run as root: apt-get install ${missing[*]}"
  fi
  quietly "apt-get update" "${as_root[@]}" apt-get update ||
    say "Continuing with the existing package lists."
  quietly "apt-get install ${missing[*]}" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install ${missing[*]}. Is there a network?"
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] || die "Still missing after the installation: ${missing[*]}"
}

# ---- Abseil and libprotobuf --------------------------------------------------

# kept_build COMMAND ARGUMENT...: see packaging/python/kept_build.py.
kept_build() { "$(find_python)" "$TFPLUG_ROOT/packaging/python/kept_build.py" "$@"; }

find_protobuf() { kept_build find "$CACHE" protobuf "$PROTOBUF_RECIPE"; }

# write_source_lists DIRECTORY: writes the machine's own sources of the
# distribution's main component (one-line and deb822 style) as sources of source
# packages.
write_source_lists() {
  local release file LIST=/etc/apt/sources.list PARTS=/etc/apt/sources.list.d
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  eval "$(apt-config shell LIST Dir::Etc::sourcelist/f \
    PARTS Dir::Etc::sourceparts/d)"
  for file in "$LIST" "${PARTS%/}"/*.list; do
    [ -f "$file" ] && sed -nE 's/^[[:space:]]*deb[[:space:]]+/deb-src /p' "$file"
  done | grep -v cdrom: |
    grep -E "[[:space:]](${release:-stable}|stable|testing|unstable|sid)" |
    grep -E '[[:space:]]main([[:space:]]|$)' >"$1/tfplug.list"
  for file in "${PARTS%/}"/*.sources; do
    [ -f "$file" ] && awk -v release="${release:-stable}" '
      BEGIN { RS = ""; FS = "\n" }
      {
        fits = suite = 0
        text = ""
        for (i = 1; i <= NF; ++i) {
          if ($i ~ /^Components:.*main/) fits = 1
          if ($i ~ "^Suites:.*(" release "|stable|testing|unstable|sid)")
            suite = 1
          sub(/^Types:.*/, "Types: deb-src", $i)
          text = text $i "\n"
        }
        if (fits && suite) print text
      }' "$file"
  done >"$1/tfplug.sources"
  [ -s "$1/tfplug.list" ] || [ -s "$1/tfplug.sources" ]
}

# fetch_source PACKAGE DIRECTORY: unpacks the distribution's source package in
# DIRECTORY/source. Uses separate package lists, and neither needs nor changes
# those of the machine. Run as root, apt downloads as the user _apt, who must have
# access to the directory: it cannot be in a home directory.
fetch_source() {
  local package=$1 work=$2
  mkdir -p "$work"/{parts,lists/partial,cache/archives/partial,source}
  write_source_lists "$work/parts" || {
    echo "/etc/apt names no source of the distribution's main component."
    return 1
  }
  chmod -R go+rX "$work"
  if [ "$(id -u)" = 0 ] && id _apt >/dev/null 2>&1; then
    chown _apt "$work"/{lists,cache/archives}/partial "$work/source"
  fi
  local options=(
    -o "Dir::Etc::SourceList=/dev/null"
    -o "Dir::Etc::SourceParts=$work/parts"
    -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache"
    -o "Acquire::Languages=none"
  )
  apt-get "${options[@]}" update
  (cd "$work/source" &&
    apt-get "${options[@]}" source --download-only --only-source "$package") &&
    chown -R "$(id -u)" "$work/source" &&
    (cd "$work/source" &&
      apt-get "${options[@]}" source --only-source "$package")
}

find_abseil() {
  "$(find_python)" "$TFPLUG_ROOT/packaging/python/abseil.py" --cached
}

# Builds a static, hidden, position-independent Abseil in the cache.
make_abseil() {
  [ -n "$(find_abseil)" ] || quietly "building Abseil" \
    "$TFPLUG_VENV/bin/python" "$TFPLUG_ROOT/packaging/python/abseil.py"
}

# build_protobuf SOURCE BUILD STAGE PREFIX: builds the library and installs its
# headers. The distribution's protoc, built from the same source, is used with it.
build_protobuf() {
  local source=$1
  [ -f "$source/CMakeLists.txt" ] || source=$1/cmake  # Before 3.20.
  cmake -S "$source" -B "$2" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_STANDARD=17 \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden \
    -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON \
    -DCMAKE_CXX_FLAGS='-ffunction-sections -fdata-sections' \
    -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG' \
    -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_PREFIX="$4" \
    -Dprotobuf_BUILD_SHARED_LIBS=OFF \
    -Dprotobuf_BUILD_TESTS=OFF \
    -Dprotobuf_BUILD_PROTOC_BINARIES=OFF \
    -Dprotobuf_WITH_ZLIB=OFF &&
    ninja -C "$2" libprotobuf &&
    DESTDIR=$3 cmake --install "$2" --component libprotobuf &&
    DESTDIR=$3 cmake --install "$2" --component protobuf-headers &&
    mkdir -p "$3$4/lib/pkgconfig" &&
    cp "$2/protobuf.pc" "$3$4/lib/pkgconfig"
}

# Builds a static, hidden, position-independent libprotobuf in the cache, for
# plug-ins that include tfplug/proto/proto.h.
make_protobuf() (
  [ -z "$(find_protobuf)" ] || exit 0
  without="Targets that need tfplug/proto/proto.h are not built."
  command -v apt-get >/dev/null || {
    say "There is no apt-get to fetch the source of protobuf. $without"
    exit 0
  }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  quietly "fetching the source package of protobuf" \
    fetch_source protobuf "$work" ||
    die "The source package of protobuf could not be fetched. Is there a" \
      "network, and does the mirror in /etc/apt have source packages?"
  source=$(find "$work/source" -mindepth 1 -maxdepth 1 -type d \
    -name 'protobuf-*')
  prefix=$CACHE/$(basename "$source")
  case ${source##*-} in
    3.*) ;;
    *)
      say "This distribution has protobuf ${source##*-}, not 3. $without"
      exit 0
      ;;
  esac
  quietly "building libprotobuf ${source##*-}" \
    build_protobuf "$source" "$work/build" "$work/stage" "$prefix" ||
    die "libprotobuf could not be built."
  kept_build keep "$work/stage" "$prefix" "$PROTOBUF_RECIPE"
)

# ---- Python ------------------------------------------------------------------

# pip_install PACKAGE...: installs wheels only, so that no package runs code.
pip_install() {
  "$TFPLUG_VENV/bin/python" -m pip install --disable-pip-version-check \
    --progress-bar off --only-binary :all: "$@"
}

# Sets TFPLUG_VENV, the virtual environment of the requested TensorFlow, and WANTED, what
# pip installs there; creates it anew unless it contains that.
create_venv() {
  local python version=${TFPLUG_TENSORFLOW:-} wheel=tensorflow-cpu
  python=$(find_python) ||
    die "There is no Python 3.10 or newer with the venv module."
  [ "$(uname -m)" = x86_64 ] || wheel=tensorflow
  WANTED=("$wheel${version:+==$version}")
  if [ -n "$version" ] && ! at_least 2.18 "$version"; then
    WANTED+=('numpy<2')  # Built against the C API of NumPy 1.
  fi
  TFPLUG_VENV=$CACHE/venv-${version:-newest}-$("$python" -c \
    'import sys; print("py%d.%d" % sys.version_info[:2])')
  export TFPLUG_VENV
  grep -qsF "${WANTED[*]} " "$TFPLUG_VENV/requirements" &&
    "$TFPLUG_VENV/bin/python" -c '' && return
  quietly "creating $TFPLUG_VENV" "$python" -m venv --clear "$TFPLUG_VENV" ||
    die "The virtual environment could not be created."
}

# Completes $TFPLUG_VENV: the requested TensorFlow with the packages it requires, and
# the packages of our tools in exactly the locked versions.
fill_venv() {
  # The files name what is installed. The tools do not depend on TensorFlow: a change
  # of the lock leaves it alone.
  local stamp=$TFPLUG_VENV/requirements tools=$TFPLUG_VENV/tools locked
  locked=$(sha256sum <"$LOCK")
  if [ ! -e "$stamp" ]; then
    quietly "pip install ${WANTED[*]}" pip_install "${WANTED[@]}" ||
      die "pip could not install ${WANTED[0]}. Is there a network, and a wheel for" \
        "$("$TFPLUG_VENV/bin/python" --version)? TFPLUG_PYTHON names another Python."
    echo "${WANTED[*]} " >"$stamp"
  fi
  if [ "$(cat "$tools" 2>/dev/null)" != "$locked" ]; then
    quietly "pip install of the tools in ${LOCK#"$TFPLUG_ROOT"/}" \
      pip_install --require-hashes --no-deps -r "$LOCK" ||
      die "pip could not install the locked packages in $LOCK. Is there a network?"
    echo "$locked" >"$tools"
  fi
}

# make_locked_venv NAME LOCK: creates the virtual environment $LOCKED_VENV, which
# contains the packages in LOCK and nothing else.
make_locked_venv() {
  local python stamp state
  python=$(find_python) ||
    die "There is no Python 3.10 or newer with the venv module."
  LOCKED_VENV=$CACHE/$1-$("$python" -c \
    'import sys; print("py%d.%d" % sys.version_info[:2])')
  stamp=$LOCKED_VENV/requirements
  state=$(sha256sum <"$2")
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$state" ] &&
    "$LOCKED_VENV/bin/python" -c ''; then
    return
  fi
  rm -f "$stamp"
  quietly "creating $LOCKED_VENV" "$python" -m venv --clear "$LOCKED_VENV" ||
    die "The virtual environment could not be created."
  TFPLUG_VENV=$LOCKED_VENV quietly "pip install of ${2#"$TFPLUG_ROOT"/}" \
    pip_install --require-hashes --no-deps -r "$2" ||
    die "pip could not install the locked packages in $2. Is there a network?"
  echo "$state" >"$stamp"
}

# Installs xprof, TensorBoard's profiler, which needs no TensorFlow (350 MB), in a
# virtual environment of its own, $XPROF.
install_xprof() {
  XPROF=$CACHE/xprof-2.24
  "$XPROF/bin/python" -c 'import xprof' 2>/dev/null && return
  quietly "creating $XPROF" "$TFPLUG_VENV/bin/python" -m venv --clear "$XPROF"
  quietly "installing xprof" "$XPROF/bin/pip" install 'xprof==2.24.*'
}

# ---- All together ------------------------------------------------------------

# set_up [plugin]
# shellcheck disable=SC2120
set_up() {
  install_packages "$@"
  [ $# -gt 0 ] || install_judges
  mkdir -p "$CACHE"
  # Only one process at a time may change the cache.
  exec 9>"$CACHE/lock"
  flock 9
  create_venv
  # Builds while pip waits for its downloads.
  { make_abseil && { [ "${1:-}" = plugin ] || make_protobuf; }; } &
  local libraries=$!
  fill_venv
  wait "$libraries" || exit 1
  exec 9>&-

  local prefix
  for prefix in "$(find_protobuf)" "$(find_abseil)"; do
    [ -z "$prefix" ] ||
      export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
  done
  # Meson, which may set up a build again at any time, needs the packages of this Python.
  export MESON=$TFPLUG_VENV/bin/meson PATH=$TFPLUG_VENV/bin:$PATH
  # Compilers' results are shared by all clones of the project.
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$TFPLUG_ROOT} CCACHE_NOHASHDIR=1
  # Those of files with precompiled headers, too (tests/precompile.py).
  export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
}

# configure DIRECTORY [MESON_ARGUMENT]...: sets up a build directory, or sets it
# up again if it was set up with other arguments, another compiler or another
# Abseil. Omits debug information, which would take a third of the compile time, and
# uses ccache if it is installed.
configure() {
  local directory=$1 stamp=$1/tfplug-arguments CXX=${CXX:-}
  shift
  if [ -n "$CXX" ] && command -v ccache >/dev/null; then
    export CXX="ccache $CXX"
  fi
  set -- -Ddebug=false "$@"
  local arguments="$* CXX=$CXX ${PKG_CONFIG_PATH:-}"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$arguments" ]; then
    return
  fi
  rm -rf "$directory"
  quietly "meson setup ${directory#"$TFPLUG_ROOT"/}" \
    "$MESON" setup "$directory" "$TFPLUG_ROOT" "$@" || return 1
  echo "$arguments" >"$stamp"
}

# configure_with_gcc: sets up $TFPLUG_BUILD, whose plug-ins all tools use. Of the
# unit tests it has those whose results depend on the compiler.
configure_with_gcc() {
  CXX=g++ configure "$TFPLUG_BUILD" -Dexamples=enabled -Dtests=enabled \
    -Dunit_tests=always
}
