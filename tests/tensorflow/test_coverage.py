# SPDX-License-Identifier: Apache-2.0
"""tools/coverage says what TensorFlow does."""

import json
import os
import subprocess
import sys

import harness

TOOL = harness.ROOT / "tools/lib/coverage/main.py"

# Erfinv has a kernel on the CPU alone; CrossReplicaSum has none anywhere.
MODEL = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
def good(x):
    rows = tf.shape(x)[0]
    tf.raw_ops.Erfinv(x=x)  # nobody wants it: TensorFlow prunes it
    return tf.nn.relu(x) / tf.cast(rows, tf.float32)

@tf.function
def bad(x):
    def body(i, y):
        return i + 1, tf.math.erfinv(y)
    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    with tf.device("CPU:0"):
        z = tf.math.lgamma(y)
    return tf.raw_ops.CrossReplicaSum(
        input=z, group_assignment=[[0]])

def good_one():
    return {"good": good}

def model():
    return {"good": good, "bad": (bad, tf.TensorSpec([3], tf.float32))}

def network():
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Input((6,)), layers.Dense(5, "relu", name="first"),
        layers.Dense(3, name="second")])

def trained():
    made = network()
    made.compile("sgd", "mse", jit_compile=False)
    return made

def wrong():
    return 42

def no_function():
    return {"f": lambda x: x}

def raises():
    raise RuntimeError("not today")
"""


def run_tool(folder, model, *arguments):
    """(exit status, report, all that it wrote)."""
    (folder / "a_model.py").write_text(MODEL)
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    run = subprocess.run(
        [sys.executable, "-B", str(TOOL), model, "--plugin",
         str(harness.plugin_path()), "--json", str(report), *arguments],
        cwd=folder, env=dict(os.environ, COLUMNS="120"), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = json.loads(report.read_text()) if report.exists() else None
    return run.returncode, found, run.stdout + run.stderr


def rows_of(report, **wanted):
    return [row for row in report["ops"]
            if all(row[name] == value for name, value in wanted.items())]


def test_every_kind_of_answer(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py")
    assert code == 1, text
    assert report["schema"] == 1 and report["device_type"] == "SIM"
    assert set(report) == {"schema", "tensorflow", "model", "device_type",
                           "plugin", "functions", "nodes", "missing",
                           "warnings", "ops"}
    assert report["functions"].keys() == {"good", "bad"}
    assert sum(report["functions"].values()) == sum(report["nodes"].values())
    for row in report["ops"]:
        assert set(row) == {"op", "types", "status", "kernel", "host_memory",
                            "on_host", "warning", "nodes", "example"}

    # Worst first: nobody's, then the CPU's. The pruned Erfinv does not count.
    assert [row["op"] for row in report["ops"][:2]] == ["CrossReplicaSum", "Erfinv"]
    nobody, cpu = report["ops"][:2]
    assert nobody["status"] == "nobody" and nobody["kernel"] == ""
    assert cpu["status"] == "cpu" and cpu["types"] == {"T": ["float32"]}
    assert cpu["nodes"] == {"bad": 1}
    assert cpu["example"]["function"].startswith("bad > "), "in a loop's body"
    assert report["missing"] == 2

    [relu] = rows_of(report, op="Relu")
    assert relu["status"] == "plugin" and relu["kernel"] == "SIM"
    [pinned] = rows_of(report, op="Lgamma")
    assert pinned["status"] == "elsewhere" and pinned["kernel"] == "CPU"
    [shape] = rows_of(report, op="Shape")
    assert shape["status"] == "default"
    assert shape["host_memory"] == ["output"] and not shape["on_host"]
    [counter] = rows_of(report, op="Less")
    assert counter["types"] == {"T": ["int32"]} and counter["on_host"]
    # What the loop becomes before its nodes are placed.
    for op in ("Enter", "Exit", "Merge", "NextIteration", "Switch"):
        types = [row["types"]["T"] for row in rows_of(report, op=op)]
        assert types == [["float32"], ["int32"]], op
    assert rows_of(report, op="LoopCond")

    lines = text.splitlines()
    assert lines[0].split()[:4] == ["op", "types", "good", "bad"]
    assert lines[2].split() == ["CrossReplicaSum", "T=float32", "1", "nobody",
                                "CrossReplicaSum"]
    assert "only the CPU" in lines[3]
    assert all(len(line) <= 120 for line in lines[:len(report["ops"]) + 2])


def test_all_covered(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:good_one", "--missing")
    assert code == 0, text
    assert report["missing"] == 0
    assert "every op has a kernel for SIM" in text
    assert "Relu" not in text, "--missing lists what is missing"


def test_keras_model(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:trained", "--strict")
    [update] = rows_of(report, op="AssignSubVariableOp")
    assert update["nodes"] == {"training": 4}
    assert code == (1 if update["warning"] else 0), text
    assert ("(!)" in text) == bool(update["warning"])
    [product] = rows_of(report, op="MatMul")
    assert product["nodes"] == {"inference": 2, "training": 5}
    assert product["example"]["layer"] == "first (Dense)"


def save_model(folder):
    import tensorflow as tf

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return tf.math.erfinv(tf.nn.relu(x))

    model = Model()
    tf.saved_model.save(model, folder, signatures={"served": model.__call__})


def test_saved_model(tmp_path):
    saved = harness.run(save_model, str(tmp_path / "saved"), plugin=False)
    assert saved.ok, saved
    code, report, text = run_tool(tmp_path, "saved")
    assert code == 1, text
    assert list(report["functions"]) == ["served"]
    assert rows_of(report, op="Erfinv", status="cpu")
    assert rows_of(report, op="Relu", status="plugin")


def refusals(folder, models):
    """What is said of each model."""
    import os
    import sys
    sys.path.insert(0, str(harness.ROOT / "tools"))
    import coverage_model
    os.chdir(folder)
    said = []
    for model in models:
        try:
            coverage_model.load(model)
            said.append("nothing")
        except coverage_model.ModelError as error:
            said.append(str(error))
    return said


def test_bad_models(tmp_path):
    for model, words in (("nothing.py", "neither FILE.py"),
                         ("a_model.py:raises", "not today")):
        code, report, text = run_tool(tmp_path, model)
        assert code == 2 and report is None, "not a missing kernel"
        assert words in text
    result = harness.run(refusals, str(tmp_path), [
        "a_model.py:absent", "a_model.py:wrong", "a_model.py:no_function"])
    assert result.ok, result
    absent, wrong, no_function = result.value
    assert "has no function absent()" in absent
    assert "returns int: want a Keras model" in wrong
    assert "'f' is no ConcreteFunction" in no_function


def compare_with_core(ops, types):
    """[op, type, whether it ran on the device, whom the tool names] where these
    differ, and how many were compared."""
    import sys
    import numpy as np
    import tensorflow as tf
    sys.path.insert(0, str(harness.ROOT / "tools"))
    import coverage_kernels
    tf.config.set_soft_device_placement(False)
    differ, compared = [], {True: 0, False: 0}
    for op in ops:
        for dtype in types:
            function = tf.function(lambda x, op=op: getattr(tf.raw_ops, op)(x=x))
            x = np.ones((2, 2), tf.dtypes.as_dtype(dtype).as_numpy_dtype)
            try:
                with tf.device("/device:CPU:0"):
                    x = tf.constant(x)
                    function(x)
            except (TypeError, tf.errors.OpError):
                continue  # not a type of this op
            with tf.device("/device:SIM:0"):
                try:
                    ran = "SIM" in getattr(tf.raw_ops, op)(x=x).device
                except tf.errors.OpError:
                    ran = False
            graph = function.get_concrete_function(x).graph.as_graph_def()
            [node] = [n for n in graph.node if n.op == op]
            found = coverage_kernels.find(node, "SIM").status
            compared[ran] += 1
            if ran != (found in ("plugin", "default")):
                differ.append([op, dtype, ran, found])
    return {"differ": differ, "ran": compared[True], "not": compared[False]}


def test_agrees_with_core():
    result = harness.run(
        compare_with_core,
        ["Abs", "Erfinv", "Exp", "Lgamma", "Neg", "Relu", "Sign", "Square",
         "Tanh"],
        ["float32", "float64", "float16", "int8", "int32", "int64"])
    assert result.ok, result
    assert result.value["differ"] == []
    assert result.value["ran"] >= 8 and result.value["not"] >= 8
