# SPDX-License-Identifier: Apache-2.0
"""Writes real graphs for the benchmarks and tests of graphs.

The graphs are those of Keras models with random weights. Each file
~/.cache/tfplug/graphs/MODEL_STEP_FORM.pb is a serialized GraphDef
(XDG_CACHE_HOME moves the directory):

  STEP  train: one training step (Adam); infer: the forward pass
  FORM  traced: as tf.function traces it, with its library of functions
        grappler: as TensorFlow passes it to a plug-in's optimizer: the
                  largest of the graphs of one step

and MODEL_frozen.pb: inference, with variables converted to constants. Existing
files are kept. index.json lists their sizes in bytes and their numbers of
nodes and functions.

  dump_graphs.py                 all of them: a few minutes, 1.3 GB
  dump_graphs.py resnet50 lstm   only these models
  dump_graphs.py --small         no frozen graphs, which take most of the space
  dump_graphs.py --list          a table of the existing graphs
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
FORMS = ["train_traced", "train_grappler", "infer_traced", "infer_grappler"]
NAMES = ["resnet50", "mobilenet_v2", "efficientnet_b0", "lstm", "bert12",
         "vgg16"]
FROZEN = ["resnet50", "bert12", "vgg16"]
FROZEN_ONLY = ["vgg16"]  # Included for its size.


def folder():
    cache = os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")
    return pathlib.Path(cache) / "tfplug/graphs"


def wanted(name, small):
    """Returns the names of the files of one model."""
    forms = [] if name in FROZEN_ONLY else list(FORMS)
    if name in FROZEN and not small:
        forms.append("frozen")
    return [f"{name}_{form}" for form in forms]


# ---- In a separate process for each model ------------------------------------


def hide_installed_plugins():
    """Keeps installed plug-ins from influencing the graphs."""
    exists = os.path.exists
    hidden = {os.path.join(sysconfig.get_path(name), "tensorflow-plugins")
              for name in ("purelib", "platlib")}
    os.path.exists = lambda path: path not in hidden and exists(path)


def batch(kind, size):
    """Returns two examples and their classes."""
    import numpy
    random = numpy.random.default_rng(1)
    if kind == "image":
        return (random.random((2, size, size, 3), "float32"),
                numpy.array([3, 5], "int64"))
    vocabulary, steps = size
    return (random.integers(0, vocabulary, (2, steps), "int32"),
            numpy.array([0, 1], "int64"))


def functions(model, inputs, labels):
    """Returns {step: (concrete function, arguments)}."""
    import keras
    import tensorflow as tf
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def infer_step(x):
        return model(x, training=False)

    spec = tf.TensorSpec((None,) + inputs.shape[1:], inputs.dtype)
    label_spec = tf.TensorSpec((None,), labels.dtype)
    x, y = tf.constant(inputs), tf.constant(labels)
    train = train_step.get_concrete_function(spec, label_spec)
    infer = infer_step.get_concrete_function(spec)
    return {"train": (train, (x, y)), "infer": (infer, (x,))}


def build_plugin(path):
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-O1",
                    "-shared", "-fPIC", "-fvisibility=hidden",
                    f"-I{ROOT / 'include'}", str(HERE / "dump_pass.cc"), "-o",
                    str(path), "-ldl"], check=True)


def largest_call(call, arguments):
    """Returns the largest graph that TensorFlow passes to the plug-in in a call."""
    with tempfile.TemporaryDirectory() as dumped:
        os.environ["TFPLUG_DUMP"] = dumped
        call(*arguments)
        del os.environ["TFPLUG_DUMP"]
        graphs = list(pathlib.Path(dumped).iterdir())
        if not graphs:
            raise SystemExit("TensorFlow passed no graph to the optimizer")
        print(f"  TensorFlow passed {len(graphs)} graphs of "
              f"{sorted(g.stat().st_size for g in graphs)} bytes")
        # TensorFlow runs its optimizers twice. Of graphs of equal size, the first is
        # chosen.
        graphs.sort(key=lambda path: int(path.stem))
        return max(graphs, key=lambda path: path.stat().st_size).read_bytes()


def dump_model(name, files):
    """Writes `files` of one model. Run in a separate process."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    hide_installed_plugins()
    import keras
    import tensorflow as tf
    from tensorflow.python.framework import convert_to_constants
    from tensorflow.python.framework import load_library
    from models import MODELS
    out = folder()
    with tempfile.TemporaryDirectory() as temporary:
        plugin = pathlib.Path(temporary) / "libdump_pass.so"
        build_plugin(plugin)
        load_library.load_pluggable_device_library(str(plugin))
    keras.utils.set_random_seed(1)
    model, kind, size = MODELS[name]()
    inputs, labels = batch(kind, size)
    steps = functions(model, inputs, labels)

    def write(file, data):
        if file in files:
            part = out / f"{file}.part"
            part.write_bytes(data)
            part.replace(out / f"{file}.pb")

    for step, (function, arguments) in steps.items():
        write(f"{name}_{step}_traced",
              function.graph.as_graph_def().SerializeToString())
        if f"{name}_{step}_grappler" in files:
            write(f"{name}_{step}_grappler", largest_call(function, arguments))
    if f"{name}_frozen" in files:
        frozen = convert_to_constants.convert_variables_to_constants_v2(
            steps["infer"][0])
        write(f"{name}_frozen", frozen.graph.as_graph_def().SerializeToString())
    print(f"  {name}: {len(model.weights)} weights, {model.count_params():,} "
          f"parameters, TensorFlow {tf.__version__}")


# ---- All models --------------------------------------------------------------


def describe(path):
    """Returns {bytes, nodes, functions} of a GraphDef."""
    from tensorflow.core.framework import graph_pb2
    graph = graph_pb2.GraphDef.FromString(path.read_bytes())
    return {"bytes": path.stat().st_size, "nodes": len(graph.node),
            "functions": len(graph.library.function)}


def write_index():
    """Updates index.json."""
    path = folder() / "index.json"
    index = json.loads(path.read_text()) if path.exists() else {}
    files = {file.stem: file for file in sorted(folder().glob("*.pb"))}
    index = {name: index[name]
             if index.get(name, {}).get("bytes") == file.stat().st_size
             else describe(file) for name, file in files.items()}
    path.write_text(json.dumps(index, indent=1) + "\n")
    return index


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*NAMES, []],
                        metavar="MODEL", help=", ".join(NAMES))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        dump_model(args.child[0], args.child[1:])
        return 0
    folder().mkdir(parents=True, exist_ok=True)
    for name in [] if args.list else args.models or NAMES:
        missing = [file for file in wanted(name, args.small)
                   if not (folder() / f"{file}.pb").exists()]
        if missing:
            print(f"{name} ...", flush=True)
            # Each model has its own process: some take 3 GB, and an error names the
            # model.
            subprocess.run([sys.executable, str(HERE / "dump_graphs.py"),
                            "--child", name, *missing], check=True, cwd=HERE)
    for name, entry in write_index().items():
        print(f"{name:30} {entry['bytes']:>12,} bytes {entry['nodes']:>7,} "
              f"nodes {entry['functions']:>4} functions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
