# SPDX-License-Identifier: Apache-2.0
"""Tests kernels of tfplug/backend/ops/ on a device with the reference primitives: each
case of backend_family_cases.py against TensorFlow's CPU kernel, with the errors."""

import backend_family_cases as cases
import harness


def _run(function, *arguments):
    result = harness.run(function, *arguments, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    assert result.ok, result
    return result.value


def test_equal_the_cpu():
    result = _run(cases.compare, 1)
    wrong = {case: found for case, found in result.items() if not 0 <= found[0] <= 16}
    assert len(result) > 500
    assert not wrong


def test_matrices_are_products_of_their_factors():
    assert max(_run(cases.factors, 1)) < 1e-5
