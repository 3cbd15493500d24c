# SPDX-License-Identifier: Apache-2.0
"""tools/bench graph: tfplug::Graph compared with messages and memcpy.

  tools/bench graph                            the structural graphs
  tools/bench graph --large                    also frozen ones and 10^6 nodes
  tools/bench graph --write docs/measured/bench_graph.md
  tools/bench graph --only resnet50_train_grappler synthetic:10000 --rounds 50
  tools/bench graph --stress                   edits of nodes with up to 10^6
                                               inputs; with --write, replaces
                                               only that section

Real graphs are those of benchmarks/dump_graphs.py, which has to be run
once; without them only synthetic ones are measured. On two cores, the structural
graphs (without large constants) take about three minutes: one for building, half
a minute for callgrind. --large takes six more, mostly for graphs of 10^6 nodes.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import building
import dump_graphs
import opponents
from graph_text import STRESS_SECTION, STRESS_TEXT, TEXT
from main import machine

MODELS = ["resnet50", "mobilenet_v2", "efficientnet_b0", "bert12", "lstm"]
STRUCTURAL = [f"{model}_{step}_{form}" for step in ("train", "infer")
              for model in MODELS for form in ("grappler", "traced")]
STRUCTURAL += ["synthetic:10000", "synthetic:100000"]
LARGE = ["synthetic:1000000", "synthetic:1000000:shuffled", "resnet50_frozen",
         "bert12_frozen", "vgg16_frozen"]
OPPONENTS = ["messages", "wheel", "upb"]
COLD_RUNS = 5
LARGE_COLD_RUNS = 3
LARGE_ROUNDS = 3
TURN_MS = 5
COUNTED = ["resnet50_train_grappler", "bert12_train_grappler",
           "lstm_train_grappler", "synthetic:10000"]
# Those in which the instructions of fuse are compared with upb.
COMPARED = [name for name in STRUCTURAL if name != "synthetic:100000"]
STRESS_SIZES = [10**3, 10**4, 10**5, 10**6]


def build(folder):
    flags = ["-I", folder, *building.run(
        "pkg-config", "--cflags", "--libs", "--static", "protobuf").split()]
    sources = [building.ROOT / f"benchmarks/{name}.cc" for name in
               ("graph", "graph_view", "graph_messages", "graph_synthetic")]
    sources += building.generate_messages(folder)
    libraries = building.run("pkg-config", "--libs", "--static",
                             "absl_flat_hash_map", "absl_flat_hash_set").split()
    program = folder / "graph"
    building.run(*building.CXX, "-std=c++17", "-O2", "-g1", *building.INCLUDE,
                 *building.abseil("--cflags"), *sources, "-o", program, *flags,
                 *libraries, *building.abseil("--libs"), "-pthread",
                 "-ldl", "-Wl,-z,now")
    return program


def build_stress(folder):
    program = folder / "graph_stress"
    building.run(*building.CXX, "-std=c++17", "-O2", *building.INCLUDE,
                 *building.abseil("--cflags"),
                 building.ROOT / "benchmarks/graph_stress.cc", "-o", program,
                 *building.abseil("--libs"), "-pthread")
    return program


def stress():
    """Returns the section about wide nodes."""
    found = {}  # By name of the edit: nanoseconds for each size.
    with tempfile.TemporaryDirectory() as scratch:
        program = build_stress(pathlib.Path(scratch))
        for size in STRESS_SIZES:
            for line in building.run(program, size).splitlines():
                name, nanoseconds = line.split("\t")
                found.setdefault(name, []).append(nanoseconds)
    rows = [building.row([name, *cells]) for name, cells in found.items()]
    return STRESS_TEXT.format(
        machine=machine(), rows="\n".join(rows),
        sizes=" | ".join(f"{size:,}" for size in STRESS_SIZES),
        columns="--:|" * len(STRESS_SIZES))


def split_stress(path):
    """Returns the text of the file without its section about wide nodes, and that
    section."""
    text = path.read_text() if path and path.exists() else ""
    before, section, after = text.partition(STRESS_SECTION)
    return before, section + after


def place(name):
    """Returns the program's argument for a graph; None if it does not exist."""
    if name.startswith("synthetic:"):
        return name
    path = dump_graphs.folder() / f"{name}.pb"
    return path if path.exists() else None


def median(values):
    return statistics.median(values)


class Bench:
    """The program, and the opponents by name."""

    def __init__(self, folder):
        self.folder = folder
        self.program = build(folder)
        wheel, wheel_version = opponents.build_wheel(folder)
        upb, upb_version = opponents.build_upb(folder)
        # By name: the program's argument, and the title of columns.
        self.sides = {"view": "view", "messages": "messages", "wheel": wheel,
                      "upb": upb}
        version = building.run("pkg-config", "--modversion", "protobuf")
        self.titles = {
            "messages": f"protobuf {version.strip().removesuffix('.0')}",
            "wheel": f"protobuf {wheel_version}", "upb": f"upb {upb_version}"}

    # ---- Times ----

    def times(self, name, rounds, turn_ms):
        loaded = [f"{side}={self.sides[side]}" for side in ("wheel", "upb")]
        return Times(json.loads(building.run(
            self.program, "pairs", place(name), rounds, turn_ms, *loaded)))

    def pairs(self, name, rounds):
        """Returns the rows for fuse and order, and the ratios of fuse."""
        large = name in LARGE
        rounds = LARGE_ROUNDS if large else rounds
        turns = self.times(name, rounds, TURN_MS)
        calls = turns if large else self.times(name, rounds, 0)
        fuse, fuse_calls = turns.ratios("fuse"), calls.ratios("fuse")
        cells = [name, f"{turns.found['bytes'] / 1e6:.1f}", turns.found["fused"],
                 turns.ms("fuse"), calls.copies("fuse"),
                 f"{turns.found['touched'] / 1e6:.1f}",
                 calls.copies("fuse", "touch"),
                 *(f"**{ratio:.1f}**" for ratio in fuse),
                 *(f"{ratio:.1f}" for ratio in fuse_calls)]
        order = turns.ratios("order")
        other = [name, turns.ms("order"), calls.copies("order"),
                 *(f"**{ratio:.1f}**" for ratio in order), turns.ms("idle"),
                 *(f"{ratio:.0f}" for ratio in turns.ratios("idle"))]
        return cells, other, (fuse, fuse_calls, order)

    def cold(self, name):
        runs = {side: [] for side in (*self.sides, "copy")}
        for _ in range(LARGE_COLD_RUNS if name in LARGE else COLD_RUNS):
            for side, found in runs.items():
                found.append(json.loads(building.run(
                    self.program, "cold", self.sides.get(side, side), "fuse",
                    place(name))))

        def of(side, what):
            return median(run[what] for run in runs[side])

        view = of("view", "seconds")
        return [name, f"{view * 1e3:.2f}", f"{of('copy', 'seconds') * 1e3:.2f}",
                *(f"**{of(side, 'seconds') / view:.1f}**"
                  for side in OPPONENTS),
                *(f"{of(side, 'peak_kib') / 1e3:.1f}" for side in self.sides)]

    # ---- Instructions ----

    @functools.cache  # a count is the same each time
    def count(self, side, job, name):
        report = self.folder / "callgrind.out"
        environment = dict(os.environ, GLIBC_TUNABLES=":".join(
            f"glibc.cpu.x86_rep_{name}_threshold=1000000000"
            for name in ("movsb", "stosb")))
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no",
             "--toggle-collect=measured", f"--callgrind-out-file={report}",
             self.program, "count", self.sides[side], job, place(name)],
            env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"Failed: {done.args}\n{done.stderr}")
        return int(done.stderr.split("Collected :")[1].split()[0])

    def instructions(self, name):
        nodes = json.loads(building.run(self.program, "nodes", place(name)))
        cells = [name]
        for job, sides in (("order", OPPONENTS), ("fuse", OPPONENTS),
                           ("idle", ["upb"])):
            view = self.count("view", job, name)
            cells += [f"{view / nodes:.0f}",
                      *(f"{self.count(side, job, name) / view:.1f}"
                        for side in sides)]
        return cells

    def fuse_ratio(self, name):
        """Returns upb's instructions for fuse, divided by the view's."""
        return self.count("upb", "fuse", name) / self.count("view", "fuse", name)


class Times:
    """The seconds of each call on a graph: by side and job, by round."""

    def __init__(self, found):
        self.found = found

    def ms(self, job):
        return f"{median(self.found[f'view {job}']) * 1e3:.2f}"

    def ratios(self, job):
        return [median(other / view for other, view in zip(
            self.found[f"{side} {job}"], self.found[f"view {job}"]))
            for side in OPPONENTS]

    def copies(self, job, copy="memcpy"):
        ratio = median(view / copy for view, copy in zip(
            self.found[f"view {job}"], self.found[copy]))
        return f"{ratio:.1f}"


def summarize(ratios, titles):
    """`ratios`: (fuse, fuse call by call, order) for each structural graph, each
    a list by opponent."""
    text = f"Medians and minima on the {len(ratios)} graphs of up to 10⁵ nodes:\n\n"
    text += "| | × " + " | × ".join(titles.values()) + " |\n|---|--:|--:|--:|\n"
    for job, each in zip(("fuse", "fuse, call by call", "order"), zip(*ratios)):
        columns = (f"{median(column):.1f}, at least {min(column):.1f}"
                   for column in zip(*each))
        text += building.row([job, *columns]) + "\n"
    return text.rstrip("\n")


def summarize_instructions(ratios, opponent):
    if not ratios:
        return ""
    return (f"On the {len(ratios)} graphs of up to 20,000 nodes, fuse with {opponent} "
            f"takes {median(ratios):.1f}\ntimes as many instructions as with the view "
            f"in the median, and at least\n{min(ratios):.1f} times as many.")


def main():
    parser = argparse.ArgumentParser(prog="tools/bench graph")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="GRAPH")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--stress", action="store_true")
    args = parser.parse_args()
    before, section = split_stress(args.write)
    if args.stress:
        section = stress()
        print(section)
        if args.write:
            args.write.write_text(before.rstrip("\n") + "\n\n" + section)
        return 0
    names = args.only or STRUCTURAL + (LARGE if args.large else [])
    names = [name for name in names if place(name)]
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(pathlib.Path(scratch))
        fuse, order, ratios = [], [], []
        for name in names:
            cells, other, all_ratios = bench.pairs(name, args.rounds)
            fuse.append(building.row(cells))
            order.append(building.row(other))
            ratios += [all_ratios] if name in STRUCTURAL else []
        first = [building.row(bench.cold(name)) for name in names
                 if "traced" not in name and "1000000" not in name]
        counted = [building.row(bench.instructions(name))
                   for name in COUNTED if name in names]
        compared = [bench.fuse_ratio(name) for name in COMPARED
                    if name in names]
    text = TEXT.format(
        **bench.titles, machine=machine(), rounds=args.rounds,
        cold_runs=COLD_RUNS, fuse="\n".join(fuse), order="\n".join(order),
        turn=TURN_MS, cold="\n".join(first), instructions="\n".join(counted),
        summary=summarize(ratios, bench.titles) if ratios else "",
        compared=summarize_instructions(compared, bench.titles["upb"]),
        stress=section)
    print(text)
    if args.write:
        args.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
