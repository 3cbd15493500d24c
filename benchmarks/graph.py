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
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import building
import dump_graphs
import main as bench

MODELS = ["resnet50", "mobilenet_v2", "efficientnet_b0", "bert12", "lstm"]
STRUCTURAL = [f"{model}_{step}_{form}" for step in ("train", "infer")
              for model in MODELS for form in ("grappler", "traced")]
STRUCTURAL += ["synthetic:10000", "synthetic:100000"]
LARGE = ["synthetic:1000000", "synthetic:1000000:shuffled", "resnet50_frozen",
         "bert12_frozen", "vgg16_frozen"]
COLD_RUNS = 15
LARGE_COLD_RUNS = 5
LARGE_ROUNDS = 3
TURN_MS = 5
COUNTED = ["resnet50_train_grappler", "bert12_train_grappler",
           "lstm_train_grappler", "synthetic:10000", "synthetic:100000"]
STRESS_SIZES = [10**3, 10**4, 10**5, 10**6]
STRESS_SECTION = "## Wide nodes\n"

TEXT = """\
# Graphs compared with messages

Written by `tools/bench graph --write docs/measured/bench_graph.md`; do not edit. Machine:
{machine}. One thread, processor time. *view* is `tfplug::Graph`; *messages* does the
same with protobuf {protobuf} (static, `-O2`) in an arena whose memory is
allocated beforehand; *copy* is a `memcpy` of the graph. Both sides do the same
work and write into memory that is reused. Their results are compared, message
for message, in the same run.

* **order**: parse, sort topologically, write everything.
* **fuse**: parse; find bias(product(x, w), b) with an optional activation, where
  the inner nodes have no other users and all are on one device; replace them
  with one node; write. With messages, this requires a map of names and lists of
  users.
* **idle**: parse, and find that an op is absent. Nothing is written.

In each round, each side in turn makes as many calls as take {turn} ms, at least
one. Ratios are medians of the ratios within each of {rounds} rounds (fewer on
large graphs). *Call by call* has one call in a turn, so that each call finds
the processor's caches and branch predictors in the state in which the other
side left them; TensorFlow also does other work between the calls of a pass. The
same applies to *÷ copy*: a repeated copy would stay within the caches.

| Graph | MB | fused | order: view, ms | ÷ copy | × faster | fuse: view, ms | ÷ copy | × faster | call by call | idle: × faster |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{rows}

{summary}

## The first call of a process

No memory is allocated yet, neither for tables and arena nor for the result, so
page faults dominate. Symbols of other libraries are already bound, as they are
after TensorFlow has loaded a plug-in. The view writes its result to the memory
that the pipeline uses (`graph/internal/output_block.h`), messages to memory
from `malloc`. *Copy* is a `memcpy` of the graph into new memory from `malloc`,
and *bound* is the time of messages divided by the time of the copy: TensorFlow
requires the result in one block, so no implementation can be much faster. Peak
is the growth of the process's resident memory, including the result. Medians of
{cold_runs} processes of each, alternating (fewer on large graphs).

| Graph | fuse: view, ms | messages, ms | × faster | copy, ms | bound | view's peak, MB | messages' | ratio |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
{cold}

## Instructions

Instructions per node, counted by callgrind, for the second call. A `memcpy`
counts as a loop with vectors of 32 bytes.

| Graph | order: view | messages | ratio | fuse: view | messages | ratio | idle: view |
|---|--:|--:|--:|--:|--:|--:|--:|
{instructions}

{stress}"""

STRESS_TEXT = STRESS_SECTION + """
Written by `tools/bench graph --stress --write docs/measured/bench_graph.md`.
A node with N inputs, control inputs, users or attributes is edited N times, or
an edit that affects all N is made once. The figures are nanoseconds of processor
time, divided by N. If the time is linear in N, a row is constant, apart from
cache misses, which begin at about 10⁵ nodes. Machine: {machine}.

| Edit | {sizes} |
|---|{columns}
{rows}
"""


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
                 "-Wl,-z,now")
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
        machine=bench.machine(), rows="\n".join(rows),
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


def pairs(program, name, rounds):
    large = name in LARGE
    rounds = LARGE_ROUNDS if large else rounds

    def measure(turn_ms):
        return json.loads(building.run(program, "pairs", place(name), rounds,
                                       turn_ms))

    def ratio(times, job):
        return median(m / v for m, v in zip(times[f"messages {job}"],
                                            times[f"view {job}"]))

    result = measure(TURN_MS)
    call_by_call = result if large else measure(0)
    cells = [name, f"{result['bytes'] / 1e6:.1f}", result["fused"]]
    for job in ("order", "fuse"):
        copies = median(v / c for v, c in zip(call_by_call[f"view {job}"],
                                              call_by_call["memcpy"]))
        cells += [f"{median(result[f'view {job}']) * 1e3:.2f}",
                  f"{copies:.1f}", f"**{ratio(result, job):.1f}**"]
    cells += [f"{ratio(call_by_call, 'fuse'):.1f}",
              f"{ratio(result, 'idle'):.0f}"]
    return cells, (ratio(result, "fuse"), ratio(call_by_call, "fuse"))


def summarize(ratios):
    """Summarizes `ratios`: (in turns, call by call) for each structural graph."""
    words = [f"{median(each):.1f} times faster in the median and at least "
             f"{min(each):.1f} times" for each in zip(*ratios)]
    return (f"On these {len(ratios)} graphs of up to 10⁵ nodes, fuse is "
            f"{words[0]}; call by call, {words[1]}.")


def cold(program, name):
    runs = {"view": [], "messages": [], "copy": []}
    for _ in range(LARGE_COLD_RUNS if name in LARGE else COLD_RUNS):
        for side, found in runs.items():
            found.append(json.loads(building.run(
                program, "cold", side, "fuse", place(name))))

    def of(side):
        return (median(run["seconds"] for run in runs[side]) * 1e3,
                median(run["peak_kib"] for run in runs[side]) / 1e3)

    (view, view_peak), (messages, messages_peak) = of("view"), of("messages")
    copy, _ = of("copy")
    return [name, f"{view:.2f}", f"{messages:.2f}",
            f"**{messages / view:.1f}**", f"{copy:.2f}",
            f"{messages / copy:.1f}", f"{view_peak:.1f}", f"{messages_peak:.1f}",
            f"{view_peak / max(messages_peak, 0.001):.2f}"]


def count(program, side, job, name, folder):
    report = folder / "callgrind.out"
    environment = dict(os.environ, GLIBC_TUNABLES="glibc.cpu."
                       "x86_rep_movsb_threshold=1000000000")
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no",
         "--toggle-collect=measured", f"--callgrind-out-file={report}",
         program, "count", side, job, place(name)],
        env=environment, check=True, capture_output=True, text=True)
    collected = done.stderr.split("Collected :")[1].split()[0]
    return int(collected)


def instructions(program, name, folder):
    nodes = json.loads(building.run(program, "nodes", place(name)))
    cells = [name]
    for job in ("order", "fuse"):
        view = count(program, "view", job, name, folder) / nodes
        messages = count(program, "messages", job, name, folder) / nodes
        cells += [f"{view:.0f}", f"{messages:.0f}", f"{messages / view:.1f}"]
    idle = count(program, "view", "idle", name, folder) / nodes
    return cells + [f"{idle:.0f}"]


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
        folder = pathlib.Path(scratch)
        program = build(folder)
        rows, ratios = [], []
        for name in names:
            cells, both = pairs(program, name, args.rounds)
            rows.append(building.row(cells))
            ratios += [both] if name in STRUCTURAL else []
        first = [building.row(cold(program, name)) for name in names
                 if "traced" not in name and "1000000" not in name]
        counted = [building.row(instructions(program, name, folder))
                   for name in COUNTED if name in names]
    text = TEXT.format(
        machine=bench.machine(), rounds=args.rounds, cold_runs=COLD_RUNS,
        protobuf=building.run("pkg-config", "--modversion", "protobuf").strip(),
        rows="\n".join(rows), turn=TURN_MS,
        summary=summarize(ratios) if ratios else "", cold="\n".join(first),
        instructions="\n".join(counted), stress=section)
    print(text)
    if args.write:
        args.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
