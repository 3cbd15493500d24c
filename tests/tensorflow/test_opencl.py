# SPDX-License-Identifier: Apache-2.0
"""Tests examples/opencl on the OpenCL driver of this machine: Debian's PoCL, which runs
on the CPU."""

import compiled_cases as cases
import harness
import model_runs
import numpy as np
import pytest
from test_devices import expect_errors_after_fork, use_after_fork
from test_like_gpus import use_in_child

PLUGIN = harness.plugin_path().parents[1] / "opencl/libtfplug_opencl.so"
pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="opencl-c-headers is not installed")


def run(function, *arguments, **env):
    [result] = harness.run_each(
        function, [list(arguments)], plugin=False,
        env={"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(PLUGIN), **env})
    assert result.ok, result
    return result.value


def test_training_equals_the_cpu():
    count, device, cpu = run(cases.both, "OPENCL", 10)
    assert count > 0, "there is no OpenCL driver (Debian: pocl-opencl-icd)"
    assert device[0][-1] < 0.8 * device[0][0]
    np.testing.assert_allclose(device[0], cpu[0], rtol=1e-5)
    for on_device, on_cpu in zip(device[1], cpu[1]):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-4, atol=1e-5)
    assert "OPENCL" in device[2] or device[2] == "", device[2]


def test_recurrent_layers_stay_on_the_device():
    # Masks are lists of bool, gradients sums of lists, the initializer a QR.
    found = run(model_runs.compare, "bidirectional", {}, TFPLUG_MODELS_DEVICE="OPENCL")
    assert found["inference"] <= 1e-5 and found["gradients"] <= 1e-5, found
    assert found["spread"] > 0
    # The CPU counts the steps of the mask.
    assert set(found["ops"]) == {"OPENCL:0", "CPU:0"} and found["ops"]["CPU:0"] <= 9


def test_out_of_memory():
    error, total = run(cases.fill_memory, "OPENCL")
    assert error == "ResourceExhaustedError"
    assert total == 2000


def test_reductions_of_empty_tensors():
    assert run(cases.reduce_empty, "OPENCL") == cases.REDUCED_EMPTY


def test_ops():
    errors = run(cases.apply_ops, "OPENCL")
    assert {name: e for name, e in errors.items() if not e <= 2e-6} == {}


def test_a_child_forked_before_the_first_use_has_devices():
    assert run(use_in_child, "OPENCL")[1:] == ["[2. 3.]", 2.0]


def test_use_after_fork_is_an_error():
    expect_errors_after_fork(run(use_after_fork, "OPENCL:0"))


def test_a_region_is_a_graph():
    cases.expect_graphs("OPENCL", PLUGIN)


def test_no_driver():
    # The loader finds no driver in an empty folder.
    count, _, _ = run(cases.both, "OPENCL", 2, OCL_ICD_VENDORS="/nonexistent")
    assert count == 0
