# SPDX-License-Identifier: Apache-2.0
"""Compares the report of tools/coverage with what TensorFlow does."""

import json
import os
import sys

import harness

TOOL = harness.ROOT / "tools/lib/coverage/main.py"

# RandomShuffle has a kernel on the CPU only; CrossReplicaSum has none on any device.
MODEL = """
import tensorflow as tf

@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
def good(x):
    rows = tf.shape(x)[0]
    tf.raw_ops.Spence(x=x)  # unused: TensorFlow prunes it
    return tf.nn.relu(x) / tf.cast(rows, tf.float32)

@tf.function
def bad(x):
    def body(i, y):
        return i + 1, tf.random.shuffle(y)
    y = tf.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    with tf.device("CPU:0"):
        z = tf.math.lgamma(y)
    return tf.raw_ops.CrossReplicaSum(
        input=z, group_assignment=[[0]])

def good_one():
    return {"good": good}

@tf.function(input_signature=[tf.TensorSpec([4], tf.float32)])
def truncates(x):
    return tf.raw_ops.Cast(x=x, DstT=tf.bfloat16, Truncate=True)

@tf.function(input_signature=[tf.TensorSpec([4], tf.float32)])
def rounds(x):
    return tf.raw_ops.Cast(x=x, DstT=tf.bfloat16)

def casts():
    return {"truncates": truncates, "rounds": rounds}

@tf.function(input_signature=[tf.TensorSpec([4], tf.float32)], jit_compile=True)
def compiled(x):
    return tf.nn.relu(x)

@tf.function(input_signature=[tf.TensorSpec([4], tf.float32)])
def calls_compiled(x):
    return compiled(x) + 1

def xla():
    return {"direct": compiled, "nested": calls_compiled}

def model():
    return {"good": good, "bad": (bad, tf.TensorSpec([3], tf.float32))}

def network():
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Input((6,)), layers.Dense(5, "relu", name="first"),
        layers.Dense(3, name="second")])

def trained():
    made = network()
    made.compile("sgd", "mse")
    return made

def wrong():
    return 42

@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
def drawn(x):
    y = tf.tanh(x) * 2 + tf.square(x)
    y += tf.random.normal(tf.shape(y), mean=tf.reduce_mean(y))
    return tf.nn.softmax(y @ tf.transpose(y))

@tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
def fails(x):
    with tf.control_dependencies([tf.debugging.assert_positive(x, "zero is bad")]):
        return tf.exp(x)

def regions():
    return {"drawn": drawn, "fails": fails}

def no_function():
    return {"f": lambda x: x}

def raises():
    raise RuntimeError("the weights are missing")
"""


def run_tool(directory, model, *arguments, plugin=None, env=()):
    """Returns (exit status, report, everything that it printed)."""
    (directory / "a_model.py").write_text(MODEL)
    report = directory / "report.json"
    report.unlink(missing_ok=True)
    run = harness.run_script(
        TOOL, model, "--plugin", plugin or harness.plugin_path(), "--json", report,
        *arguments, cwd=directory, env=dict(env, COLUMNS="120"))
    found = json.loads(report.read_text()) if report.exists() else None
    return run.returncode, found, run.stdout + run.stderr


def rows_of(report, **wanted):
    return [row for row in report["ops"]
            if all(row[name] == value for name, value in wanted.items())]


def test_every_kind_of_result(tmp_path):
    # In a new process, as a user's command: see harness.py.
    code, report, text = run_tool(tmp_path, "a_model.py", env={"PYTHONPATH": ""})
    assert code == 1, text
    assert report["schema"] == 2 and report["device_type"] == "SIM"
    assert set(report) == {"schema", "tensorflow", "model", "device_type",
                           "plugin", "constructed", "functions", "nodes",
                           "missing", "warnings", "ops"}
    assert report["functions"].keys() == {"good", "bad"}
    assert sum(report["functions"].values()) == sum(report["nodes"].values())
    for row in report["ops"]:
        assert set(row) == {"op", "types", "status", "kernel", "host_memory",
                            "on_host", "warning", "nodes", "example"}

    # Ops without any kernel come first, then ops with a kernel on the CPU only. The
    # pruned Spence is not counted.
    assert [row["op"] for row in report["ops"][:2]] == ["CrossReplicaSum", "RandomShuffle"]
    none, cpu = report["ops"][:2]
    assert none["status"] == "none" and none["kernel"] == ""
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
    # The ops that replace the loop before its nodes are placed.
    for op in ("Enter", "Exit", "Merge", "NextIteration", "Switch"):
        types = [row["types"]["T"] for row in rows_of(report, op=op)]
        assert types == [["float32"], ["int32"]], op
    assert rows_of(report, op="LoopCond")

    lines = text.splitlines()
    assert lines[0].split()[:4] == ["op", "types", "good", "bad"]
    assert lines[2].split() == ["CrossReplicaSum", "T=float32", "1", "none",
                                "CrossReplicaSum"]
    assert "only the CPU" in lines[3]
    assert all(len(line) <= 120 for line in lines[:len(report["ops"]) + 2])


def test_all_covered(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:good_one", "--missing")
    assert code == 0, text
    assert report["missing"] == 0
    assert "Every op has a kernel for SIM" in text
    assert "Relu" not in text, "--missing lists only missing kernels"


def test_rejected_attributes(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:casts")
    assert report["constructed"]
    [row] = rows_of(report, op="Cast", status="rejected")
    assert row["nodes"] == {"truncates": 1} and "Truncate=true" in row["warning"]
    [row] = rows_of(report, op="Cast", status="plugin")
    assert row["nodes"] == {"rounds": 1} and not row["warning"]
    assert code == 1 and report["missing"] == 1, text
    assert "rejected by SIM" in text and "Every op has" not in text


def test_xla(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:xla")
    assert code == 0 and "Every op has" in text, text
    assert not rows_of(report, status="xla")


def test_xla_without_the_default_passes(tmp_path):
    code, report, text = run_tool(
        tmp_path, "a_model.py:xla",
        plugin=harness.small_plugin_path("small_kernels"))
    direct = rows_of(report, op="PartitionedCall", status="xla")
    assert {"direct": 1} in [row["nodes"] for row in direct]
    assert all("jit_compile=True" in row["warning"] for row in direct)
    assert code == 1 and "only XLA" in text and "Every op has" not in text


def test_keras_model(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:trained", "--strict")
    [update] = rows_of(report, op="AssignSubVariableOp")
    assert update["nodes"] == {"training": 4}
    assert code == (1 if update["warning"] else 0), text
    assert ("(!)" in text) == bool(update["warning"])
    [product] = rows_of(report, op="MatMul")
    assert product["nodes"] == {"inference": 2, "training": 5}
    assert product["example"]["layer"] == "first (Dense)"


def test_regions(tmp_path):
    code, report, text = run_tool(tmp_path, "a_model.py:regions", "--regions")
    assert code == 1, text  # Assert is on the CPU.
    found = report["regions"]
    assert len(found["regions"]) >= 2
    assert all(region["nodes"] >= 2 for region in found["regions"])
    [before] = [region for region in found["regions"] if region["ends"]]
    [end] = before["ends"]
    assert end["op"] == "RandomStandardNormal" and end["nodes"] == 1
    [drawn] = [kind for kind in found["outside"] if kind["op"] == "RandomStandardNormal"]
    assert drawn["nodes"] == 1 and drawn["why"] == "its op has a state"
    [failed] = found["failed"]
    assert failed.startswith("fails: InvalidArgumentError") and "zero is bad" in failed
    assert f"{before['name']} ends at {end['example']} ({end['op']})" in text
    assert "in no region: 1 x RandomStandardNormal, its op has a state" in text
    assert "A function failed, which may lack regions: fails" in text
    assert "regions" not in run_tool(tmp_path, "a_model.py:good_one")[1]


def save_model(directory):
    import tensorflow as tf

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            return tf.random.shuffle(tf.nn.relu(x))

    model = Model()
    tf.saved_model.save(model, directory, signatures={"served": model.__call__})


def test_saved_model(tmp_path):
    saved = harness.run(save_model, str(tmp_path / "saved"), plugin=False)
    assert saved.ok, saved
    code, report, text = run_tool(tmp_path, "saved")
    assert code == 1, text
    assert list(report["functions"]) == ["served"]
    assert rows_of(report, op="RandomShuffle", status="cpu")
    assert rows_of(report, op="Relu", status="plugin")


def refusals(directory, models):
    """Returns the error message for each model."""
    import sys
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from coverage import model
    os.chdir(directory)
    messages = []
    for path in models:
        try:
            model.load(path)
            messages.append("no error")
        except model.ModelError as error:
            messages.append(str(error))
    return messages


def test_bad_models(tmp_path):
    for model, words in (("nothing.py", "is neither FILE.py"),
                         ("a_model.py:raises", "the weights are missing")):
        code, report, text = run_tool(tmp_path, model)
        assert code == 2 and report is None, "not a missing kernel"
        assert words in text
    result = harness.run(refusals, str(tmp_path), [
        "a_model.py:absent", "a_model.py:wrong", "a_model.py:no_function"])
    assert result.ok, result
    absent, wrong, no_function = result.value
    assert "has no function absent()" in absent
    assert "returns int. It must return a Keras model" in wrong
    assert "'f' is neither a ConcreteFunction" in no_function


def compare_with_tensorflow(ops, types, device_type):
    """Returns [op, type, whether it ran on the device, the tool's status] for each
    difference, and the numbers of ops that ran and did not run there."""
    import numpy as np
    import tensorflow as tf
    sys.path.insert(0, str(harness.ROOT / "tools/lib"))
    from coverage import kernels
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
            with tf.device(f"/device:{device_type}:0"):
                try:
                    ran = device_type in getattr(tf.raw_ops, op)(x=x).device
                except tf.errors.OpError:
                    ran = False
            graph = function.get_concrete_function(x).graph.as_graph_def()
            [node] = [n for n in graph.node if n.op == op]
            found = kernels.find(node, device_type).status
            compared[ran] += 1
            if ran != (found in ("plugin", "default")):
                differ.append([op, dtype, ran, found])
    return {"differ": differ, "ran": compared[True], "not": compared[False]}


OPS = ["Abs", "Dawsn", "Exp", "Expint", "FresnelCos", "FresnelSin", "Lgamma", "Neg",
       "Relu", "Sign", "Spence", "Square", "Tanh"]
TYPES = ["float32", "float64", "float16", "int8", "int32", "int64"]


def test_agrees_with_tensorflow():
    result = harness.run(compare_with_tensorflow, OPS, TYPES, "SIM")
    assert result.ok, result
    assert result.value["differ"] == []
    assert result.value["ran"] >= 8


def test_missing_kernels_are_found():
    """A device without kernels for these ops has TensorFlow's kernels for int32."""
    result = harness.run(
        compare_with_tensorflow, OPS, TYPES, "SUM", plugin=False,
        env={"TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
             str(harness.small_plugin_path("sum_device"))})
    assert result.ok, result
    assert result.value["differ"] == []
    assert result.value["not"] >= 8 and result.value["ran"] >= 4
