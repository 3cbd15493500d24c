# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of pattern matching in a graph; prints the tables of
docs/measured/bench_patterns.md:

    python3 benchmarks/patterns.py GRAPH.pb...

The graphs are those of benchmarks/dump_graphs.py. Needs g++, valgrind, and
Abseil found by pkg-config (tools/setup installs them)."""

import os
import pathlib
import subprocess
import sys
import tempfile

import building

HERE = pathlib.Path(__file__).resolve().parent
MEASURED = [("absent", 1), ("absent", 10), ("absent", 50), ("never", 1),
            ("never", 10), ("never", 50), ("hand", 1), ("fuse", 1),
            ("fuse", 10), ("fuse", 50)]
DESCRIPTION = {
    "absent": "for ops that the graph lacks",
    "never": "for its most frequent ops, never matching",
    "hand": "the pattern of the next line, found by a hand-written loop",
    "fuse": "a convolution with its bias, replaced"}


def count(program, graph, workload, rules, folder):
    """Returns (nodes, replaced, instructions)."""
    report = folder / "report"
    result = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no",
         "--toggle-collect=*Measure*", f"--callgrind-out-file={report}",
         program, graph, workload, str(rules)],
        check=True, capture_output=True, text=True)
    nodes, replaced = map(int, result.stdout.split())
    total = [line for line in report.read_text().splitlines()
             if line.startswith(("totals:", "summary:"))][-1]
    return nodes, replaced, int(total.split()[1])


def main():
    found = pathlib.Path.home().glob(".cache/tfplug/abseil-*/lib*/pkgconfig")
    os.environ.setdefault("PKG_CONFIG_PATH", ":".join(map(str, found)))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "patterns"
        building.run(*building.CXX, *building.COMPILE, "-g1",
                     *building.INCLUDE, *building.abseil("--cflags"),
                     HERE / "patterns.cc", "-o", program,
                     *building.abseil("--libs"), "-ldl", "-pthread")
        for graph in sys.argv[1:]:
            print(f"\n`{pathlib.Path(graph).stem}`\n")
            print("| rules | pattern | replaced | instructions "
                  "| per node | per rule |\n|--:|---|--:|--:|--:|--:|")
            for workload, rules in MEASURED:
                nodes, replaced, cost = count(program, graph, workload, rules,
                                              folder)
                print(f"| {rules} | {DESCRIPTION[workload]} | {replaced} | {cost:,} "
                      f"| {cost / nodes:.1f} | {cost / rules:,.0f} |")


if __name__ == "__main__":
    main()
