# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions per call of a plug-in's functions with Callgrind."""

import collections
import pathlib
import re
import subprocess

CALLS = 100


class Counts(collections.namedtuple("Counts", "total own")):
    """Instructions of one call: all of them, and those of the plug-in's own code
    (without driver, TensorFlow and libraries)."""


def self_costs(report):
    """Returns {(object, function): instructions} of a Callgrind file, without those
    of callees."""
    names = {"ob": {}, "fn": {}}
    where = {"ob": "", "fn": ""}
    costs = collections.Counter()
    of_call = False  # The next line is the inclusive cost of a callee.
    for line in pathlib.Path(report).read_text().splitlines():
        if found := re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$", line):
            callee, kind, number, name = found.groups()
            name = names[kind].setdefault(number, name)
            if not callee:
                where[kind] = name
        elif line.startswith("calls="):
            of_call = True
        elif re.match(r"[+\-*\d]", line):
            if not of_call:
                costs[where["ob"], where["fn"]] += int(line.split()[-1])
            of_call = False
    return costs


def count(host, plugin, operation, scratch):
    """Returns the Counts of one call. The total includes everything except the
    host's own loop: plug-in, driver, the fake TensorFlow, libraries."""
    report = pathlib.Path(scratch) / f"{pathlib.Path(plugin).stem}.{operation}"
    subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            "--collect-atstart=no",
            "--toggle-collect=measured",
            "--demangle=no",
            f"--callgrind-out-file={report}",
            "--quiet",
            host,
            plugin,
            operation,
            str(CALLS),
        ],
        check=True,
    )
    total = own = 0
    for (library, function), cost in self_costs(report).items():
        if library == str(host) and not function.startswith("TF_"):
            continue  # The host's loop.
        total += cost
        if library == str(plugin) and not function.startswith("drv_"):
            own += cost
    if total == 0:
        raise RuntimeError(f"Callgrind counted nothing in {report}.")
    return Counts(total / CALLS, own / CALLS)
