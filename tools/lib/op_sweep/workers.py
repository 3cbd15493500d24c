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
_LATE = 1.2  # times the limit: then cases are cut off
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

    def cut_off(self):
        """Ends the process. Returns the number of the case that it ran, and since when."""
        self.process.kill()
        return self._at[1], time.monotonic() - self._since

    def _ended(self, how=None):
        self.process.join()
        code = self.process.exitcode
        if how is None:
            how = (signal.Signals(-code).name if code < 0 else f"exit status {code}")
        log = pathlib.Path(self.log.name).read_text(errors="replace")[-2000:]
        phase, number, case = self._at
        return Crash(how, phase, number, case, log)

    def close(self):
        # It is idle. Closing the pipe would not end it: later processes have a copy.
        self.process.kill()
        self.process.join()
        self.pipe.close()


def begin(pipe, phase, number, case):
    """Tells the parent which case runs next. What was logged before says nothing of it."""
    os.ftruncate(2, 0)
    pipe.send(("at", (phase, number, case)))


def _main(pipe, log, serve, options):
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    serve(pipe, options)
    os._exit(0)  # TensorFlow's threads need not be joined


class Clock:
    """Limits the time in which cases run, from the first answer of a process on: TensorFlow
    and the plug-in have then been loaded."""

    def __init__(self, seconds):
        self._seconds, self._begin = seconds, None
        self.left_out = 0  # cases that were to run, but for the time

    def start(self):
        self._begin = self._begin or time.monotonic()

    def seconds(self):
        """Returns how long cases have run."""
        return 0 if self._begin is None else time.monotonic() - self._begin

    def is_over(self):
        """Returns whether no case may begin."""
        return self.seconds() > self._seconds

    def is_late(self):
        """Returns whether the cases that run are to be cut off."""
        return self.seconds() > _LATE * self._seconds


def confirms_crash(task):
    """Returns whether a task runs one case again that crashed: on the CPU first."""
    _, numbers, wanted = task
    return wanted == "crash" and len(numbers) == 1


def run_all(tasks, serve, options, jobs, on_answer, clock=None, on_cut=None):
    """Runs tasks (an iterator) in several processes. on_answer(task, answer) gets each
    answer or Crash, and may return further tasks, which `clock` may leave out. on_cut(task,
    number, seconds) gets the cases that it cuts off, and the crashes that it leaves
    unconfirmed."""
    waiting, workers = [], []
    clock = clock or Clock(float("inf"))

    def leave_out():
        """Removes what waits, but for the case that confirms a crash, until it is late."""
        for task in list(waiting):
            if not clock.is_late() and confirms_crash(task):
                continue
            waiting.remove(task)
            clock.left_out += len(task[1])
            if confirms_crash(task):
                on_cut(task, task[1][0], 0)

    def feed(worker):
        if clock.is_over():
            leave_out()
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
            [worker.pipe for worker in busy], timeout=0.2 if clock.is_over() else 1))
        for i, worker in enumerate(workers):
            if worker.task is None:
                continue
            answer = None
            if worker.pipe in ready:
                answer = worker.receive()
            elif worker.overdue():
                answer = worker.kill()
            elif clock.is_late():
                number, seconds = worker.cut_off()
                numbers = worker.task[1]
                clock.left_out += len(numbers) - (
                    numbers.index(number) if number in numbers else 0)
                on_cut(worker.task, number, seconds)
                worker.task = None
            if answer is None:
                continue
            waiting += on_answer(worker.task, answer) or []
            if isinstance(answer, Crash):
                worker = workers[i] = Worker(serve, options)
            feed(worker)
    if clock.is_over():
        leave_out()
        next(tasks, None)  # It counts what it leaves out.
    for worker in workers:
        worker.close()
