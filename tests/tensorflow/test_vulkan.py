# SPDX-License-Identifier: Apache-2.0
"""Tests examples/vulkan on the Vulkan driver of this machine: Mesa's lavapipe, which
runs on the CPU."""

import compiled_cases as cases
import harness
import numpy as np
import pytest
from test_devices import expect_errors_after_fork, use_after_fork
from test_like_gpus import use_in_child

PLUGIN = harness.plugin_path().parents[1] / "vulkan/libtfplug_vulkan.so"
pytestmark = pytest.mark.skipif(
    not PLUGIN.exists(), reason="libvulkan-dev or glslang-dev is not installed")


def run(function, *arguments, **env):
    return harness.run(function, *arguments, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(PLUGIN), **env})


def test_everything():
    result = run(cases.everything, "VULKAN")
    assert result.ok, result
    (count, device, cpu), memory, empty, errors = result.value
    assert count > 0, "there is no Vulkan driver (Debian: mesa-vulkan-drivers)"
    assert device[0][-1] < 0.8 * device[0][0]
    np.testing.assert_allclose(device[0], cpu[0], rtol=1e-5)
    for on_device, on_cpu in zip(device[1], cpu[1]):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-4, atol=1e-5)
    assert memory == ["ResourceExhaustedError", 2000]
    assert empty == [False, [0.0, 0.0], [[0.0, 0.0]]]
    assert {name: e for name, e in errors.items() if not e <= 2e-6} == {}


def test_a_child_forked_before_the_first_use_has_devices():
    result = run(use_in_child, "VULKAN")
    assert result.ok and result.value[1:] == ["[2. 3.]", 2.0], result


def test_use_after_fork_is_an_error():
    result = run(use_after_fork, "VULKAN:0")
    assert result.ok, result
    expect_errors_after_fork(result.value)


def test_no_driver():
    result = run(cases.both, "VULKAN", 2, VK_DRIVER_FILES="/nonexistent.json")
    assert result.ok and result.value[0] == 0, result
    assert "Vulkan's loader found no driver: install" in result.log
