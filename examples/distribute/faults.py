# SPDX-License-Identifier: Apache-2.0
"""Trains through seeded faults, and checks that each is reported by all other workers in
time, and that in the end nothing is lost.

  python faults.py --rounds 20 --seed 1 --type SIM

Each worker is a host of its own: train.py --hosts, which starts its worker again. As
root, each host is a network namespace, and the network can fail, too. Every few steps a
host has a fault:

  killed     its processes end, and are started after the others have reported
  restarted  its worker ends, and is started again at once
  frozen     its worker stops, and goes on after the others have reported
  slow       its worker has the processor for a quarter of six seconds: no error
  device     an operation of its device fails (cpu_sim, cuda_like)
  partition  all packets from and to it are lost (in namespaces)
  version    it comes back with another build of the plug-in, which all refuse

Prints a table; the exit status is 1 if a fault is not reported within --limit, or if a
loss or the weights differ from those of an undisturbed training.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import sys
import time

import hosts
import network

STEPS_PER_ROUND, SAVE_EVERY = 8, 4
PAUSE = 0.2  # seconds after each step, so that a round does not miss its steps
LIBRARY = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"  # TensorFlow loads this plug-in
COLUMNS = ("fault", "worker", "after step", "all others reported after", "with",
           "went on after step", "seconds until all trained again", "losses")


class Training:
    """A training of a cluster with faults."""

    def __init__(self, cluster, options):
        self._cluster, self._options = cluster, options
        self.faults = {"killed": self._kill, "restarted": self._restart,
                       "frozen": self._freeze, "slow": self._slow}
        if options.type in ("SIM", "CUDA_LIKE"):
            self.faults["device"] = self._fail_device
        if cluster.net:
            self.faults["partition"] = self._cut
        if os.environ.get(LIBRARY):
            self.faults["version"] = self._change_version

    # Each of these causes a fault of a host and waits until it is reported; returns
    # whether it was in time.

    def _kill(self, victim, others):
        victim.kill()
        good = self._reported(others)
        victim.start()
        return good

    def _restart(self, victim, others):
        victim.signal_worker(signal.SIGKILL)
        return self._reported(others)

    def _freeze(self, victim, others):
        victim.signal_worker(signal.SIGSTOP)
        good = self._reported(others)
        victim.signal_worker(signal.SIGCONT)
        return good

    def _slow(self, victim, others):
        for _ in range(8):
            victim.signal_worker(signal.SIGSTOP)
            time.sleep(0.6)
            victim.signal_worker(signal.SIGCONT)
            time.sleep(0.2)
        return not any(host.reported(self._struck) for host in [victim, *others])

    def _fail_device(self, victim, others):
        # FaultControl in examples/cpu_sim/runtime/fault.h; "armed" is written last.
        hook = b"launch" if self._options.type == "SIM" else b"cuLaunchKernel"
        with open(fault_file(self._options.out, victim.index), "r+b", 0) as file:
            file.seek(4)
            file.write(struct.pack("III48s", 0, 0, 1, hook))
            file.seek(0)
            file.write(struct.pack("I", 1))
        return self._reported([victim, *others])

    def _cut(self, victim, others):
        self._cluster.net.cut(victim.index)
        good = self._reported([victim, *others])
        self._cluster.net.heal(victim.index)
        return good

    def _change_version(self, victim, others):
        other = self._options.out / "other" / pathlib.Path(os.environ[LIBRARY]).name
        other.parent.mkdir(exist_ok=True)
        # A byte at the end changes the file and not what it does.
        other.write_bytes(pathlib.Path(os.environ[LIBRARY]).read_bytes() + b"\0")
        victim.kill()
        victim.start(**{LIBRARY: str(other)})
        self._struck = time.monotonic()
        good = self._cluster.wait(lambda host: host.ended(), self._options.limit)
        for host in [victim, *others]:
            good = good and "plug-ins differ" in host.reports[-1][1]
            host.kill()
            host.start()
        return good

    def _reported(self, hosts_):
        return self._cluster.wait(
            lambda host: host not in hosts_ or host.reported(self._struck),
            self._options.limit)

    def round(self, fault, victim, steps, expected):
        """Causes a fault `steps` steps later. Returns a row of the table, and whether all
        is as it should be."""
        cluster = self._cluster
        step = max(host.step for host in cluster.hosts) + steps
        if not cluster.wait(lambda host: host.step >= step or host.ended(), 300):
            return [fault, victim, step, "NOT REACHED", "", "", "", ""], False
        victim = cluster.hosts[victim]
        others = [host for host in cluster.hosts if host is not victim]
        at = victim.step
        for host in cluster.hosts:
            host.resumed.clear()
        self._struck = time.monotonic()
        good = self.faults[fault](victim, others)
        # The last report of each, as a worker may fail again while it is started.
        reports = [[each for each in host.reports if each[0] > self._struck]
                   for host in others]
        seconds = max((each[0][0] for each in reports if each), default=0) - self._struck
        texts = {shorten((each[-1] if fault == "version" else each[0])[1])
                 for each in reports if each}
        for host in cluster.hosts if fault != "slow" else []:
            host.step = 0
        again = cluster.wait(lambda host: host.step > at - SAVE_EVERY, 300)
        good = good and again
        lost = [number for host in cluster.hosts for number, found in host.losses.items()
                if found != {expected[number]}]
        first = {host.resumed[-1] for host in cluster.hosts if host.resumed}
        row = [fault, victim.index, at,
               "no error" if fault == "slow" and good else
               f"{seconds:.1f} s" if good else "NOT REPORTED",
               "; ".join(sorted(texts)), ", ".join(map(str, first)),
               f"{time.monotonic() - self._struck:.0f}" if again else "NEVER",
               f"DIFFER: {lost}" if lost else "equal"]
        return row, good and not lost


def shorten(text):
    """Returns the beginning of an error without what differs from run to run."""
    return text.split(": ", 1)[-1].replace("|", "/")[:150]


def fault_file(out, index):
    return out / f"fault-{index}"


def undisturbed(options, arguments):
    """Trains without faults. Returns the chief's result and the printed losses."""
    out = options.out / "undisturbed"
    with hosts.Cluster(options.workers, [*arguments, "--out", str(out)],
                       lambda i: {"TFPLUG_VISIBLE_DEVICES": str(i)}) as cluster:
        if not cluster.wait(lambda host: host.ended(), 600):
            sys.exit("the undisturbed training does not end")
    result = json.loads((out / "worker-0.json").read_text())
    return result, {step: f"{loss:.6g}" for step, loss in enumerate(result["losses"], 1)}


def disturbed(options, arguments, expected, losses):
    """Trains with faults. Returns the table's rows and whether nothing failed."""
    out = options.out / "disturbed"

    def env(i):
        fault_file(options.out, i).write_bytes(bytes(64))
        path = str(fault_file(options.out, i))
        return {"TFPLUG_VISIBLE_DEVICES": str(i), "CPU_SIM_FAULT_FILE": path,
                "CUDA_LIKE_FAULT_FILE": path}

    with contextlib.ExitStack() as stack:
        net = None
        if os.geteuid() == 0 and not options.loopback:
            net = stack.enter_context(contextlib.closing(
                network.Network(options.workers, *network.parse("1gbit,200us"))))
        cluster = stack.enter_context(hosts.Cluster(
            options.workers, [*arguments, "--out", str(out), "--pause", str(PAUSE)], env,
            net))
        training = Training(cluster, options)
        chosen, rows, good = random.Random(options.seed), [], True
        for fault in sequence(options.only or list(training.faults), options.rounds,
                              chosen):
            row, fine = training.round(fault, chosen.randrange(options.workers),
                                       chosen.randrange(1, SAVE_EVERY + 2), losses)
            print("|", *row, "good" if fine else "BAD", flush=True)
            rows.append(row)
            good = good and fine
            if "NEVER" in row or "NOT REACHED" in row:
                break
        good = cluster.wait(lambda host: host.ended(), 300) and good
        good = all(host.process.returncode == 0 for host in cluster.hosts) and good
    result = json.loads((out / "worker-0.json").read_text())
    if result["weights"] != expected["weights"]:
        print("The weights in the end DIFFER.")
        good = False
    return rows, good


def sequence(faults, rounds, chosen):
    """Returns the rounds' faults: all equally often, in a random order."""
    result = [faults[i % len(faults)] for i in range(rounds)]
    chosen.shuffle(result)
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="default: all")
    parser.add_argument("--type", help="the devices' type")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS",
                        help="in which all others must report a fault")
    parser.add_argument("--loopback", action="store_true", help="without namespaces")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/faults"))
    options = parser.parse_args()
    os.environ.setdefault("CPU_SIM_DEVICES", str(options.workers))
    os.environ.setdefault("CUDA_LIKE_DEVICES", str(options.workers))
    arguments = ["--steps", str(options.rounds * STEPS_PER_ROUND), "--save-every",
                 str(SAVE_EVERY), "--batch", str(8 * options.workers), "--report", "1",
                 "--timeout", str(options.limit / 2), "--restarts", "100"]
    if options.type:
        arguments += ["--type", options.type]
    # Or the hosts would go on.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options.out = options.out.resolve()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    rows, good = disturbed(options, arguments, *undisturbed(options, arguments))
    print("| " + " | ".join(COLUMNS) + " |\n|" + " --- |" * len(COLUMNS))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    sys.exit(not good)


if __name__ == "__main__":
    main()
