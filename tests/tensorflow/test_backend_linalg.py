# SPDX-License-Identifier: Apache-2.0
"""Tests the vectors of factorizations on a device with the reference primitives, whose
signs depend on the library. test_op_sweep.py compares all other results."""

import backend_linalg_cases as cases
import harness


def test_matrices_are_products_of_their_factors():
    result = harness.run(cases.factors, 1, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    assert result.ok, result
    assert max(result.value) < 1e-5
