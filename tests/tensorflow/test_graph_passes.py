# SPDX-License-Identifier: Apache-2.0
"""Tests which graphs TensorFlow passes to a graph optimizer, and how it uses the
result. The plug-in has no device (tests/tensorflow/plugins/graph_probe.cc); its second
pass replaces Sin with Cos, or fails. docs/measured/tensorflow_behavior.md describes
TensorFlow's behavior."""

import os
import pathlib

import harness
import pytest

PROBE = harness.small_plugin_path("graph_probe")


def _summaries(folder):
    """Returns a summary of each graph that the passes received."""
    from tensorflow.core.framework import graph_pb2
    found = []
    for path in sorted(pathlib.Path(folder).glob("*.pb")):
        graph = graph_pb2.GraphDef.FromString(path.read_bytes())
        names = path.with_suffix(".names").read_text().split("\n")[:-1]
        found.append({
            "nodes": len(graph.node),
            "ops": sorted({n.op for n in graph.node}),
            "devices": sorted({n.device for n in graph.node}),
            "functions": {f.signature.name.split("inference_")[-1][:5]:
                          len(f.node_def) + len(f.ret)
                          for f in graph.library.function},
            "fetched": [n[6:] for n in names if n.startswith("fetch ")],
            "kept": [n[5:] for n in names if n.startswith("keep ")],
        })
    return found


def _function(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function(experimental_attributes={"_noinline": True})
    def outer(x):
        return inner(x) * 2 + v + 1

    @tf.function(experimental_attributes={"_noinline": True})
    def inner(x):
        return tf.sin(x) * 3 - v - 1

    @tf.function
    def f(x):
        y = tf.sin(x) * 3
        return outer(y) + tf.cond(tf.reduce_sum(x) > 0,
                                  lambda: tf.sin(x) + y * v, lambda: x)
    return f


def _expected(function, np):
    x = np.array([0.5, 1.0])
    v = np.array([1.0, 2.0])
    y = function(x) * 3
    return (function(y) * 3 - v - 1) * 2 + v + 1 + function(x) + y * v


def run_function():
    import numpy as np
    import tensorflow as tf
    result = _function(tf)(tf.constant([0.5, 1.0])).numpy()
    is_sin = np.allclose(result, _expected(np.sin, np))
    is_cos = np.allclose(result, _expected(np.cos, np))
    return is_sin, is_cos, _summaries(os.environ["GRAPH_PROBE_FOLDER"])


def run_session():
    import tensorflow as tf
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        @tf.function(experimental_attributes={"_noinline": True})
        def inner(x):
            with tf.device("/device:CPU:0"):
                return tf.sin(x) * 3 + 1 - x
        @tf.function(experimental_attributes={"_noinline": True})
        def bare(x):
            return tf.sin(x) * 3 + 1 - x
        x = tf.compat.v1.placeholder(tf.float32)
        y = inner(x) + bare(x) + x * 2
        result = session.run(y, {x: 0.5})
    return float(result), _summaries(os.environ["GRAPH_PROBE_FOLDER"])


# The message in the log for each failure. Each runs in its own process, because
# TensorFlow logs at most one such line per minute.
FAILURES = {
    "error": "INVALID_ARGUMENT: optimize_func: graph_probe::Edit: node 'Sin' "
             "is half edited",
    "throw": "INTERNAL: optimize_func: graph_probe::Edit: C++ exception: "
             "thrown while half edited",
    "remove": "FAILED_PRECONDITION: optimize_func: graph_probe::Edit: node '",
    "cycle": "INVALID_ARGUMENT: optimize_func: graph_probe::Edit: ",
    "properties": "Sin makes float[2]; op has 1 attr; input is known; a new "
                  "node is unknown",
}


@pytest.fixture(scope="module", name="probe")
def _probe(tmp_path_factory):
    """Returns probe(function, mode), the result of a function in a process."""
    def run(function, mode):
        return harness.run(function, plugin=False, env={
            "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(PROBE),
            "GRAPH_PROBE_FOLDER": str(tmp_path_factory.mktemp("graphs")),
            "GRAPH_PROBE_MODE": mode, "TF_CPP_MIN_LOG_LEVEL": "0"})
    cases = [(run_session, "nothing")]
    cases += [(run_function, mode) for mode in ("nothing", "edit", *FAILURES)]
    results = {case: run(*case) for case in cases}
    return lambda function, mode: results[function, mode]


def test_unchanged_is_not_an_error_and_changes_nothing(probe):
    result = probe(run_function, "nothing")
    assert result.ok, result
    is_sin, _, graphs = result.value
    assert is_sin
    assert "Plugin optimizer for device_type CPU is enabled" in result.log
    assert "failed" not in result.log  # ABORTED is not reported as a failure
    # The graph of f and the bodies that are not inlined are each optimized twice.
    assert len(graphs) == 6
    assert graphs[0::2] == graphs[1::2]
    first = graphs[0]
    # The graph is placed, branches are inlined, and functions have signatures only.
    assert first["devices"] == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    assert first["functions"] == {"inner": 0, "outer": 0}
    assert {"Switch", "Merge", "_Arg", "_Retval"} <= set(first["ops"])
    assert not {"If", "StatelessIf"} & set(first["ops"])
    assert first["fetched"] == ["identity_RetVal"]
    assert "identity_RetVal" in first["kept"]
    # Each body is optimized in a call of its own when it is first run. By then, it has
    # been placed, too.
    assert graphs[2]["devices"] == first["devices"]
    assert graphs[2]["functions"] == {"inner": 0}
    assert graphs[4]["functions"] == {}
    assert "Sin" in graphs[4]["ops"]


def test_functions_branches_and_bodies_are_edited(probe):
    result = probe(run_function, "edit")
    assert result.ok, result
    is_sin, is_cos, graphs = result.value
    assert is_cos and not is_sin
    # The second run finds nothing left to edit.
    assert "Cos" in graphs[1]["ops"] and "Sin" not in graphs[1]["ops"]


# Identifiers with "::" would look like classes to pytest-xdist, which then computes the
# fixture in several processes.
@pytest.mark.parametrize("mode, words", FAILURES.items(), ids=FAILURES)
def test_after_a_failure_the_original_graph_is_run(probe, mode, words):
    result = probe(run_function, mode)
    assert result.ok, result
    assert result.value[0], "the result is not the original graph's"
    assert words in result.log, result.log


def test_a_session_optimizes_bodies_from_their_source(probe):
    result = probe(run_session, "nothing")
    assert result.ok, result
    value, graphs = result.value
    assert abs(value - 2 * (0.479425539 * 3 + 0.5) - 1) < 1e-5
    assert len(graphs) == 8
    assert graphs[0]["functions"] == {"inner": 0, "bare_": 0}
    assert graphs[0]["fetched"] == ["add_1:0"]
    # First, the body that names a device is optimized, with only that device; then
    # both bodies, when they are first run.
    assert graphs[2]["devices"] == ["", "/device:CPU:0"]
    for graph in graphs[4:]:
        assert "Sin" in graph["ops"] and graph["functions"] == {}
        assert graph["devices"] == [
            "/job:localhost/replica:0/task:0/device:CPU:0"]


# ---- Rewriters that would break a device -------------------------------------

def run_sums():
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    @tf.function
    def f(a, b, c, d):
        return a + b + c + d

    with tf.device("/device:SUM:0"):
        ones = [tf.constant([1.0, 2.0]) for _ in range(4)]
        return f(*ones).numpy().tolist()


def _run_sums(**env):
    return harness.run(run_sums, plugin=False, env=dict(
        env, TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(
            harness.small_plugin_path("sum_device"))))


def test_without_keep_to_own_kernels_sums_have_no_kernel():
    result = _run_sums(SUM_DEVICE="unsafe")
    assert result.died == 0 and "AddN" in result.error, result


def test_keep_to_own_kernels_uses_only_ops_with_kernels():
    result = _run_sums()
    assert result.ok, result
    assert result.value == [4.0, 8.0]
