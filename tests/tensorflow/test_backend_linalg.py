# SPDX-License-Identifier: Apache-2.0
"""Tests factorizations on a device with the reference primitives: their vectors, whose
signs depend on the library, and complex matrices, products and norms.
test_op_sweep.py compares all other results."""

import backend_linalg_cases as cases
import harness
import pytest


def _run(case, *arguments):
    result = harness.run(case, *arguments, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    assert result.ok, result
    return result.value


@pytest.mark.parametrize("case", [cases.factors, cases.complex_results])
def test_the_device_differs_by_rounding_only(case):
    assert max(_run(case, 1)) < 1e-5


def test_singular_values_and_vectors_of_hard_matrices_are_exact():
    assert max(_run(cases.singular_values, 1)) < 1e-12


def test_a_matrix_that_is_not_finite_has_no_singular_values():
    assert not any(_run(cases.not_finite))
