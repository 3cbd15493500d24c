# SPDX-License-Identifier: Apache-2.0
"""With ABORTED, TensorFlow does not parse the result of a graph optimizer. The plug-in
returns garbage or another graph, with OK or ABORTED
(tests/tensorflow/plugins/unread_result.cc). docs/measured/tensorflow_behavior.md has
the measurements for older releases."""

import re

import harness
import pytest

SIN, COS = 1.9382766, 3.1327477  # the result of run() with each op


def run():
    import tensorflow as tf

    @tf.function
    def f(x):
        return tf.sin(x) * 3 + x

    return float(f(tf.constant(0.5)))


@pytest.fixture(scope="module", name="results")
def _results():
    """Returns {returned status and contents: result of the process}."""
    plugin = str(harness.small_plugin_path("unread_result"))
    return {mode: harness.run(run, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": plugin, "UNREAD_RESULT": mode,
        "TF_CPP_MIN_LOG_LEVEL": "0"})
        for mode in ("OK garbage", "OK edited", "ABORTED garbage",
                     "ABORTED edited")}


def test_with_ok_tensorflow_reads_the_result(results):
    garbage, edited = results["OK garbage"], results["OK edited"]
    assert garbage.ok and garbage.value == pytest.approx(SIN), garbage
    assert "PluggableGraphOptimizer failed: " in garbage.log, garbage.log
    assert edited.ok and edited.value == pytest.approx(COS), edited


@pytest.mark.parametrize("what", ["garbage", "edited"])
def test_with_aborted_tensorflow_reads_nothing(results, what):
    result = results[f"ABORTED {what}"]
    assert result.ok and result.value == pytest.approx(SIN), result
    assert "PluggableGraphOptimizer failed" not in result.log, result.log


def test_memory_is_released_at_once_or_after_parsing(results):
    later = {mode: [float(ms) for ms in re.findall(
        r"released after ([\d.]+) ms", results[mode].log)]
        for mode in results}
    # ABORTED: both runs edit. OK: the second run finds no Sin in the edited graph.
    assert len(later["ABORTED edited"]) == 2, later
    assert len(later["OK edited"]) == 1, later
    # Parsing 32 MiB takes much longer; TensorFlow's other steps take microseconds.
    assert 100 * min(later["ABORTED edited"]) < min(later["OK edited"]), later
