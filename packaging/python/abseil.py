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
_PARTS = ("base", "container", "crc", "debugging", "hash", "numeric", "profiling", "status",
          "strings", "synchronization", "time")
_NOT_COMPILED = re.compile(
    r"(test|benchmark|testing|listener|matchers|scoped_set_env|print_hash_of)")
# The files are compiled together, which takes a fifth of the time. In these, a name that
# another file defines as well is renamed.
_RENAMED = {"numbers.cc": "kAsciiToInt", "poison.cc": "GetPageSize", "time.cc": "unix_epoch",
            "time_zone_posix.cc": "kDigits", "utf8_for_code_point.cc": "kMaxCodePoint"}
# The names by which pkg-config, CMake and Bazel know Abseil's parts, and Bazel's packages:
# all are one archive.
_MODULES = {"any_invocable": "functional", "base": "base", "cord": "strings",
            "flat_hash_map": "container", "flat_hash_set": "container", "hash": "hash",
            "inlined_vector": "container", "int128": "numeric", "span": "types",
            "status": "status", "statusor": "status", "str_format": "strings",
            "strings": "strings", "synchronization": "synchronization", "time": "time"}
# The aliases of statusor_internal.h.
_CONDITION = re.compile(r"^using (\w+) =\s+(absl::(?:con|dis)junction<[^;]*>);$",
                        re.MULTILINE)
# Most of the code formats texts and times or reports crashes, and a launch calls little
# of the rest: -Og takes two thirds of the time of -O1.
_FLAGS = ("-std=c++17", "-DNDEBUG", "-w", "-Og", "-fPIC", "-fvisibility=hidden",
          "-fvisibility-inlines-hidden", "-ffunction-sections", "-fdata-sections")
# Change it with what is built: another recipe's build is not used.
_RECIPE = f"8: Abseil {_VERSION} {' '.join(_FLAGS)}"

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
        "once, in ~/.cache/tfplug, and prints its prefix. pip fetches the source. A wheel "
        "of tfplug for one processor contains it. CXX names the compiler, which may be one "
        "for another processor.")
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


def _unit(files):
    """Returns the text of a file that includes `files`."""
    lines = []
    for path in files:
        name = _RENAMED.get(path.name) if len(files) > 1 else None
        lines += [f'#include "{path}"'] if name is None else [
            f"#define {name} {name}_of_{path.stem}", f'#include "{path}"', f"#undef {name}"]
    return "".join(f"{line}\n" for line in lines)


def _compile(source, objects, compiler):
    """Compiles all files, and returns the paths of the objects."""
    files = [path for part in _PARTS for path in sorted((source / "absl" / part).rglob("*.cc"))
             if not _NOT_COMPILED.search(path.name)]
    if not files:
        raise Error(f"{source} does not contain the source of Abseil.")

    def compile_together(name, files):
        """Returns the object of some files, or None if they cannot be compiled together."""
        unit, result = objects / f"{name}.cc", objects / f"{name}.o"
        unit.write_text(_unit(files))
        command = [*compiler, *_FLAGS, f"-I{source}", "-c", unit, "-o", result]
        ran = subprocess.run(list(map(str, command)), check=False, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if ran.returncode and len(files) == 1:
            raise Error(f"{shlex.join(compiler)} cannot compile {files[0].name}:\n"
                        f"{ran.stdout.strip()[-2000:]}")
        return None if ran.returncode else result

    print("tfplug abseil: building Abseil, once on this machine, in about half a "
          "minute", file=sys.stderr, flush=True)
    together = compile_together("absl", files)
    if together:
        return [together]
    # The files of another release of Abseil may define other names twice.
    print(f"tfplug abseil: building its {len(files)} files one by one", file=sys.stderr,
          flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(
            lambda index: compile_together(f"absl_{index}", [files[index]]),
            range(len(files))))


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
    # A class that derives from a condition is one name to the compiler, where an alias is
    # all of its parts: a StatusOr takes a fifth of the time.
    conditions = headers / "absl/status/internal/statusor_internal.h"
    conditions.write_text(_CONDITION.sub(r"struct \1 : \2 {};", conditions.read_text()))
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


def _processor():
    """Returns the processor for which the compiler compiles: with
    CXX=aarch64-linux-gnu-g++, another one than this machine's."""
    try:
        machine = subprocess.run([*_compiler(), "-dumpmachine"], check=True, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except (OSError, subprocess.CalledProcessError):
        return os.uname().machine
    return machine.split("-")[0].strip()


def _name():
    """Returns the name of the build in the cache."""
    processor = _processor()
    return "abseil" if processor == os.uname().machine else f"{processor}-abseil"


def _links(prefix):
    """Returns whether the compiler links the libraries of `prefix` into a plug-in: one with
    another standard library, or a much older one, does not."""
    libraries = prefix / "lib"
    with tempfile.TemporaryDirectory() as directory:
        command = [*_compiler(), "-shared", "-fPIC", "-x", "c++", "-", "-x", "none",
                   "-o", f"{directory}/plugin.so", "-Wl,--no-undefined",
                   "-Wl,--whole-archive", libraries / "libtfplug.a",
                   "-Wl,--no-whole-archive", libraries / "libabsl.a", "-ldl", "-pthread"]
        try:
            done = subprocess.run(list(map(str, command)), check=False, text=True,
                                  input='extern "C" void TF_InitKernel() {}',
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except OSError:
            return False  # The build says that there is no compiler.
    return done.returncode == 0


def _packaged():
    """Returns the prefix in a wheel for the compiler's processor, which has an Abseil and
    tfplug's library, compiled, or None."""
    prefix = pathlib.Path(__file__).resolve().parent / "compiled" / _processor()
    if not prefix.is_dir():
        return None
    if _links(prefix):
        return prefix
    print(f"tfplug abseil: {shlex.join(_compiler())} cannot link the compiled library of "
          "this package, so projects compile it", file=sys.stderr)
    return None


def _cached():
    """Returns the prefix of the Abseil in the cache, or None."""
    return kept_build.find(kept_build.cache(), _name(), _RECIPE)


def find():
    """Returns the prefix of the Abseil in the package or in the cache, or None."""
    return _packaged() or _cached()


def build(source=None):
    """Builds Abseil, unless it is in the cache, and returns its prefix."""
    packaged = None if source else _packaged()
    if packaged:
        return packaged
    with kept_build.locked(kept_build.cache(), _name()):
        return _cached() or _build(source)


def _build(source):
    compiler = _compiler()
    # Each recipe has its own place: another tfplug's projects go on with theirs.
    key = hashlib.sha256(_RECIPE.encode()).hexdigest()[:8]
    prefix = kept_build.cache() / f"{_name()}-{_VERSION}-{key}"
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        source = source.resolve() if source else _fetch(directory)
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
