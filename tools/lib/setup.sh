# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts in tools/, which source it and call set_up. That brings
# the machine to where everything builds and runs, does nothing where it is
# there already, and leaves these variables, exported:
#
#   TFPLUG_ROOT       this project
#   TFPLUG_VENV       virtual environment with TensorFlow: $TFPLUG_VENV/bin/python
#   PKG_CONFIG_PATH   begins with the static, position-independent Abseil and
#                     libprotobuf
#   MESON             Meson 1.0.1 or newer
#   TFPLUG_BUILD      where the plug-ins are built: configure "$TFPLUG_BUILD"
#
# Settings, from the environment:
#
#   TFPLUG_TENSORFLOW  release of TensorFlow, as 2.15.1; default: the newest
#   TFPLUG_PYTHON      Python to use; default: the first fitting one found
#   XDG_CACHE_HOME     what is built and installed goes to tfplug/ in there

TFPLUG_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export TFPLUG_ROOT
export TFPLUG_BUILD=$TFPLUG_ROOT/build/gcc
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tfplug
ABSEIL_OLDEST=20220623
# Changed whenever build_abseil is, so that what older recipes built is not used.
ABSEIL_RECIPE='1: static, position-independent, hidden, C++17'
PROTOBUF_RECIPE='1: static, position-independent, hidden, C++17, without zlib'
# Formatting differs between releases of clang-format.
CLANG_FORMAT=14.0.6

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$(basename "$0"): $*"
  exit 1
}

# quietly WORDS COMMAND...: says WORDS, runs COMMAND, and shows what it wrote
# only if it fails.
quietly() {
  local words=$1 log start=$SECONDS
  shift
  log=$(mktemp)
  say "$words ..."
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    say "failed: $words"
    return 1
  fi
  rm -f "$log"
  say "$words: done in $((SECONDS - start)) s"
}

at_least() { printf '%s\n' "$1" "$2" | sort -VC; }  # at_least MINIMUM VERSION

# ---- Packages of the machine -------------------------------------------------

# Prints the first Python that can make virtual environments, 3.10 or newer.
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

# Prints the packages that are missing, one a line.
missing_packages() {
  local probe package
  while read -r probe package; do
    case $probe in
      python) find_python >/dev/null ;;
      */*) [ -e "/usr/include/$probe" ] || [ -e "/usr/local/include/$probe" ] ;;
      *) command -v "$probe" >/dev/null ;;
    esac || echo "$package"
  done <<'EOF'
g++ g++
clang++ clang
clang-tidy clang-tidy
meson meson
ninja ninja-build
cmake cmake
pkg-config pkg-config
valgrind valgrind
dpkg-source dpkg-dev
protoc protobuf-compiler
dot graphviz
doctest/doctest.h doctest-dev
eigen3/Eigen/Core libeigen3-dev
python python3-venv
EOF
}

install_packages() {
  local missing root=()
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    die "not a Debian or Ubuntu machine; install by hand what these Debian" \
      "packages hold, then run this again: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "neither root nor sudo here; as root, run:" \
        "apt-get install ${missing[*]}"
    root=(sudo)
    sudo -v || die "sudo refused; as root, run: apt-get install ${missing[*]}"
  fi
  quietly "apt-get update" "${root[@]}" apt-get update ||
    say "going on with the package lists that there are"
  quietly "apt-get install ${missing[*]}" \
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" ||
    die "could not install: ${missing[*]}. Is there a network?"
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] || die "installed, yet still missing: ${missing[*]}"
}

# ---- Abseil and libprotobuf --------------------------------------------------

# find_built NAME RECIPE: prints the folder of the newest one by this recipe.
find_built() {
  local stamp found=
  for stamp in "$CACHE/$1"-*/recipe; do
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$2" ]; then
      found=$(dirname "$stamp")
    fi
  done
  [ -n "$found" ] && echo "$found"
}

find_abseil() { find_built abseil "$ABSEIL_RECIPE"; }
find_protobuf() { find_built protobuf "$PROTOBUF_RECIPE"; }

# write_source_lists FOLDER: the machine's own sources of the distribution's
# main component (one-line and deb822 style) as sources of source packages.
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

# fetch_source PACKAGE FOLDER: unpacks the distribution's source package in
# there, with package lists of its own: the machine's are neither needed nor
# changed.
fetch_source() {
  local package=$1
  shift
  mkdir -p "$1"/{parts,lists/partial,cache/archives/partial,source}
  write_source_lists "$1/parts" || {
    echo "no source of the distribution's main component in /etc/apt"
    return 1
  }
  local options=(
    -o "Dir::Etc::SourceList=/dev/null"
    -o "Dir::Etc::SourceParts=$1/parts"
    -o "Dir::State::Lists=$1/lists"
    -o "Dir::Cache=$1/cache"
    -o "Acquire::Languages=none"
    -o "APT::Sandbox::User=root"
  )
  apt-get "${options[@]}" update
  cd "$1/source" && apt-get "${options[@]}" source --only-source "$package"
}

# build_abseil SOURCE BUILD STAGE PREFIX
build_abseil() {
  cmake -S "$1" -B "$2" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_STANDARD=17 \
    -DABSL_PROPAGATE_CXX_STD=ON \
    -DBUILD_SHARED_LIBS=OFF \
    -DBUILD_TESTING=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_CXX_VISIBILITY_PRESET=hidden \
    -DCMAKE_VISIBILITY_INLINES_HIDDEN=ON \
    -DCMAKE_CXX_FLAGS='-ffunction-sections -fdata-sections' \
    -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_PREFIX="$4" &&
    DESTDIR="$3" ninja -C "$2" install
}

# Leaves a static, hidden, position-independent Abseil in the cache.
make_abseil() (
  find_abseil >/dev/null && exit 0
  command -v apt-get >/dev/null || {
    say "no apt-get here, hence no source package of Abseil: Meson will fetch one"
    exit 0
  }
  work=$(mktemp -d "$CACHE/tmp.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  quietly "fetching the source package of Abseil" \
    fetch_source abseil "$work" ||
    die "no source package of Abseil. Is there a network, and does the mirror" \
      "in /etc/apt have source packages?"
  source=$(find "$work/source" -mindepth 1 -maxdepth 1 -type d -name 'abseil-*')
  prefix=$CACHE/$(basename "$source")
  if ! at_least "$ABSEIL_OLDEST" "${source##*-}"; then
    say "this release has Abseil ${source##*-}, older than $ABSEIL_OLDEST:" \
      "Meson will fetch one"
    exit 0
  fi
  quietly "building Abseil ${source##*-}" \
    build_abseil "$source" "$work/build" "$work/stage" "$prefix" ||
    die "Abseil did not build"
  echo "$ABSEIL_RECIPE" >"$work/stage/$prefix/recipe"
  rm -rf "$prefix"
  mv "$work/stage/$prefix" "$prefix"
)

# build_protobuf SOURCE BUILD STAGE PREFIX: the library and its headers; protoc is
# the distribution's, which is of the same source.
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

# Leaves a static, hidden, position-independent libprotobuf in the cache, for
# plug-ins that include tfplug/proto/proto.h.
make_protobuf() (
  find_protobuf >/dev/null && exit 0
  command -v apt-get >/dev/null || {
    say "no apt-get here, hence no source package of protobuf: what needs" \
      "tfplug/proto/proto.h is left out"
    exit 0
  }
  work=$(mktemp -d "$CACHE/tmp.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  quietly "fetching the source package of protobuf" \
    fetch_source protobuf "$work" ||
    die "no source package of protobuf. Is there a network, and does the" \
      "mirror in /etc/apt have source packages?"
  source=$(find "$work/source" -mindepth 1 -maxdepth 1 -type d \
    -name 'protobuf-*')
  prefix=$CACHE/$(basename "$source")
  case ${source##*-} in
    3.*) ;;
    *)
      say "this release has protobuf ${source##*-}, not 3: what needs" \
        "tfplug/proto/proto.h is left out"
      exit 0
      ;;
  esac
  quietly "building libprotobuf ${source##*-}" \
    build_protobuf "$source" "$work/build" "$work/stage" "$prefix" ||
    die "libprotobuf did not build"
  echo "$PROTOBUF_RECIPE" >"$work/stage/$prefix/recipe"
  rm -rf "$prefix"
  mv "$work/stage/$prefix" "$prefix"
)

# ---- Python ------------------------------------------------------------------

# Makes or completes $TFPLUG_VENV.
make_venv() {
  local python version=${TFPLUG_TENSORFLOW:-} wheel=tensorflow-cpu want
  python=$(find_python) || die "no Python 3.10 or newer with the venv module"
  [ "$(uname -m)" = x86_64 ] || wheel=tensorflow
  want=("$wheel${version:+==$version}" scikit-learn matplotlib tqdm pytest
    pytest-xdist "clang-format==$CLANG_FORMAT")
  if [ -n "$version" ] && ! at_least 2.18 "$version"; then
    want+=('numpy<2')  # Built against the C API of NumPy 1.
  fi
  if ! at_least 1.0.1 "$(meson --version)"; then
    want+=('meson>=1.0.1')
  fi

  TFPLUG_VENV=$CACHE/venv-${version:-newest}-$("$python" -c \
    'import sys; print("py%d.%d" % sys.version_info[:2])')
  export TFPLUG_VENV
  local stamp=$TFPLUG_VENV/requirements
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "${want[*]}" ] &&
    "$TFPLUG_VENV/bin/python" -c ''; then
    return
  fi
  rm -f "$stamp"
  quietly "making $TFPLUG_VENV" "$python" -m venv --clear "$TFPLUG_VENV" ||
    die "no virtual environment"
  quietly "pip install ${want[*]}" "$TFPLUG_VENV/bin/python" -m pip install \
    --disable-pip-version-check --progress-bar off "${want[@]}" ||
    die "pip could not install what is needed. Is there a network, and a" \
      "TensorFlow ${version:-wheel} for $("$python" --version)?" \
      "TFPLUG_PYTHON names another Python."
  echo "${want[*]}" >"$stamp"
}

# ---- All together ------------------------------------------------------------

set_up() {
  install_packages
  mkdir -p "$CACHE"
  # One at a time; what an interrupted run left behind is nobody's.
  exec 9>"$CACHE/lock"
  flock 9
  rm -rf "$CACHE"/tmp.*
  # While pip waits for its downloads.
  { make_abseil && make_protobuf; } &
  local libraries=$!
  make_venv
  wait "$libraries" || exit 1
  exec 9>&-

  local prefix
  for prefix in "$(find_protobuf)" "$(find_abseil)"; do
    [ -z "$prefix" ] ||
      export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
  done
  MESON=meson
  [ -x "$TFPLUG_VENV/bin/meson" ] && MESON=$TFPLUG_VENV/bin/meson
  export MESON
}

# configure FOLDER [MESON_ARGUMENT]...: a build folder with these arguments;
# made anew when they, the compiler or Abseil are not those it was made with.
# Debug information would be a third of the compilers' time.
configure() {
  local folder=$1 stamp=$1/tfplug-arguments
  shift
  set -- -Ddebug=false "$@"
  local arguments="$* CXX=${CXX:-} ${PKG_CONFIG_PATH:-}"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$arguments" ]; then
    return
  fi
  rm -rf "$folder"
  quietly "meson setup ${folder#"$TFPLUG_ROOT"/}" \
    "$MESON" setup "$folder" "$TFPLUG_ROOT" "$@" || return 1
  echo "$arguments" >"$stamp"
}
