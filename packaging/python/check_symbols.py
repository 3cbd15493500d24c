# SPDX-License-Identifier: Apache-2.0
"""What tfplug check reads from a plug-in's file, without loading it: the symbols that
it exports and needs, its libraries, and the releases of TensorFlow that have them."""

import functools
import importlib.util
import json
import pathlib
import re
import subprocess

try:
    from tfplug.doctor_causes import ENTRY_POINTS, file_problem
except ImportError:  # Run from the source tree.
    from doctor_causes import ENTRY_POINTS, file_problem

_HERE = pathlib.Path(__file__).resolve().parent
_HISTORY = next(path for path in (_HERE / "abi_history.json",
                                  _HERE / "../../codegen/abi_history.json")
                if path.exists())
# Abseil's inline namespace in libtensorflow_framework.so.2, from the first release
# that has it: `nm -D` of each wheel of tensorflow-cpu.
_ABSEIL = {(2, 6): "lts_20210324", (2, 9): "lts_20211102", (2, 10): "lts_20220623",
           (2, 13): "lts_20230125", (2, 16): "lts_20230802", (2, 20): "lts_20250127",
           (2, 21): "lts_20250814", (2, 22): "lts_20260526"}
# Functions that pywrap exported before there was a header for plug-ins with them.
_PYWRAP_BEFORE = {(2, 11): ("TF_NewBuffer", "TF_NewBufferFromString",
                            "TF_DeleteBuffer", "TF_GetBuffer")}
# The parts of a wheel in which TensorFlow's functions are; a library brings those that
# it needs itself.
_BRINGS = {"libtensorflow_framework.so.2": {"framework"},
           "libtensorflow_cc.so.2": {"framework", "cc"},
           "_pywrap_tensorflow_internal.so": {"framework", "cc", "pywrap"}}
# From this release on, `import tensorflow` leaves its libraries in the global scope.
_GLOBAL_SINCE = (2, 19)
_CC_SINCE = (2, 12)
_PYWRAP_BEFORE_COMMON = (2, 20)  # Its code is in lib_pywrap_tensorflow_common.so then.
_FOREIGN = {"libprotobuf": "6google8protobuf", "Abseil": "4absl", "LLVM": "4llvm",
            "MLIR": "4mlir", "TensorFlow": "10tensorflow|3tsl|3xla"}
_NAMESPACES = re.compile("_Z[A-Z]*[a-z]*(K)?(" + "|".join(_FOREIGN.values()) + ")")


def _readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          errors="replace").stdout


def release_of(text):
    """Returns (2, 15) for "2.15.1"."""
    return tuple(int(part) for part in text.split(".")[:2])


@functools.lru_cache
def _history():
    return json.loads(_HISTORY.read_text())


def releases():
    """Returns the versions that the history of the C API has, without nightlies."""
    return [text for text in _history()["versions"] if "dev" not in text]


def newest():
    """Returns the newest release that the history has, also a nightly: (2, 23)."""
    return max(map(release_of, _history()["versions"]))


_MACHO = (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")  # of one or several processors


def _output(*command):
    try:
        return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, errors="replace").stdout
    except OSError:
        return ""


class Library:
    """A shared object's dynamic section and symbols."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        with open(path, "rb") as file:
            self.is_macho = file.read(4) in _MACHO
        if self.is_macho:
            self._read_macho()
        else:
            self._read_elf()

    def _read_macho(self):
        """Reads a library for macOS with LLVM's tools, if they are here."""
        path = str(self.path)
        self.header, self.has_relocated_text = "", False
        self.search, self.unique = [], set()
        listed = _output("llvm-objdump", "--macho", "--dylibs-used", path)
        self.needed = [pathlib.PurePath(each).name
                       for each in re.findall(r"^\t(\S+) \(", listed, re.M)]

        def names(option):
            words = (line.split() for line in
                     _output("llvm-nm", "--extern-only", option, path).splitlines())
            return {each[-1].removeprefix("_") for each in words if each}
        self.defined, self.undefined = names("--defined-only"), names("--undefined-only")

    def _read_elf(self):
        path = self.path
        self.header = _readelf("-h", path)
        dynamic = _readelf("-d", path)
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
        self.has_relocated_text = "(TEXTREL)" in dynamic
        paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic)
        self.search = [re.sub(r"\$\{?ORIGIN\}?", str(self.path.parent), each)
                       for each in ":".join(paths).split(":") if each]
        self.defined, self.undefined, self.unique = set(), set(), set()
        for line in _readelf("--dyn-syms", path).splitlines():
            words = line.split()
            if len(words) < 8 or not words[0].endswith(":"):
                continue
            name = words[7].split("@")[0]
            if words[6] == "UND":
                if words[4] != "WEAK":
                    self.undefined.add(name)
            elif words[5] in ("DEFAULT", "PROTECTED") and words[4] != "LOCAL":
                self.defined.add(name)
                if words[4] == "UNIQUE":
                    self.unique.add(name)

    @property
    def is_shared_object(self):
        return "DYN (Shared object" in self.header

    def neighbours(self):
        """Returns the libraries of its own package that it needs, and theirs."""
        found, todo = {}, [self]
        while todo:
            library = todo.pop()
            for name in library.needed:
                for directory in library.search:
                    path = pathlib.Path(directory) / name
                    if name not in found and name not in _BRINGS and path.is_file():
                        found[name] = Library(path)
                        todo.append(found[name])
        return found


class Needs:
    """What a plug-in and the libraries of its package need from elsewhere."""

    def __init__(self, library):
        inner = library.neighbours()
        parts = [library, *inner.values()]
        defined = set().union(*(part.defined for part in parts))
        undefined = set().union(*(part.undefined for part in parts)) - defined
        self.libraries = {name for part in parts for name in part.needed} - set(inner)
        self.functions = {name for name in undefined if name in _history()["exported_by"]}
        self.cxx = {name for name in undefined if _NAMESPACES.match(name)}

    def tensorflow_libraries(self):
        return sorted(self.libraries & set(_BRINGS))


def tensorflow_directory():
    """Returns the directory of the TensorFlow that is installed, or None."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = pathlib.Path(spec.submodule_search_locations[0])
    return found if (found / "libtensorflow_framework.so.2").exists() else None


def missing(needs, directory):
    """Returns the C++ symbols that the TensorFlow in `directory` lacks."""
    exported = set()
    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        if (directory / name).exists():
            exported |= Library(directory / name).defined
    return needs.cxx - exported


def _readable(symbol):
    """Returns a symbol as C++ spells it, without the arguments, if c++filt is there."""
    text = re.sub(r"\(.*", "", _output("c++filt", symbol).strip()) or symbol
    return text if len(text) <= 100 else text[:97] + "..."


def _some(names):
    names = sorted(names)
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest


def _exporters(name, release):
    """Returns the parts of a release that export a function."""
    for entry in _history()["exported_by"][name]:
        if release_of(entry["since"]) <= release <= release_of(entry["until"]):
            return set(entry["libraries"])
    return {"pywrap"} if any(release < before and name in names
                             for before, names in _PYWRAP_BEFORE.items()) else set()


def why_not(needs, version):
    """Returns why a release does not load the plug-in, or ""."""
    release = release_of(version)
    lacks = set()
    invisible = set()
    brought = set().union(*(_BRINGS[name] for name in needs.tensorflow_libraries()))
    for name in needs.functions:
        exporters = _exporters(name, release)
        if not exporters:
            lacks.add(name)
        elif release < _GLOBAL_SINCE and not brought & exporters:
            invisible.add(name)
    if lacks:
        return f"it lacks {_some(lacks)}"
    if "libtensorflow_cc.so.2" in needs.libraries and release < _CC_SINCE:
        return "it has no libtensorflow_cc.so.2"
    if ("_pywrap_tensorflow_internal.so" in needs.libraries and
            release >= _PYWRAP_BEFORE_COMMON):
        return "it loads no library named _pywrap_tensorflow_internal.so"
    if invisible:
        return (f"{_some(invisible)} cannot be seen: name the libraries "
                "libtensorflow_cc.so.2 and libtensorflow_framework.so.2 as needed, or "
                "look the functions up with dlsym")
    wanted = {found for name in needs.cxx for found in re.findall(r"lts_\d{8}", name)}
    abseil = max((key for key in _ABSEIL if key <= release), default=None)
    if wanted and abseil and wanted != {_ABSEIL[abseil]}:
        return f"its Abseil is {_ABSEIL[abseil]}, not {_some(wanted)}"
    return ""


def loading(library):
    """Returns the releases, such as 2.15, that have what the plug-in needs."""
    needs = Needs(library)
    return [".".join(version.split(".")[:2]) for version in releases()
            if not why_not(needs, version)]


# ---- The checks: each yields (level, text) --------------------------------------

def check_file(library):
    if library.is_macho:
        if not library.defined:
            yield "error", ("is a library for macOS, and its symbols cannot be read: "
                            "apt-get install llvm")
        else:
            yield "skipped", "is a library for macOS: only its symbols are checked"
        return
    problem, _ = file_problem(library.path)
    # Of a library for another processor, the symbols are checked.
    if problem and "this machine" not in problem:
        yield "error", problem
    elif not library.is_shared_object:
        yield "error", "is an ELF file, but not a shared object"


def check_entry_points(library):
    found = [name for name in ENTRY_POINTS if name in library.defined]
    if "TF_InitGraphPlugin" in found and "TF_InitGraph" not in found:
        yield "error", ("exports TF_InitGraphPlugin, the name in the RFC, but not "
                        "TF_InitGraph, which TensorFlow looks up: its passes never run")
    elif not found:
        yield "error", ("exports none of TensorFlow's entry points (" +
                        ", ".join(ENTRY_POINTS) + "): nothing happens")
    else:
        yield "note", "exports " + ", ".join(found)


def check_exports(library):
    for name, pattern in _FOREIGN.items():
        found = [each for each in library.defined
                 if re.match(f"_Z[A-Z]*[a-z]*K?({pattern})", each)]
        if found:
            yield "warning", (f"exports {len(found)} symbols of {name}, such as "
                              f"{_readable(min(found))}: the loader may bind them to another "
                              "library's code, or another's to these")
    ours = [each for each in library.unique
            if not re.match(r"_Z\w*(St|9__gnu_cxx)", each)]
    if ours:
        yield "warning", (f"exports {len(ours)} unique symbols (STB_GNU_UNIQUE), such as "
                          f"{_readable(min(ours))}: one variable for all plug-ins in the process, "
                          "whatever dlopen's flags are")
    others = library.defined - set(ENTRY_POINTS) - {"_init", "_fini"}
    if others:
        yield "note", f"exports {len(others)} symbols besides its entry points"


@functools.lru_cache
def _system_libraries():
    """Returns the names that the loader finds."""
    try:
        text = subprocess.run(["/sbin/ldconfig", "-p"], check=False, text=True,
                              stdout=subprocess.PIPE).stdout
    except OSError:
        return None
    return set(re.findall(r"^\s+(\S+) \(", text, re.M))


def check_libraries(library):
    needs = Needs(library)
    known = None if library.is_macho else _system_libraries()
    for name in sorted((needs.libraries | set(library.neighbours())) - set(_BRINGS)):
        if re.match(r"lib(protobuf|absl_|LLVM|MLIR)", name):
            yield "warning", (f"needs {name}, whose symbols TensorFlow exports too: the "
                              "loader may give the plug-in TensorFlow's")
    for name in sorted(needs.libraries - set(_BRINGS)):
        if known and name not in known and not name.startswith("ld-linux"):
            yield "error", f"needs {name}, which is not on this machine"
    if library.has_relocated_text:
        yield "warning", "has relocations in its code: compile it with -fPIC"
    absolute = [path for path in library.search
                if path.startswith("/") and not pathlib.Path(path).is_dir()]
    if absolute:
        yield "note", "searches directories that do not exist here: " + ", ".join(absolute)
    yield "note", "needs " + (", ".join(sorted(needs.libraries)) or "no library")


def check_releases(library):
    needs = Needs(library)
    versions = releases()
    reasons = {version: why_not(needs, version) for version in versions}
    loads = "may load: C++ symbols are not recorded" if needs.cxx else "loads"
    for version, reason in reasons.items():
        yield "note", f"{version}: " + (f"does not load: {reason}" if reason else loads)
    if library.is_macho:
        yield "note", "these are the functions of the releases for Linux"
    if needs.cxx:
        yield "note", (f"needs {len(needs.cxx)} C++ symbols of TensorFlow, such as "
                       f"{_readable(min(needs.cxx))}, which differ from release to release")
    if all(reasons.values()):
        yield "error", f"loads in no release: {reasons[versions[-1]]}"
    directory = None if library.is_macho else tensorflow_directory()
    lacks = missing(needs, directory) if directory and needs.cxx else set()
    if directory and needs.cxx and not lacks:
        yield "note", "the TensorFlow that is installed has all of these"
    if lacks:
        yield "error", ("does not load in the TensorFlow that is installed, which lacks "
                        f"{_some(lacks)}")
