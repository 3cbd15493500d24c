# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs TensorFlow's side of tfplug check and tfplug run. The source is in
check_host/; nothing of it is built before a user needs it."""

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

try:
    from tfplug import abseil, check_symbols, doctor_causes, kept_build
except ImportError:  # Run from the source tree.
    import abseil
    import check_symbols
    import doctor_causes
    import kept_build

_HERE = pathlib.Path(__file__).resolve().parent
_SOURCE = next(path for path in (_HERE / "check_host", _HERE / "../check_host")
               if path.is_dir())
INCLUDE = next(path for path in (_HERE / "include", _HERE / "../../include")
                if path.is_dir())
_FLAGS = ("-std=c++17", "-O0", "-w", "-fvisibility=hidden", "-pthread",
          "-DTFPLUG_TESTING_EXPORT_C_API")
_KEPT = 5  # builds of one kind
# Writes a TensorFlow's release and the definitions of its ops, without its Python code.
_WRITE_OPS = """
import ctypes, pathlib, sys
for name in "framework", "cc":
    library = ctypes.CDLL(f"{sys.argv[1]}/libtensorflow_{name}.so.2", ctypes.RTLD_GLOBAL)
library.TF_Version.restype = ctypes.c_char_p
library.TF_GetAllOpList.restype = ctypes.POINTER(ctypes.c_size_t)
data, size = library.TF_GetAllOpList()[:2]
pathlib.Path(sys.argv[2], "ops").write_bytes(ctypes.string_at(data, size))
pathlib.Path(sys.argv[2], "release").write_bytes(library.TF_Version())
"""

# A symbol that the program lacks, and that TensorFlow or Python has.
_LACKS = re.compile(r"undefined symbol: (_?Py\w+|TF_\w+|_Z[A-Z]*[a-z]*K?(?:10tensorflow|3tsl|3xla|"
                    r"6google8protobuf|4absl)\w+)")
_STEP = "\x1e\n"  # in a log: see check_host/report.h
# How processes end that lack one: the loader's status, an exception's and an abort.
_ENDS_UNBOUND = (127, 1, -signal.SIGABRT)


class Error(Exception):
    """Says why a check cannot run here, and what to do."""


def _recipe(compiler, prefix):
    digest = hashlib.sha256()
    for path in sorted([*_SOURCE.glob("*"), *(INCLUDE / "tfplug").rglob("*.h")]):
        digest.update(path.read_bytes())
    return f"{shlex.join([*compiler, *_FLAGS])} {prefix.name} {digest.hexdigest()}"


def _compile(command):
    try:
        done = subprocess.run(list(map(str, command)), check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError as error:
        raise Error(f"there is no compiler {command[0]}; CXX names one.") from error
    if done.returncode:
        raise Error(f"{shlex.join(map(str, command))} fails:\n{done.stdout[-2000:]}")


def keep(name, recipe, build):
    """Returns the directory of a kept build, built by build(directory) if it must be."""
    found = kept_build.find(kept_build.cache(), name, recipe)
    if found:
        return found
    key = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    prefix = kept_build.cache() / f"{name}-{key}"
    with tempfile.TemporaryDirectory() as stage:
        directory = pathlib.Path(f"{stage}{prefix}")
        directory.mkdir(parents=True)
        build(directory)
        kept_build.keep(stage, prefix, recipe)
    builds = sorted(kept_build.cache().glob(f"{name}-*"), key=os.path.getmtime)
    for old in builds[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return prefix


@functools.lru_cache
def build(say, name="check"):
    """Returns the path of the program for tfplug check or tfplug run. say(text) reports
    what takes time."""
    source = _SOURCE / {"check": "main.cc", "run": "run.cc"}[name]
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    try:
        prefix = abseil.build()
    except abseil.Error as error:
        raise Error(str(error)) from error

    def compile_program(directory):
        say(f"compiling TensorFlow's side of tfplug {name}, once")
        built = directory / "main.o"
        _compile([*compiler, *_FLAGS, f"-I{INCLUDE}", f"-I{prefix}/include", "-c",
                  source, "-o", built])
        _compile([*compiler, "-rdynamic", "-pthread", built, f"-L{prefix}/lib", "-labsl",
                  "-ldl", "-o", directory / f"{name}_host"])
        built.unlink()
    kept = keep(f"{name}-host", _recipe(compiler, prefix), compile_program)
    return kept / f"{name}_host"


def _empty_libraries(names):
    """Returns libraries of these names without contents."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))

    def compile_empty(directory):
        for name in names:
            _compile([*compiler, "-shared", "-fPIC", "-x", "c", os.devnull,
                      f"-Wl,-soname,{name}", "-o", directory / name])
    kept = keep("check-empty", shlex.join([*compiler, *names]), compile_empty)
    return [kept / name for name in names]


def installed_ops():
    """Returns the installed TensorFlow's release, such as 2.21, and the file with the
    definitions of its ops; "" and None if it cannot be asked, or is newer than this file's
    structs."""
    directory = check_symbols.tensorflow_directory()
    if directory is None:
        return "", None
    try:
        library = (directory / "libtensorflow_framework.so.2").stat()
    except OSError:
        return "", None

    def write(folder):
        done = subprocess.run([sys.executable, "-c", _WRITE_OPS, directory, folder],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Error(done.stdout.decode(errors="replace")[-300:])
    try:
        kept = keep("tensorflow-ops", f"{directory} {library.st_size} {library.st_mtime}",
                    write)
    except Error:
        return "", None
    release = check_symbols.release_of((kept / "release").read_text())
    if release > check_symbols.newest():
        return "", None
    return ".".join(map(str, release)), kept / "ops"


def loading(library):
    """Returns the options with which the program loads a plug-in: libraries to load
    first, and whether C++ symbols of TensorFlow may be missing."""
    needs = check_symbols.Needs(library)
    directory = check_symbols.tensorflow_directory()
    first, options = [], []
    if needs.cxx and directory is not None and not check_symbols.missing(needs, directory):
        first = [path for path in (directory / "libtensorflow_framework.so.2",
                                   directory / "libtensorflow_cc.so.2") if path.exists()]
    elif needs.cxx:
        options = ["--lazy"]
    present = {path.name for path in first}
    empty = [name for name in needs.tensorflow_libraries() if name not in present]
    first += _empty_libraries(empty) if empty else []
    for path in first:
        options += ["--first", path]
    return options


def _cause(log):
    """Returns the last lines of the step in which a process died, without a stack."""
    lines = [line.strip() for line in log.rpartition(_STEP)[2].splitlines() if line.strip()]
    return " ".join(lines[-2:])[-300:]


def _seconds_without_processor(process):
    """Returns for how long that thread of a process which waited most was ready to run
    while others had the processors, 0 where the kernel does not tell."""
    waited = [0]
    for path in pathlib.Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has ended
            waited.append(int(path.read_text().split()[1]))
    return max(waited) / 1e9


def run(command, seconds, variables, places=()):
    """Runs a check, a command of the program, in a process of its own. Returns (level,
    text) pairs, also of what a plug-in made with tfplug logs in these C functions.
    `seconds` do not count while the process waits for a processor."""
    environment = {**os.environ, **variables}
    child = subprocess.Popen(list(map(str, command)), text=True, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, errors="replace",
                             start_new_session=True)
    lines, start = [], time.monotonic()
    begin = start

    def read_lines():
        for line in child.stdout:
            lines.append((line, time.monotonic()))
    logs = []
    readers = [threading.Thread(target=read_lines),
               threading.Thread(target=lambda: logs.append(child.stderr.read()))]
    for reader in readers:
        reader.start()
    timed_out, rest = False, seconds
    while child.poll() is None and not timed_out:
        try:
            child.wait(rest)
        except subprocess.TimeoutExpired:
            rest = seconds + _seconds_without_processor(child.pid) - time.monotonic() + start
            timed_out = rest < 0.1
    if timed_out:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    end = time.monotonic()
    for reader in readers:
        reader.join(5)
    if any(reader.is_alive() for reader in readers):  # a child of it has the pipes
        with contextlib.suppress(ProcessLookupError):  # unless it has ended just now
            os.killpg(child.pid, signal.SIGKILL)
        for reader in readers:
            reader.join()
    child.stdout.close()
    child.stderr.close()
    log = logs[0]
    findings, step = [], "the start"
    for line, at in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue  # Cut off by a crash.
        if found["level"] == "step":
            step, begin = found["text"], at
        else:
            findings.append((found["level"], found["text"]))
    said = doctor_causes.logged(log.replace(_STEP, ""), *places)
    findings += [(level, f"{text}. {advice}") for level, text, advice in said if places]
    if timed_out and end - begin < seconds / 2:  # the steps before took longer
        findings.append(("skipped", f"ended after {seconds:g} s at {step}, which had "
                         f"{end - begin:.1f} s; increase --seconds"))
    elif timed_out:
        findings.append(("error", f"hangs: {step} has not ended after {seconds:g} s"))
    elif child.returncode in _ENDS_UNBOUND and _LACKS.search(log):
        findings.append(("skipped", f"{step} needs {_LACKS.search(log)[1]}, which "
                         "only TensorFlow in Python has"))
    elif child.returncode < 0:
        findings.append(("error", f"crashes with {signal.Signals(-child.returncode).name} "
                         f"in {step}. {_cause(log)}".strip()))
    elif child.returncode:
        findings.append(("error", f"ends the process with status {child.returncode} in "
                         f"{step}. {_cause(log)}".strip()))
    if not places and any(level == "error" for level, _ in findings):
        findings += [("note", f"the plug-in logs {text}. {advice}")
                     for _, text, advice in said[-2:]]
    return findings


if __name__ == "__main__":
    print(build(lambda text: print(text, file=sys.stderr)))
