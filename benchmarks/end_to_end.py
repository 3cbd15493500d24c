# SPDX-License-Identifier: Apache-2.0
"""tools/bench end_to_end: the total cost of a graph optimizer's call.

TensorFlow serializes its graph for a plug-in and parses the result. Measures the share
of these steps in stock TensorFlow, and how much a faster pass can save.

  tools/bench end_to_end
  tools/bench end_to_end --write docs/measured/bench_graph_tensorflow.md
  tools/bench end_to_end --only resnet50_train --rounds 40

The graphs are those of benchmarks/dump_graphs.py.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import building
import dump_graphs
import main as bench

GRAPHS = [f"{model}_{step}" for step in ("train", "infer")
          for model in ("resnet50", "mobilenet_v2", "bert12", "lstm")]
# Whether the pass sets attributes, and the name of that case in the tables.
CASES = [(True, "changes"), (False, "does not")]

TEXT = """\
# The cost of TensorFlow around a pass

Written by `tools/bench end_to_end --write docs/measured/bench_graph_tensorflow.md`; do not
edit. Machine: {machine}; TensorFlow {tensorflow}.

TensorFlow passes its graph to a plug-in as serialized bytes, and parses the
result. A plug-in can avoid neither. This page shows how much of the view's
advantage over messages ([bench_graph.md](bench_graph.md)) remains.

## In TensorFlow

TensorFlow's optimizer runs on graphs as it passes them to plug-ins, with a pass
that sets an attribute of each convolution and product ("changes") or finds
nothing to do ("does not"). *in all* is the duration of TensorFlow's call to the
plug-in, according to TensorFlow's log. Of this, *ours* is the time in the plug-in,
*parse* the time until TensorFlow releases the result's memory, and *serialize*
the rest, including TensorFlow's bookkeeping. Wall time in milliseconds, medians
of {rounds} calls, each with a new optimizer, whose memory is cold. *Rewriters*:
the time of TensorFlow's own rewriters on the same graph, with default settings.

| Graph | nodes | the pass | in all | serialize | ours | parse | ours, % | rewriters |
|---|--:|---|--:|--:|--:|--:|--:|--:|
{inside}

If nothing changed, the pass returns ABORTED, and TensorFlow does not parse.

## Outside of TensorFlow

The same steps with protobuf {protobuf}; processor time in milliseconds, medians
of {rounds} rounds. A graph on the heap is serialized into new memory and parsed
back, as in TensorFlow. The pass uses the view, or messages in an arena whose
memory is allocated beforehand. *all* is TensorFlow's part and the pass;
*× faster* compares the view with messages.

| Graph | the pass | serialize | view | messages | parse | all, view | all, messages | × faster |
|---|---|--:|--:|--:|--:|--:|--:|--:|
{outside}

A pass over messages that finds nothing to do is assumed to return ABORTED, too.
If it returns the graph instead, TensorFlow parses it needlessly.

The factors in the last column are the total gain of a pass over the view. No
pass could gain much more, because the rest is TensorFlow's part, which shrinks
only with the number of calls: put several passes into one pipeline, which is
called once.
"""


def graph_path(name):
    return dump_graphs.folder() / f"{name}_grappler.pb"


# ---- In TensorFlow: the child ------------------------------------------------


def optimize(path, rounds, rewriters):
    """Runs TensorFlow's optimizer on a graph; its log goes to standard error."""
    dump_graphs.hide_installed_plugins()
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.core.protobuf import meta_graph_pb2
    from tensorflow.core.protobuf import rewriter_config_pb2
    from tensorflow.python.framework import load_library
    from tensorflow.python.grappler import cluster
    from tensorflow.python.grappler import tf_optimizer
    load_library.load_pluggable_device_library(os.environ["TFPLUG_PLUGIN"])
    Settings = rewriter_config_pb2.RewriterConfig
    config = config_pb2.ConfigProto()
    settings = config.graph_options.rewrite_options
    settings.meta_optimizer_iterations = Settings.ONE
    settings.min_graph_nodes = -1
    if not rewriters:
        settings.disable_model_pruning = True
        settings.memory_optimization = Settings.NO_MEM_OPT
        for field in Settings.DESCRIPTOR.fields:
            if field.enum_type and field.enum_type.name == "Toggle":
                setattr(settings, field.name, Settings.OFF)
        settings.use_plugin_optimizers = Settings.ON
    graph = meta_graph_pb2.MetaGraphDef()
    graph.graph_def.ParseFromString(pathlib.Path(path).read_bytes())
    results = [n.name for n in graph.graph_def.node if n.op == "_Retval"]
    graph.collection_def["train_op"].node_list.value.extend(results)
    machine = cluster.Cluster(disable_detailed_stats=True)
    print(json.dumps([tf.__version__, len(graph.graph_def.node)]))
    for _ in range(rounds):
        tf_optimizer.OptimizeGraph(config, graph, cluster=machine)


# ---- In TensorFlow: the results ----------------------------------------------


def run_child(plugin, path, rounds, mark, rewriters, folder):
    """Returns (the child's output, TensorFlow's log, a line for each event)."""
    times = folder / "times"
    times.write_text("")
    environment = dict(
        os.environ, TF_CPP_MIN_LOG_LEVEL="0", TF_ENABLE_ONEDNN_OPTS="0",
        TF_CPP_VMODULE="meta_optimizer=1", TFPLUG_PLUGIN=str(plugin),
        TFPLUG_TIMES=str(times), TFPLUG_MARK="01"[mark])
    done = subprocess.run(
        [sys.executable, __file__, "--child", str(path), str(rounds),
         "01"[rewriters]],
        env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"TensorFlow failed: {done.stderr[-4000:]}")
    return json.loads(done.stdout), done.stderr, times.read_text().split("\n")


def log_times(log, ours):
    """Returns the milliseconds of each run of the plug-in's optimizer (`ours`) or
    of the other rewriters."""
    found = []
    for line in log.splitlines():
        # A line of the summary, because a rewriter that changes nothing has no
        # line of its own.
        time = re.match(r"  (\S+).* time = ([0-9.e+-]+)ms", line)
        if time and (time[1] == "PluggableGraphOptimizer:") == ours:
            found.append(float(time[2]))
    return found


def inside(plugin, name, mark, rounds, folder):
    """Returns a row of the table, and TensorFlow's release."""
    (release, nodes), log, lines = run_child(
        plugin, graph_path(name), rounds, mark, False, folder)
    in_all = log_times(log, True)
    ours = [int(l.split()[1]) / 1e6 for l in lines if l.startswith("call")]
    parse = [int(l.split()[1]) / 1e6 for l in lines if l.startswith("parse")]
    if not len(in_all) == len(ours) == rounds:
        raise SystemExit(f"{len(in_all)} calls logged, {len(ours)} timed")
    if len(parse) != (rounds if mark else 0):
        raise SystemExit(f"TensorFlow parsed {len(parse)} results of {name}")
    parse = parse or [0] * rounds
    serialize = [a - o - p for a, o, p in zip(in_all, ours, parse)]
    log = run_child(plugin, graph_path(name), 3, mark, True, folder)[1]
    rewriters = sum(log_times(log, False)) / 3
    share = median(o / a for o, a in zip(ours, in_all))
    cells = [name, nodes, dict(CASES)[mark]]
    cells += [f"{median(v):.2f}" for v in (in_all, serialize, ours, parse)]
    cells += [f"{100 * share:.0f}", f"{rewriters:.0f}"]
    return building.row(cells), release


def median(values):
    return statistics.median(values)


# ---- Outside of TensorFlow ---------------------------------------------------


def protobuf(*query):
    return building.run("pkg-config", *query, "protobuf").split()


def build(folder):
    """Builds and returns (the program, the plug-in)."""
    here = building.ROOT / "benchmarks"
    program = building.build_program(
        [here / "end_to_end.cc", *building.generate_messages(folder),
         *protobuf("--libs", "--static")],
        folder / "end_to_end", ["-I", folder, *protobuf("--cflags")])
    unit = building.compile(here / "end_to_end_pass.cc", folder / "pass.o")
    plugin = building.link_plugin(
        [unit], folder / "pass.so",
        ["-Wl,--no-undefined", *building.abseil("--libs"), "-ldl"])
    return program, plugin


def outside(program, name, mark, rounds):
    steps = json.loads(building.run(program, graph_path(name), rounds))
    verb = "mark" if mark else "idle"
    view, messages = steps[f"view {verb}s"], steps[f"messages {verb}"]
    serialize = steps["TensorFlow serializes"]
    parse = steps["TensorFlow parses"] if mark else [0] * rounds
    around = [s + p for s, p in zip(serialize, parse)]
    with_view = [a + v for a, v in zip(around, view)]
    with_messages = [a + m for a, m in zip(around, messages)]
    columns = [serialize, view, messages, parse, with_view, with_messages]
    faster = median(m / v for v, m in zip(with_view, with_messages))
    return ([name, dict(CASES)[mark]]
            + [f"{1e3 * median(values):.2f}" for values in columns]
            + [f"**{faster:.1f}**"])


def main():
    if sys.argv[1:2] == ["--child"]:
        return optimize(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    parser = argparse.ArgumentParser(prog="tools/bench end_to_end")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", default=GRAPHS)
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args()
    names = [name for name in args.only if graph_path(name).exists()]
    if not names:
        raise SystemExit("no graphs: run benchmarks/dump_graphs.py")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        program, plugin = build(folder)
        cases = [(name, mark) for name in names for mark, _ in CASES]
        found = [inside(plugin, name, mark, args.rounds, folder)
                 for name, mark in cases]
        out_rows = [building.row(outside(program, name, mark, args.rounds))
                    for name, mark in cases]
    text = TEXT.format(
        machine=bench.machine(), tensorflow=found[0][1], rounds=args.rounds,
        protobuf=protobuf("--modversion")[0],
        inside="\n".join(line for line, _ in found), outside="\n".join(out_rows))
    print(text)
    if args.write:
        args.write.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
