# SPDX-License-Identifier: Apache-2.0
"""Runs examples/distribute/faults.py with cpu_sim: seeded faults of workers, devices and
the network."""

import os
import subprocess
import sys

import page
import plugins


def add_options(parser):
    parser.add_argument("--rounds", default="20")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--workers", default="3")


def run(options):
    """Returns whether each fault was reported and nothing was lost."""
    plugin = plugins.PLUGINS["cpu_sim"]
    command = [sys.executable, "-B", page.ROOT / "examples/distribute/faults.py", "--type",
               plugin.type, "--rounds", options.rounds, "--seed", options.seed,
               "--workers", options.workers]
    env = {**os.environ, **plugin.environment(int(options.workers))}
    lines = []
    with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    rows = [line for line in lines if line.startswith("| ") and line.endswith("|\n")]
    if options.write and rows:
        page.write("Faults", TEXT.format(workers=options.workers, seed=options.seed,
                                         table="".join(rows)))
    return child.returncode == 0


TEXT = """Written by `tools/distribute faults --write` (seed {seed}): `examples/distribute/faults.py` on cpu_sim, {workers}
workers in namespaces with links of 1 Gbit/s and 0.2 ms, a checkpoint every 4 steps, all faults in one training. A row is
good if each other worker ended with an error within 90 s (with *slow*: if no worker did), all started again by
themselves and went on from the last checkpoint, and if each loss of each worker is, digit by digit, that of a training
without faults. In the end, the sum of the weights' magnitudes was compared, too.

{table}
*killed*: all processes of a host end; *restarted*: its worker ends and is started at once; *frozen*: it stops, and goes
on after the others have ended; *slow*: it has the processor for a quarter of six seconds; *device*: a launch fails;
*partition*: no packet reaches or leaves the host; *version*: a host ends and comes back with another build of the
plug-in: the others report its end after the given time, are started again, and all refuse to begin, within 90 s, too."""
