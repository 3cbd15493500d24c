# SPDX-License-Identifier: Apache-2.0
"""Runs one train.py --hosts per host, and notes what their workers print."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import train

_REPORT = re.compile(r"cannot go on|this worker failed|No progress|cannot start")


class Host:
    """A host: train.py in a process group of its own. Its variables may be read while
    Cluster.wait() tests its condition."""

    def __init__(self, index, places, arguments, env, prefix, changed):
        self.index, self._changed = index, changed
        self._command = [
            *prefix, sys.executable, "-B", train.FOLDER / "train.py", "--hosts",
            ",".join(places), "--index", str(index), *arguments]
        self._env = env
        self.reports = []  # pairs of a time and the text of an error
        self.losses = {}  # from a step to all losses that were printed for it
        self.resumed = []  # the steps of the checkpoints that were restored
        self.step = self.worker = 0  # the last step; the worker's process
        self.process = None

    def start(self, **env):
        self.process = subprocess.Popen(
            self._command, env={**self._env, **env}, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process):
        for line in process.stdout:
            print(line, end="", flush=True)
            with self._changed:
                self._note(line)
                self._changed.notify_all()
        process.wait()
        with self._changed:
            self._changed.notify_all()

    def _note(self, line):
        if found := re.search(r"step (\d+)/\d+  loss (\S+)", line):
            self.step = int(found[1])
            self.losses.setdefault(self.step, set()).add(found[2])
        elif found := re.search(r"process (\d+) trains", line):
            self.worker = int(found[1])
        elif found := re.search(r"resumed after step (\d+)", line):
            self.resumed.append(int(found[1]))
        elif _REPORT.search(line):
            text = line.split("] ", 1)[-1].strip()
            self.reports.append((time.monotonic(), text))

    def reported(self, since):
        """Returns whether the worker has reported an error after this time."""
        return any(at > since for at, _ in self.reports)

    def ended(self):
        return self.process.poll() is not None

    def signal_worker(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.worker, number)

    def kill(self):
        """Ends the host's processes, all at once."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Cluster:
    """All hosts. `net` is a network.Network in which they are, or None: loopback. env(i)
    returns additional variables of host i."""

    def __init__(self, count, arguments, env, net=None):
        self._changed = threading.Condition()
        self.net = net
        places = ([f"{address}:7000" for address in net.addresses] if net else
                  [f"localhost:{port}" for port in train.free_ports(count)])
        self.hosts = [
            Host(i, places, arguments, {**os.environ, **env(i)},
                 net.command(i) if net else (), self._changed) for i in range(count)]

    def __enter__(self):
        for host in self.hosts:
            host.start()
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.kill()

    def wait(self, condition, seconds):
        """Returns whether the condition comes to hold for all hosts within the time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: all(map(condition, self.hosts)), seconds)
