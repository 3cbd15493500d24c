# SPDX-License-Identifier: Apache-2.0
"""Runs functions of a test file in processes of their own, with stock TensorFlow
and the plug-in under test: TensorFlow keeps its devices for as long as a process
lives, and some tests crash it.

    result = harness.run(function, *arguments, env={"CPU_SIM_DEVICES": "1"})
    results = harness.run_each(function, cases)    # many, one after the other
    results = harness.run_together(function, cases, envs)  # each in its own process
    process = harness.run_script(path, *arguments)  # a tool, as subprocess.run would

`function` must be at the top level of a test file; its arguments and result must be
serializable as JSON. To save the five seconds of importing TensorFlow, a child is
forked from a process that has imported TensorFlow, with the variables of `env` that
TensorFlow reads when it starts, but loaded no plug-in. If `env` has PYTHONPATH, the
child is a new process instead.
"""

import atexit
import contextlib
import dataclasses
import faulthandler
import functools
import gc
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import json
import os
import pathlib
import runpy
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import traceback
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools/lib"))
import installed_plugins
TIMEOUT_SECONDS = 400  # importing TensorFlow alone takes 3 to 30 seconds


def build_path():
    """Returns the directory in which the plug-ins were built."""
    return pathlib.Path(os.environ.get("TFPLUG_BUILD") or ROOT / "build/gcc")


def plugin_path():
    """Returns the path of the plug-in under test: $TFPLUG_CPU_SIM, or the default
    build's."""
    named = os.environ.get("TFPLUG_CPU_SIM")
    if named:
        return pathlib.Path(named).resolve()
    return build_path() / "examples/cpu_sim/libtfplug_cpu_sim.so"


def small_plugin_path(name):
    """Returns the path of a plug-in from plugins/. TFPLUG_TEST_PLUGINS names the folder
    of the built plug-ins."""
    build = pathlib.Path(os.environ.get("TFPLUG_BUILD") or ROOT / "build/gcc")
    folder = os.environ.get("TFPLUG_TEST_PLUGINS") or (
        build / "tests/tensorflow/plugins")
    return pathlib.Path(folder).resolve() / f"libtfplug_{name}.so"


def without_xla_on_cpu(device):
    """Returns arguments of a Keras model's compile(): on the CPU, whose results others are
    compared with, XLA would take longer than the training; elsewhere Keras decides."""
    return {"jit_compile": False} if "CPU" in device else {}


def release():
    """Returns the release of the installed TensorFlow, such as (2, 21)."""
    [package] = set(importlib.metadata.packages_distributions()["tensorflow"])
    return tuple(int(n) for n in importlib.metadata.version(package).split(".")[:2])


def lets_kernels_update_variables():
    """Returns whether TensorFlow exports the functions that such a kernel needs."""
    return not (2, 19) <= release() <= (2, 21)


def keras_version():
    """Returns the version of Keras, which is keras-nightly for candidates of TensorFlow."""
    return importlib.metadata.version(importlib.metadata.packages_distributions()["keras"][0])


def package_environment(place):
    """Makes a virtual environment with this TensorFlow and the Python package, with the
    library that was compiled for the plug-ins. Returns its Python."""
    venv.create(place, symlinks=True)
    python = place / "bin/python"
    site = next(place.glob("lib*/python*/site-packages"))
    (site / "tensorflow.pth").write_text(sysconfig.get_path("purelib"))
    path = f"{place}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"

    def run_python(*command):
        done = subprocess.run(
            [sys.executable, "-B", *command], check=False, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, "PATH": path})
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout.strip()

    offline = ("--no-deps", "--no-index")
    run_python("-m", "pip", "wheel", "-q", *offline, "--no-build-isolation",
               "-w", place / "wheels", ROOT)
    wheel = run_python(
        ROOT / "tools/lib/compiled_wheel.py", next((place / "wheels").iterdir()), build_path(),
        run_python(ROOT / "packaging/python/abseil.py", "--cached"))
    run_python("-m", "pip", "-q", "--python", python, "install", *offline, wheel)
    return python


@dataclasses.dataclass
class Result:
    """The result of a child process, or of one of its cases."""

    value: object  # the function's result; None if it did not return
    error: str  # the exception, as "Class: message"; empty if there was none
    # The process's exit status (negative: the signal that killed it), "a timeout" or
    # "no result".
    died: object
    log: str  # the end of its standard output and error

    @property
    def ok(self):
        return not self.error and self.died == 0

    def __str__(self):
        if self.ok:
            return f"returned {self.value!r}"
        what = self.error or f"the process exited with {self.died}"
        return f"{what}\n--- its log:\n{self.log}"


def run(function, *arguments, env=None, plugin=True):
    """Calls `function` in a new process."""
    return _spawn(function, [list(arguments)], env, plugin)[0]


def run_each(function, cases, env=None, plugin=True):
    """Calls `function` with each case's arguments, all in one process. If the
    process dies, a new one continues with the case after the one that killed it."""
    results = []
    while len(results) < len(cases):
        results += _spawn(function, cases[len(results):], env, plugin)
    return results


def run_together(function, cases, envs, plugin=True):
    """Calls `function` with each case's arguments at the same time, each in a process
    and environment of its own. No process outlives TIMEOUT_SECONDS."""
    with contextlib.ExitStack() as stack:
        folders = [pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
                   for _ in cases]
        prepared = [_prepare(function, [list(case)], env, plugin, folder)
                    for case, env, folder in zip(cases, envs, folders)]
        died = _server().run(list(zip(folders, prepared)))
        return [_read(folder, [case], status)[0]
                for folder, case, status in zip(folders, cases, died)]


def run_script(path, *arguments, env=None, cwd=None):
    """Runs a Python script as a program. Returns a subprocess.CompletedProcess, also if it
    crashed."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("stdout", "stderr")]
        result = run(_run_script, str(path), list(map(str, arguments)), str(cwd or "."),
                     files, env=env, plugin=False)
        assert not result.error and isinstance(result.died, int), result
        output = [pathlib.Path(file).read_text(errors="replace") for file in files]
    return subprocess.CompletedProcess([path, *arguments], result.died or result.value, *output)


def _run_script(path, arguments, cwd, files):
    for file, number in zip(files, (1, 2)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    faulthandler.enable()
    os.chdir(cwd)
    sys.path[0] = os.path.dirname(path)
    sys.argv = [path, *arguments]
    status = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    return status


def _spawn(function, cases, env, plugin):
    """Returns at least one result, up to the case in which the process died."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        environment = _prepare(function, cases, env, plugin, folder)
        if "PYTHONPATH" in (env or {}):
            died = _run_in_new_process(folder, environment)
        else:
            at_start = _AT_START & (env or {}).keys()
            server = _server(*((name, env[name]) for name in sorted(at_start)))
            died, = server.run([(folder, environment)])
        return _read(folder, cases, died)


def _prepare(function, cases, env, plugin, folder):
    """Writes the request into the folder; returns the environment."""
    environment = _environment()
    if plugin:
        path = plugin_path()
        if not path.is_file():
            raise FileNotFoundError(
                f"no plug-in at {path}: build it (tools/test tensorflow does), "
                "or name it in TFPLUG_CPU_SIM")
        environment["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(path)
    environment.update(env or {})
    (folder / "request").write_text(json.dumps(
        [inspect.getfile(function), function.__name__, cases]))
    environment["TFPLUG_SCRATCH"] = str(folder)
    return environment


def _read(folder, cases, died):
    """Returns the results in the folder of a process that has ended."""
    text = (folder / "log").read_text(errors="replace")[-4000:]
    done = folder / "results"
    lines = done.read_text().splitlines() if done.exists() else []
    results = [Result(*json.loads(line), 0, text) for line in lines]
    if died != 0 and len(results) == len(cases):
        results.pop()  # the process died while it exited
    if died != 0 or len(results) < len(cases):
        results.append(Result(None, "", died or "no result", text))
    return results


# Variables that TensorFlow reads before a forked child can change them.
_AT_START = {"TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"}


def _environment():
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="1",
                       TF_ENABLE_ONEDNN_OPTS="0", PYTHONFAULTHANDLER="")
    for name in list(environment):
        if name.startswith("CPU_SIM_"):
            del environment[name]
    environment.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    return environment


def _run_in_new_process(folder, environment):
    with open(folder / "log", "wb") as log:
        try:
            return subprocess.run(
                [sys.executable, "-B", __file__, str(folder)],
                env=environment, stdout=log, stderr=log, check=False,
                timeout=TIMEOUT_SECONDS).returncode
        except subprocess.TimeoutExpired:
            return "a timeout"


class _Server:
    """A process from which children are forked, in which TensorFlow has read the given
    pairs of a variable's name and value."""

    def __init__(self, *variables):
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-B", __file__], text=True,
            env={**_environment(), **dict(variables)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(self._process.wait)  # so that its processor time is counted
        atexit.register(self._process.stdin.close)

    def run(self, children):
        """Runs a child for each pair of a folder and an environment at the same time.
        Returns their exit statuses, or "a timeout"."""
        with self._lock:
            request = json.dumps([[str(folder), env] for folder, env in children])
            print(request, file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())


_server = functools.lru_cache(maxsize=None)(_Server)


def _serve():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    installed_plugins.hide()  # a device cannot be registered twice
    gc.disable()
    import tensorflow
    # Results are compared with the CPU's.
    tensorflow.config.experimental.enable_tensor_float_32_execution(False)
    # Otherwise each child that exits would look for garbage in all modules, which takes
    # a second; its own objects are destroyed as ever.
    gc.freeze()
    gc.enable()
    for line in sys.stdin:
        children = []
        for folder, environment in json.loads(line):
            children.append(os.fork())
            if children[-1] == 0:
                answers.close()
                _run_in_child(folder, environment)
                return
        print(json.dumps([_await(child) for child in children]), file=answers,
              flush=True)


def _await(child):
    watched = os.pidfd_open(child)
    in_time, _, _ = select.select([watched], [], [], TIMEOUT_SECONDS)
    os.close(watched)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if in_time else "a timeout"


def _run_in_child(folder, environment):
    """Gives a forked process the environment and log of a new one, and runs the
    cases."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.meta_path.insert(0, _ImportTensorflow(sys.modules.pop("tensorflow")))
    _run_cases(pathlib.Path(folder))


class _ImportTensorflow:
    """Loads the plug-in when the process first imports TensorFlow, as TensorFlow's
    own import does."""

    def __init__(self, tensorflow):
        self._tensorflow = tensorflow

    def find_spec(self, name, path=None, target=None):
        del path, target
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        del spec
        return self._tensorflow

    def exec_module(self, module):
        del module
        path = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH")
        if path:
            from tensorflow.python.framework import load_library
            load_library.load_pluggable_device_library(path)


def _run_cases(folder):
    file, name, cases = json.loads((folder / "request").read_text())
    spec = importlib.util.spec_from_file_location("cases", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name)
    with open(folder / "results", "w", encoding="utf-8") as results:
        for case in cases:
            try:
                result = json.dumps([function(*case), ""])
            except Exception as failure:  # pylint: disable=broad-except
                result = json.dumps(
                    [None, f"{type(failure).__name__}: {failure}"])
            results.write(result + "\n")
            results.flush()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _serve()
    else:
        installed_plugins.hide()  # a device cannot be registered twice
        _run_cases(pathlib.Path(sys.argv[1]))
