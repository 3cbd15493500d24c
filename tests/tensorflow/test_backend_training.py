# SPDX-License-Identifier: Apache-2.0
"""Tests the optimizers' updates of tfplug/op_kernels/training.h on a device with the
reference primitives: the variables after an update equal those of TensorFlow's CPU
kernel. Releases 2.19 to 2.21 do not export what such a kernel needs."""

import backend_training_cases as cases
import harness
import pytest

# The largest distance, in units in the last place. TensorFlow rounds each step to half
# or bfloat16, tfplug only the result.
TOLERANCE = {"float64": 8, "float32": 8, "float16": 16, "bfloat16": 16}


def run_each(function, arguments):
    results = harness.run_each(function, arguments, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    for result in results:
        assert result.ok, result
    return [result.value for result in results]


def test_updates_equal_the_cpu():
    [ops] = run_each(cases.ops, [[]])
    assert len(ops) >= 25
    if not harness.lets_kernels_update_variables():
        pytest.skip("this release exports no functions for variables")
    for op, worst in zip(ops, run_each(cases.compare, [[op, 3, 4] for op in ops])):
        for dtype, (apart, arguments) in worst.items():
            assert apart <= TOLERANCE[dtype], f"{op} {dtype}: {apart}: {arguments}"


def test_wrong_arguments():
    """Also where a release lets no kernel update a variable: others compute the values."""
    gradient, rate, slot = run_each(cases.failures, [[]])[0]
    assert gradient.startswith("InvalidArgumentError") and (
        "the gradient must have shape [2], not [3]" in gradient), gradient
    assert "input 1 is not a scalar" in rate, rate
    assert "accum must have shape [2], not [1]" in slot, slot
