# SPDX-License-Identifier: Apache-2.0
"""The server and the processes of runner.py: child.py MODULES, a list in JSON. Reads a
request from each line of its standard input, runs the file in a forked process, and
writes that process's exit status."""

import ast
import gc
import importlib
import json
import os
import pathlib
import random
import sys
import types

# For the modules of tools/lib.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

import installed_plugins  # noqa: E402
from peer_tests import runner  # noqa: E402


class Observer:
    """A plug-in of pytest: selects tests, pins them to a device, and writes a line when
    a test begins, for each outcome (a test may have several), and when it has ended."""

    def __init__(self, request):
        self._request = request
        self._lines = open(pathlib.Path(request["folder"], "results"), "a",
                           encoding="utf-8", buffering=1)

    def _write(self, item, outcome, text=""):
        self._lines.write(json.dumps([self._id(item), outcome, text]) + "\n")

    def _id(self, item):
        # pytest numbers a path outside of its root from the file system's root.
        return self._request["file"] + item[item.index("::"):]

    def pytest_make_collect_report(self, collector):
        import pytest
        if isinstance(collector, pytest.Module):
            try:
                module = collector.obj
            except (pytest.Collector.CollectError, pytest.skip.Exception):
                return  # pytest will report it
            _run_as_program(module)

    def pytest_collection_modifyitems(self, items):
        request = self._request
        items[:] = [i for i in items if request["wanted"] in self._id(i.nodeid)]
        if 0 < request["per_file"] < len(items):
            chosen = random.Random(request["seed"]).sample(
                range(len(items)), request["per_file"])
            items[:] = [items[i] for i in sorted(chosen)]
        only, done = request["only"], set(request["done"])
        items[:] = [i for i in items if self._id(i.nodeid) not in done and
                    (only is None or self._id(i.nodeid) in only)]
        items.sort(key=lambda i: i.nodeid)  # unittest's order

    def pytest_runtest_protocol(self, item):
        import signal
        self._write(item.nodeid, "started")
        signal.alarm(self._request["seconds_of_test"])
        pinned = self._request["device"]
        if not pinned:
            return None
        import tensorflow as tf
        from _pytest.runner import runtestprotocol
        with tf.device(pinned):
            item.ihook.pytest_runtest_logstart(
                nodeid=item.nodeid, location=item.location)
            runtestprotocol(item, nextitem=None)
        return True

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            text = "" if report.outcome == "passed" else _first_error(report)
            self._write(report.nodeid, report.outcome, text)
        if report.when == "teardown":
            self._write(report.nodeid, "ended")

    def pytest_collectreport(self, report):
        if report.failed:
            self._lines.write(json.dumps(
                [self._request["file"], runner.FAILED, _first_error(report)]) + "\n")


def _run_as_program(module):
    """Runs what the file does if it is a program, except for running its tests: some
    files add tests there, or enable what these need."""
    for statement in ast.parse(pathlib.Path(module.__file__).read_text()).body:
        if not (isinstance(statement, ast.If) and
                ast.unparse(statement.test) == "__name__ == '__main__'"):
            continue
        for part in statement.body:
            called = [ast.unparse(node.func) for node in ast.walk(part)
                      if isinstance(node, ast.Call)]
            if not any(name.endswith(("main", "app.run")) for name in called):
                exec(compile(ast.Module([part], []), module.__file__, "exec"),
                     module.__dict__)


def _first_error(report):
    """Returns the line of a report that names the error."""
    if isinstance(report.longrepr, tuple):  # of a skipped test
        return str(report.longrepr[2])[:300]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    text = " ".join(text.split())
    reason = text.rfind(" Node: '")  # of a graph's error, after the stacks of Python
    if reason > 0:
        return f"{text[:100]} ...{text[reason:reason + 300]}"
    # The op without a kernel stands at the end.
    return text if len(text) <= 400 else f"{text[:300]} ... {text[-96:]}"


def _provide_conftest():
    """Provides what tests of Keras import from its conftest.py, which only its
    repository has."""
    import keras
    import pytest
    conftest = types.ModuleType("conftest")
    conftest.skip_if_backend = lambda name, reason: pytest.mark.skipif(
        keras.config.backend() == name, reason=reason)
    sys.modules["conftest"] = conftest


def _run(request):
    log = os.open(os.path.join(request["folder"], "log"),
                  os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    import pytest
    import tensorflow as tf
    from _pytest.unittest import TestCaseFunction
    from absl import flags
    # Tests that count objects read these lists of unittest's result; pytest's has none.
    TestCaseFunction.errors, TestCaseFunction.skipped = [], []
    if request["plugin"]:
        from tensorflow.python.framework import load_library
        load_library.load_pluggable_device_library(request["plugin"])
    if request["device"]:
        tf.config.set_soft_device_placement(False)
    flags.FLAGS(["test"], known_only=True)
    file = os.path.join(request["root"], request["file"])
    os.chdir(request["folder"])
    status = pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         "-p", "no:logging",  # which would keep objects of each message
         "--import-mode=importlib", f"--rootdir={request['root']}", "-c", os.devnull,
         "-W", "ignore", "--continue-on-collection-errors", file], plugins=[Observer(request)])
    # Some tests failed; none was collected.
    return 0 if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED,
                           pytest.ExitCode.NO_TESTS_COLLECTED) else 10 + int(status)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    installed_plugins.hide()  # a device cannot be registered twice
    gc.disable()  # for what is never garbage: a quarter of the time
    for module in ["tensorflow", *json.loads(sys.argv[1])]:
        importlib.import_module(module)
    gc.freeze()
    gc.enable()
    if "keras" in sys.modules:
        _provide_conftest()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            status = _run(request)
            sys.stdout.flush()
            os._exit(status)
        print(runner.await_child(child, request["seconds_of_file"]), file=answers,
              flush=True)


if __name__ == "__main__":
    main()
