# SPDX-License-Identifier: Apache-2.0
"""Kills or freezes a worker in seeded rounds, and checks that the others end with an
error in time and that all together, started again, lose nothing.

  python faults.py --rounds 6 --seed 1 --type SIM

Each round trains with two workers; after a random step, a worker is killed or frozen.
Both are then started again and must end with the losses and weights of an undisturbed
training. Prints a table; the exit status is 1 if a round fails.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import threading
import time

import train

WORKERS, STEPS, SAVE_EVERY = 2, 24, 4
FAULTS = {"killed": signal.SIGKILL, "frozen": signal.SIGSTOP}


class Round:
    """One training with a fault: a worker receives a signal after a step."""

    def __init__(self, arguments, out, fault, victim, step, device_type):
        self.fault, self.victim, self.step = fault, victim, step
        self._out, self._arguments, self._type = out, arguments, device_type
        self._struck, self.messages = None, {}
        self._ready = threading.Event()

    def _on_line(self, index, line):
        found = re.match(r"step (\d+)/", line)
        if index == self.victim and found and int(found[1]) == self.step:
            self._ready.wait()
            os.kill(self._workers[self.victim].process.pid, FAULTS[self.fault])
            self._struck = time.monotonic()
        elif "cannot go on" in line or "No progress" in line:
            self.messages[index] = line.strip()

    def run(self, limit):
        """Returns the seconds until the last other worker ended, and their statuses."""
        self._workers = train.start(WORKERS, 1, self._type, self._arguments +
                                    ["--out", str(self._out)], self._on_line)
        self._ready.set()
        others = [each for each in self._workers if each.index != self.victim]
        while self._struck is None and any(w.process.poll() is None for w in others):
            time.sleep(0.05)
        if self._struck is None:
            sys.exit("the workers ended before the fault")
        for worker in others:
            try:
                worker.process.wait(self._struck + limit - time.monotonic())
            except train.subprocess.TimeoutExpired:
                worker.process.kill()
        seconds = time.monotonic() - self._struck
        self._workers[self.victim].process.kill()  # also a frozen one
        return seconds, [worker.finish() for worker in others]


def finish(arguments, out, device_type):
    """Trains to the end. Returns the chief's result."""
    workers = train.start(WORKERS, 1, device_type, arguments + ["--out", str(out)])
    if any(train.run_once(workers, 30)):
        sys.exit("a training without a fault failed")
    return json.loads((out / "worker-0.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type", help="the devices' type")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS",
                        help="in which the other worker must report the failure")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/faults"))
    options = parser.parse_args()
    os.environ.setdefault("CPU_SIM_DEVICES", str(WORKERS))
    arguments = ["--steps", str(STEPS), "--save-every", str(SAVE_EVERY), "--batch", "16",
                 "--report", "1", "--timeout", str(options.limit / 2)]
    if options.type:
        arguments += ["--type", options.type]
    shutil.rmtree(options.out, ignore_errors=True)
    expected = finish(arguments, options.out / "undisturbed", options.type)
    chosen = random.Random(options.seed)
    rows, failed = [], False
    for number in range(options.rounds):
        fault, victim = list(FAULTS)[number % 2], number // 2 % WORKERS
        step, out = chosen.randrange(2, STEPS - 2), options.out / f"round-{number}"
        round_ = Round(arguments, out, fault, victim, step, options.type)
        seconds, statuses = round_.run(options.limit)
        result = finish(arguments, out, options.type)
        same = (result["weights"] == expected["weights"] and
                result["losses"] == expected["losses"][result["first"]:])
        in_time = statuses == [train.TRY_AGAIN] * (WORKERS - 1)
        failed = failed or not same or not in_time
        rows.append(f"| {fault} | {victim} | {step} | {seconds:.1f} s | "
                    f"{'; '.join(round_.messages.values()) or statuses} | "
                    f"{result['first']} | {'equal' if same else 'DIFFERENT'} |")
    print("| fault | worker | after step | the other ended after | its message | resumed "
          "after step | weights in the end |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    sys.exit(failed)


if __name__ == "__main__":
    main()
