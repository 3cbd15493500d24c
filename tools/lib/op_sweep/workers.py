# SPDX-License-Identifier: Apache-2.0
"""Processes that run cases. A case that crashes or hangs ends its process only."""

import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import tempfile
import time

HANG_SECONDS = 60
_CONTEXT = multiprocessing.get_context("fork")


class Crash:
    """The end of a process while it ran a case."""

    def __init__(self, how, phase, number, case, log):
        self.how, self.phase, self.number = how, phase, number
        self.case, self.log = case, log


class Worker:
    """A process that loads the plug-in and answers one task after another."""

    def __init__(self, serve, options):
        self.pipe, other = _CONTEXT.Pipe()
        self.log = tempfile.NamedTemporaryFile(prefix="op_sweep_", suffix=".log")
        self.process = _CONTEXT.Process(
            target=_main, args=(other, self.log.name, serve, options), daemon=True)
        self.process.start()
        other.close()
        self.task, self._at, self._since = None, ("start", "", ""), time.monotonic()

    def send(self, task):
        self.task, self._at, self._since = task, ("start", "", ""), time.monotonic()
        self.pipe.send(task)

    def receive(self):
        """Returns a finished task's answer, a Crash, or None if there is only news."""
        try:
            tag, value = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._ended()
        self._since = time.monotonic()
        if tag == "at":
            self._at = value
            return None
        return value

    def overdue(self):
        return self.task is not None and time.monotonic() - self._since > HANG_SECONDS

    def kill(self):
        self.process.kill()
        return self._ended(f"no progress in {HANG_SECONDS} s")

    def _ended(self, how=None):
        self.process.join()
        code = self.process.exitcode
        if how is None:
            how = (signal.Signals(-code).name if code < 0 else f"exit status {code}")
        log = pathlib.Path(self.log.name).read_text(errors="replace")[-2000:]
        phase, number, case = self._at
        return Crash(how, phase, number, case, log)

    def close(self):
        self.pipe.close()
        self.process.join(5)
        self.process.kill()


def _main(pipe, log, serve, options):
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    serve(pipe, options)
    os._exit(0)  # TensorFlow's threads need not be joined


def run_all(tasks, serve, options, jobs, on_answer):
    """Runs tasks (an iterator) in several processes. on_answer(task, answer) gets each
    answer or Crash, and may return further tasks."""
    waiting, workers = [], []

    def feed(worker):
        task = waiting.pop(0) if waiting else next(tasks, None)
        worker.task = None
        if task is not None:
            worker.send(task)

    for _ in range(jobs):
        workers.append(Worker(serve, options))
        feed(workers[-1])
    while any(worker.task is not None for worker in workers):
        busy = [worker for worker in workers if worker.task is not None]
        ready = set(multiprocessing.connection.wait(
            [worker.pipe for worker in busy], timeout=1))
        for i, worker in enumerate(workers):
            if worker.task is None:
                continue
            answer = None
            if worker.pipe in ready:
                answer = worker.receive()
            elif worker.overdue():
                answer = worker.kill()
            if answer is None:
                continue
            waiting += on_answer(worker.task, answer) or []
            if isinstance(answer, Crash):
                worker = workers[i] = Worker(serve, options)
            feed(worker)
    for worker in workers:
        worker.close()
