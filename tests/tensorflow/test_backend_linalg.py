# SPDX-License-Identifier: Apache-2.0
"""Tests factorizations on a device with the reference primitives: their vectors, whose
signs depend on the library, and complex matrices, products and norms.
test_op_sweep.py compares all other results."""

import backend_linalg_cases as cases
import harness
import pytest


@pytest.mark.parametrize("case", [cases.factors, cases.complex_results])
def test_the_device_differs_by_rounding_only(case):
    result = harness.run(case, 1, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    assert result.ok, result
    assert max(result.value) < 1e-5
