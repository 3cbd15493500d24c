# SPDX-License-Identifier: Apache-2.0
"""tfplug abseil: builds the Abseil that plug-ins contain.

It is static, position-independent and hidden. Its source comes from PyPI, so that the
same release is built on every Linux: the source of gRPC contains that of Abseil.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile

try:
    from tfplug import kept_build
except ImportError:  # Run by tools/lib/setup.sh.
    import kept_build

_VERSION = "20240722.0"
_PACKAGE = "grpcio==1.68.1"
_SHA256 = "44a8502dd5de653ae6a73e2de50a401d84184f0331d0ac3daeb044e66d5c5054"
# What is compiled: the parts of Abseil that a plug-in may use. Flags, logs and random
# numbers, a quarter of the whole, are left out.
# The key is the optimization: the second half, most of the code, formats texts and times
# and reports crashes.
_PARTS = {
    "-O2": ("base", "container", "hash", "numeric", "profiling", "status",
            "synchronization"),
    "-O1": ("crc", "debugging", "strings", "time"),
}
_NOT_COMPILED = re.compile(
    r"(test|benchmark|testing|listener|matchers|scoped_set_env|print_hash_of)")
# The files of a half are compiled together, which takes a quarter of the time. These are
# compiled with the other half: a file of their own defines the same names.
_APART = frozenset(("numbers.cc", "poison.cc", "time.cc", "time_zone_posix.cc",
                    "utf8_for_code_point.cc"))
# The names by which pkg-config, CMake and Bazel know Abseil's parts, and Bazel's packages:
# all are one archive.
_MODULES = {"any_invocable": "functional", "base": "base", "cord": "strings",
            "flat_hash_map": "container", "flat_hash_set": "container", "hash": "hash",
            "inlined_vector": "container", "int128": "numeric", "span": "types",
            "status": "status", "statusor": "status", "str_format": "strings",
            "strings": "strings", "synchronization": "synchronization", "time": "time"}
_FLAGS = ("-std=c++17", "-DNDEBUG", "-w", "-fPIC", "-fvisibility=hidden",
          "-fvisibility-inlines-hidden", "-ffunction-sections", "-fdata-sections")
# Change it with what is built: another recipe's build is not used.
_RECIPE = f"7: Abseil {_VERSION} {' '.join(_FLAGS)}"

_PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..
includedir=${{prefix}}/include
libdir=${{prefix}}/lib
Name: absl_{name}
Description: Abseil for plug-ins: static, position-independent, hidden
Version: {release}
Cflags: -I${{includedir}}
Libs: -L${{libdir}} -labsl -pthread
"""
_CMAKE = """\
get_filename_component(_absl "${{CMAKE_CURRENT_LIST_DIR}}/../../.." ABSOLUTE)
find_package(Threads REQUIRED)
foreach(_part {modules})
  if(NOT TARGET absl::${{_part}})
    add_library(absl::${{_part}} STATIC IMPORTED)
    set_target_properties(absl::${{_part}} PROPERTIES
      IMPORTED_LOCATION "${{_absl}}/lib/libabsl.a"
      INTERFACE_INCLUDE_DIRECTORIES "${{_absl}}/include"
      INTERFACE_LINK_LIBRARIES Threads::Threads)
  endif()
endforeach()
"""
_BAZEL = {
    "WORKSPACE": 'workspace(name = "com_google_absl")\n',
    "MODULE.bazel": f'module(name = "abseil-cpp", version = "{_VERSION}")\n',
    "BUILD.bazel": """\
cc_library(
    name = "absl",
    srcs = ["lib/libabsl.a"],
    hdrs = glob(["include/absl/**"]),
    includes = ["include"],
    linkopts = ["-pthread"],
    visibility = ["//visibility:public"],
)
""",
}
_BAZEL_PART = """\
alias(
    name = "{name}",
    actual = "//:absl",
    visibility = ["//visibility:public"],
)
"""


class Error(Exception):
    """Says why there is no Abseil, and what to do."""


def add_parser(commands):
    parser = commands.add_parser(
        "abseil", help="build an Abseil that plug-ins can contain",
        description=f"Builds a static, hidden, position-independent Abseil {_VERSION} "
        "once, in ~/.cache/tfplug, and prints its prefix. pip fetches the source. CXX names "
        "the compiler, which may be one for another processor.")
    _add_arguments(parser)
    parser.set_defaults(run=run)


def _add_arguments(parser):
    parser.add_argument("--pkgconfigdir", action="store_true",
                        help="print the directory for PKG_CONFIG_PATH instead")
    parser.add_argument("--cached", action="store_true",
                        help="build nothing: print nothing if it was not built before")
    parser.add_argument("--source", type=pathlib.Path, metavar="DIRECTORY",
                        help="without a network: Abseil's source, which contains absl/")


def _fetch(directory):
    """Returns the directory of Abseil's source, fetched into `directory`."""
    requirement = directory / "requirements.txt"
    requirement.write_text(f"{_PACKAGE} --hash=sha256:{_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check",
               "--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes",
               "--dest", directory, "--requirement", requirement]
    done = subprocess.run(list(map(str, command)), check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    archive = next(directory.glob("*.tar.gz"), None)
    if done.returncode or not archive:
        lines = done.stdout.strip().splitlines()[-3:]
        raise Error(f"pip cannot fetch the source of {_PACKAGE}, which contains "
                    "Abseil's. Is there a network? --source names a directory with "
                    "Abseil's source.\n" + "\n".join(lines))
    with tarfile.open(archive) as sources:
        inner = [member for member in sources
                 if "/third_party/abseil-cpp/absl/" in member.name and
                 (member.isfile() or member.isdir()) and ".." not in member.name]
        sources.extractall(directory, inner)
    return next(directory.glob("*/third_party/abseil-cpp"))


def _groups(source):
    """Yields the name of an object, its optimization, and the files to compile together
    for it."""
    files = {optimization: [] for optimization in _PARTS}
    for optimization, parts in _PARTS.items():
        (other,) = _PARTS.keys() - {optimization}
        for part in parts:
            for path in sorted((source / "absl" / part).rglob("*.cc")):
                if not _NOT_COMPILED.search(path.name):
                    files[other if path.name in _APART else optimization].append(path)
    for optimization, together in files.items():
        if together:
            yield _PARTS[optimization][0], optimization, together


def _compile(source, objects, compiler):
    """Compiles all files, and returns the paths of the objects."""
    groups = list(_groups(source))
    if not groups:
        raise Error(f"{source} does not contain the source of Abseil.")
    total, done = sum(len(files) for *_, files in groups), 0

    def compile_group(name, optimization, files):
        """Returns the objects of files that are compiled together, if possible."""
        unit, result = objects / f"{name}.cc", objects / f"{name}.o"
        unit.write_text("".join(f'#include "{path}"\n' for path in files))
        command = [*compiler, *_FLAGS, optimization, f"-I{source}", "-c", unit, "-o",
                   result]
        ran = subprocess.run(list(map(str, command)), check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not ran.returncode:
            return [result]
        if len(files) == 1:
            raise Error(f"{shlex.join(compiler)} cannot compile {files[0].name}:\n"
                        f"{ran.stdout.strip()[-2000:]}")
        # The files of another release of Abseil may define a name twice.
        return [one for index, path in enumerate(files)
                for one in compile_group(f"{name}_{index}", optimization, [path])]

    def show():
        if not sys.stderr.isatty():
            if not done:
                print("tfplug abseil: building Abseil, once on this machine, in half a "
                      "minute of processor time", file=sys.stderr, flush=True)
        else:
            print(f"\rtfplug abseil: {done} of {total} files",
                  end="\n" if done == total else "", file=sys.stderr, flush=True)

    results = []
    show()
    processors = len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(processors) as pool:
        running = {pool.submit(compile_group, *group): len(group[-1]) for group in groups}
        for finished in concurrent.futures.as_completed(running):
            results += finished.result()
            done += running[finished]
            show()
    return sorted(results)


def _install(source, objects, root, compiler):
    """Writes the archive, the headers, and the files for pkg-config, CMake and Bazel."""
    libraries, headers = root / "lib", root / "include"
    (libraries / "pkgconfig").mkdir(parents=True)
    (libraries / "cmake/absl").mkdir(parents=True)
    archiver = subprocess.run([*compiler, "-print-prog-name=ar"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    subprocess.run([archiver, "rcs", libraries / "libabsl.a", *objects], check=True)
    for path in (source / "absl").rglob("*"):
        if path.suffix in (".h", ".inc"):
            target = headers / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    # The types are those of C++17, whatever standard the plug-in is compiled with.
    options = headers / "absl/base/options.h"
    text = re.sub(r"(#define ABSL_OPTION_USE_STD_\w+) 2", r"\1 1", options.read_text())
    options.write_text(text.replace("USE_STD_ORDERING 1", "USE_STD_ORDERING 0"))
    release = _VERSION.split(".", maxsplit=1)[0]
    for name in _MODULES:
        (libraries / f"pkgconfig/absl_{name}.pc").write_text(
            _PKG_CONFIG.format(name=name, release=release))
    (libraries / "cmake/absl/abslConfig.cmake").write_text(
        _CMAKE.format(modules=" ".join(_MODULES)))
    for name, text in _BAZEL.items():
        (root / name).write_text(text)
    for name, package in _MODULES.items():
        (root / "absl" / package).mkdir(parents=True, exist_ok=True)
        with open(root / "absl" / package / "BUILD.bazel", "a", encoding="utf-8") as file:
            file.write(_BAZEL_PART.format(name=name))


def _compiler():
    return shlex.split(os.environ.get("CXX", "c++"))


def _name():
    """Returns the name of the build in the cache: with a compiler for another processor,
    as in CXX=aarch64-linux-gnu-g++, that of its processor."""
    try:
        machine = subprocess.run([*_compiler(), "-dumpmachine"], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except (OSError, subprocess.CalledProcessError):
        return "abseil"
    processor = machine.split("-")[0].strip()
    return "abseil" if processor == os.uname().machine else f"{processor}-abseil"


def find():
    """Returns the prefix of the Abseil in the cache, or None."""
    return kept_build.find(kept_build.cache(), _name(), _RECIPE)


def build(source=None):
    """Builds Abseil, unless it is in the cache, and returns its prefix."""
    with kept_build.locked(kept_build.cache(), _name()):
        return find() or _build(source)


def _build(source):
    compiler = _compiler()
    # Each recipe has its own place: another tfplug's projects go on with theirs.
    key = hashlib.sha256(_RECIPE.encode()).hexdigest()[:8]
    prefix = kept_build.cache() / f"{_name()}-{_VERSION}-{key}"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        source = source or _fetch(directory)
        objects = directory / "objects"
        objects.mkdir()
        try:
            built = _compile(source, objects, compiler)
        except FileNotFoundError as error:
            raise Error(f"there is no compiler {compiler[0]}; CXX names one.") from error
        root = pathlib.Path(f"{directory / 'stage'}{prefix}")
        _install(source, built, root, compiler)
        kept_build.keep(directory / "stage", prefix, _RECIPE)
    return prefix


def run(options):
    try:
        prefix = find() if options.cached else build(options.source)
    except Error as error:
        print(f"tfplug abseil: {error}", file=sys.stderr)
        return 1
    if prefix:
        print(prefix / "lib/pkgconfig" if options.pkgconfigdir else prefix)
    return 0


if __name__ == "__main__":
    own = argparse.ArgumentParser(description=__doc__)
    _add_arguments(own)
    sys.exit(run(own.parse_args()))
