# SPDX-License-Identifier: Apache-2.0
"""ABORTED spares core the parsing of a result: by a plug-in that returns garbage
or another graph with either status (tests/tensorflow/plugins/unread_result.cc).
docs/measured/tensorflow_behaviour.md has the figures of older releases."""

import re

import harness
import pytest

SIN, COS = 1.9382766, 3.1327477  # of what run() computes, with either op


def run():
    import tensorflow as tf

    @tf.function
    def f(x):
        return tf.sin(x) * 3 + x

    return float(f(tf.constant(0.5)))


@pytest.fixture(scope="module", name="results")
def _results():
    """{what is returned: what became of it}"""
    plugin = str(harness.small_plugin_path("unread_result"))
    return {mode: harness.run(run, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": plugin, "UNREAD_RESULT": mode,
        "TF_CPP_MIN_LOG_LEVEL": "0"})
        for mode in ("OK garbage", "OK edited", "ABORTED garbage",
                     "ABORTED edited")}


def test_with_ok_core_reads_the_result(results):
    garbage, edited = results["OK garbage"], results["OK edited"]
    assert garbage.ok and garbage.value == pytest.approx(SIN), garbage
    assert "PluggableGraphOptimizer failed: " in garbage.log, garbage.log
    assert edited.ok and edited.value == pytest.approx(COS), edited


@pytest.mark.parametrize("what", ["garbage", "edited"])
def test_with_aborted_core_reads_nothing(results, what):
    result = results[f"ABORTED {what}"]
    assert result.ok and result.value == pytest.approx(SIN), result
    assert "PluggableGraphOptimizer failed" not in result.log, result.log


def test_the_memory_comes_back_at_once_or_after_parsing(results):
    later = {mode: [float(ms) for ms in re.findall(
        r"released after ([\d.]+) ms", results[mode].log)]
        for mode in results}
    # Both times; the edited one is found with its Sin gone the second time.
    assert len(later["ABORTED edited"]) == 2, later
    assert len(later["OK edited"]) == 1, later
    # 32 MiB are not parsed in this time; core's own steps take microseconds.
    assert 100 * min(later["ABORTED edited"]) < min(later["OK edited"]), later
