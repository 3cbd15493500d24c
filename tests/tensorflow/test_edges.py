# SPDX-License-Identifier: Apache-2.0
"""Tests results and errors of the ops in edge_cases.py against TensorFlow's CPU. Our
messages begin with TensorFlow's words, which its users and tests look for."""

import re

import edge_cases
import harness
import numpy as np
import pytest


def outcomes(group, device):
    """Returns {name: (arrays, class of error, message)} of a group's rows."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    found = {}
    with tf.device(f"/device:{device}:0"):
        rows = edge_cases.GROUPS[group](tf, tf.raw_ops)
        for name, call in rows.items():
            try:
                arrays = [np.asarray(x) for x in tf.nest.flatten(call())]
                # JSON has neither complex numbers nor NaN.
                parts = [[y.tolist() for y in (np.real(x).astype("f8"), np.imag(x))]
                         for x in arrays]
                found[name] = repr(parts), "", ""
            except Exception as error:  # pylint: disable=broad-except
                found[name] = "", type(error).__name__, str(error)
    return found


def plain(message):
    """Returns the words of a message without the name of the node, and without numbers."""
    message = re.sub(r"\{\{.*?\}\} ?|\s*\[Op:.*", "", message, flags=re.S)
    message = re.sub(r"^(op '\w+', )?node '[^']*': (cannot read attribute '\w+' as \w+: )?", "", message)
    return re.sub(r"-?\d+", "#", message).split()


@pytest.mark.parametrize("group", edge_cases.GROUPS)
def test_as_on_the_cpu(group):
    device = harness.run(outcomes, group, "SIM")
    assert device.ok, device
    cpu = harness.run(outcomes, group, "CPU")
    assert cpu.ok, cpu
    assert device.value.keys() == cpu.value.keys()
    is_old = harness.release() < (2, 19)  # The CPU rejects less, with other messages.
    if group in edge_cases.REJECTED and not is_old:
        rejected = {name for name, (_, kind, _) in cpu.value.items() if kind}
        assert rejected == edge_cases.REJECTED[group]
    names = {"nan": np.nan, "inf": np.inf, "__builtins__": {}}
    for name, (want, kind, message) in cpu.value.items():
        have, found_kind, found_message = device.value[name]
        if is_old and (found_kind and not kind or name == "range of all int64"):
            continue  # There, a size overflows.
        assert found_kind == kind, (name, found_message, message)
        if kind:
            assert is_old or kind == "ResourceExhaustedError" or (
                plain(found_message)[:3] == plain(message)[:3]), (name, found_message)
            continue
        have, want = eval(have, names), eval(want, names)  # pylint: disable=eval-used
        assert len(have) == len(want) > 0, name
        tolerance = 0 if name in edge_cases.EXACT else 3e-6
        for x, y in zip(have, want):
            np.testing.assert_allclose(x, y, tolerance, tolerance, err_msg=name)


def _stitch():
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        try:
            return tf.dynamic_stitch([[0], [-9]], [[1.], [2.]]).numpy().tolist()
        except tf.errors.InvalidArgumentError as error:
            return str(error)


def test_a_negative_index_of_dynamic_stitch():
    result = harness.run(_stitch)
    assert result.ok, result
    assert "out of range: one of them is negative" in result.value
