# SPDX-License-Identifier: Apache-2.0
"""Compares a fusion written as rules, by hand, and over protobuf messages;
prints a table of docs/measured/bench_patterns.md:

    tools/bench rules [--rounds N] [GRAPH]...

GRAPH is one of benchmarks/dump_graphs.py, or synthetic:NODES."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import building
import graph

GRAPHS = ["resnet50_train_grappler", "mobilenet_v2_train_grappler", "bert12_train_grappler",
          "resnet50_infer_grappler", "bert12_infer_grappler", "synthetic:10000",
          "synthetic:100000"]
OTHERS = [1, 10, 100]
HEAD = ("| graph | fused | messages, ms | by hand | rules | × faster than "
        "messages | ÷ by hand | +1 rule | +10 | +100 |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")


def build(folder):
    here = building.ROOT / "benchmarks"
    libraries = building.run("pkg-config", "--cflags", "--libs", "--static",
                             "protobuf", "absl_flat_hash_map",
                             "absl_flat_hash_set").split()
    return building.build_program(
        [here / "rules.cc", here / "graph_view.cc", here / "graph_messages.cc",
         here / "graph_synthetic.cc",
         *building.generate_messages(folder), *libraries],
        folder / "rules", ["-I", folder])


def row(program, name, rounds):
    ways = json.loads(building.run(program, graph.place(name), rounds))
    fused = {way["fused"] for way in ways.values()}
    if len(fused) != 1:
        raise SystemExit(f"{name}: the implementations fuse differently: {ways}")

    def ms(way):
        return f"{1e3 * statistics.median(ways[way]['seconds']):.2f}"

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(ways[a]["seconds"],
                                                       ways[b]["seconds"]))

    cells = [name, fused.pop(), ms("messages"), ms("hand"), ms("rules 0"),
             f"**{ratio('messages', 'rules 0'):.1f}**",
             f"{ratio('rules 0', 'hand'):.2f}"]
    cells += [f"{ratio(f'rules {others}', 'rules 0'):.2f}"
              for others in OTHERS]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(prog="tools/bench rules")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", default=GRAPHS)
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        program = build(pathlib.Path(scratch))
        print(HEAD)
        for name in args.graphs:
            if graph.place(name):
                print(row(program, name, args.rounds), flush=True)


if __name__ == "__main__":
    sys.exit(main())
