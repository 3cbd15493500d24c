# SPDX-License-Identifier: Apache-2.0
"""Runs test files of another project with pytest, each in a process of its own, which a
test may crash: the next process continues after that test.

To save the time of importing TensorFlow for each file, the processes are forked from a
server, which has imported TensorFlow but loaded no plug-in.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_SECONDS_OF_FILE = 1500  # of one process
_SECONDS_OF_TEST = 300


@dataclasses.dataclass(frozen=True)
class Place:
    """Where tests run: on the CPU without the plug-in, or on a device of the plug-in,
    which is either the default or pinned with tf.device."""

    name: str
    plugin: str = ""
    device: str = ""  # pinned to it, without soft placement
    environment: tuple = ()  # of pairs


CPU = Place("CPU")


@dataclasses.dataclass
class Suite:
    root: pathlib.Path  # of the test files
    files: list  # relative to the root
    imports: list = ()  # modules that the server imports
    packages: pathlib.Path = None  # a folder of further packages
    per_file: int = 0  # the most tests of a file; 0: all
    seed: int = 0
    wanted: str = ""  # part of the test's id


class Server:
    """A process from which the processes of test files are forked, one at a time."""

    def __init__(self, suite, place):
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2",
                           TF_ENABLE_ONEDNN_OPTS="0", PYTHONFAULTHANDLER="",
                           **dict(place.environment))
        environment.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
        if suite.packages:
            environment["PYTHONPATH"] = str(suite.packages)
        self._process = subprocess.Popen(
            [sys.executable, "-B", str(pathlib.Path(__file__).with_name("child.py")),
             json.dumps(list(suite.imports))], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, request):
        """Returns the exit status of the process; negative: the signal."""
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def run_file(server, suite, place, file, only=None):
    """Returns {test's id: (outcome, message)} of the file's tests, or of those whose
    ids `only` contains."""
    results, slow = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder, "results")
        while True:
            lines.write_text("")
            status = server.run({
                "root": str(suite.root), "file": file, "folder": folder,
                "plugin": place.plugin, "device": place.device,
                "per_file": suite.per_file, "seed": suite.seed,
                "wanted": suite.wanted, "only": only, "done": sorted(results),
                "seconds_of_file": _SECONDS_OF_FILE,
                "seconds_of_test": _SECONDS_OF_TEST})
            running = None
            for line in lines.read_text().splitlines():
                test, outcome, text = json.loads(line)
                if outcome == "started":
                    running = test
                elif outcome == "ended":
                    running = None
                elif results.get(test, ("",))[0] != FAILED:
                    # A test passes after a part of it, a subTest, has failed.
                    results[test] = outcome, text
            if status == 0:
                return results
            if -status in (signal.SIGALRM, signal.SIGKILL):
                how = "took too long"
            elif status < 0:
                how = f"crashed: {signal.Signals(-status).name}"
            else:
                how = f"exited with {status}"
            if running is None:  # outside of a test
                results[file] = (FAILED, how)
                return results
            if how == "took too long" and running not in slow:
                slow.add(running)  # again, in a new process: the machine may be busy
                results.pop(running, None)
            else:
                results[running] = (FAILED, how)


def _doubtful(file, found):
    """Returns the tests that have to run on the CPU, too; None: all of the file."""
    failed = sorted(t for t, (outcome, _) in found.items() if outcome == FAILED)
    return None if file in failed else failed


def run(suite, device, jobs, progress=None, kept=None):
    """Runs all files on the device, and what fails there on the CPU, too; returns for the
    device and the CPU {test's id: (outcome, message)}. `kept` is a file to which results
    are added as they come; what it contains is not run again."""
    local, servers, lock = threading.local(), [], threading.Lock()
    known = {}
    if kept and kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            file, on_device, on_cpu = json.loads(line)
            known[file] = on_device, on_cpu

    def server(place):
        own = local.__dict__.setdefault("servers", {})
        if place not in own:
            own[place] = Server(suite, place)
            servers.append(own[place])
        return own[place]

    def run_one(file):
        begin = time.monotonic()
        on_device, on_cpu = run_file(server(device), suite, device, file), {}
        doubtful = _doubtful(file, on_device)
        if doubtful != []:
            on_cpu = run_file(server(CPU), suite, CPU, file, doubtful)
        with lock:
            known[file] = on_device, on_cpu
            if kept:
                with open(kept, "a", encoding="utf-8") as out:
                    out.write(json.dumps([file, on_device, on_cpu]) + "\n")
        if progress:
            progress(file, on_device, on_cpu, time.monotonic() - begin)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run_one, (f for f in suite.files if f not in known)))
    for started in servers:
        started.close()
    return [{test: tuple(result) for file in suite.files
             for test, result in known[file][place].items()} for place in range(2)]


def await_child(child, seconds):
    """Returns the child's exit status; kills it after the time."""
    watched = os.pidfd_open(child)
    in_time, _, _ = select.select([watched], [], [], seconds)
    os.close(watched)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
