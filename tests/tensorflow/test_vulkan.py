# SPDX-License-Identifier: Apache-2.0
"""Tests examples/vulkan on the Vulkan driver of this machine: Mesa's lavapipe, which
runs on the CPU."""

import json
import pathlib
import re

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
    assert empty == cases.REDUCED_EMPTY
    assert {name: e for name, e in errors.items() if not e <= 2e-6} == {}


def test_a_child_forked_before_the_first_use_has_devices():
    result = run(use_in_child, "VULKAN")
    assert result.ok and result.value[1:] == ["[2. 3.]", 2.0], result


def test_use_after_fork_is_an_error():
    result = run(use_after_fork, "VULKAN:0")
    assert result.ok, result
    expect_errors_after_fork(result.value)


def test_a_region_is_a_graph():
    cases.expect_graphs("VULKAN", PLUGIN)


def test_no_driver():
    result = run(cases.both, "VULKAN", 2, VK_DRIVER_FILES="/nonexistent.json")
    assert result.ok and result.value[0] == 0, result
    assert "Vulkan's loader found no driver: install" in result.log


def run_with(fault, tmp_path, function, *arguments):
    """Runs the function on a driver with a fault of tests/vulkan/fault_layer.cc."""
    library = PLUGIN.parents[2] / "tests/vulkan/libvulkan_fault_layer.so"
    (tmp_path / "layer.json").write_text(json.dumps({
        "file_format_version": "1.0.0", "layer": {
            "name": "VK_LAYER_TFPLUG_fault", "type": "INSTANCE",
            "library_path": str(library), "api_version": "1.3.0",
            "implementation_version": "1", "description": "faults"}}))
    return run(function, *arguments, VK_LAYER_PATH=str(tmp_path),
               VK_INSTANCE_LAYERS="VK_LAYER_TFPLUG_fault", VULKAN_FAULT=str(fault),
               TFPLUG_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path))


def add_often(kind):
    """Returns the errors of 100 sums, and of one after the first error."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    errors = []
    for _ in range(100):
        try:
            with tf.device(f"/device:{kind}:0"):
                tf.add(tf.fill([4], 1.0), 2.0, name="my_sum").numpy()
        except tf.errors.OpError as e:
            errors.append([type(e).__name__, str(e)])
            if len(errors) == 2:
                break
    return errors


@pytest.mark.parametrize("fault, missing", [
    ("queues", "queue for compute with timestamps"), ("features", "shaderInt64")])
def test_a_device_without_what_is_needed(fault, missing, tmp_path):
    result = run_with(fault, tmp_path, cases.both, "VULKAN", 2)
    assert result.ok and result.value[0] == 0, result
    [line] = [line for line in result.log.splitlines() if "no suitable Vulkan" in line]
    assert f"has no {missing}" in line


def test_a_kernel_that_the_driver_refuses(tmp_path):
    result = run_with("pipelines", tmp_path, add_often, "VULKAN")
    assert result.ok and len(result.value) == 2, result
    for _, message in result.value:
        assert "vkCreateComputePipelines returned Vulkan's error -13" in message
        assert "Fill" in message or "my_sum" in message, message
        source = pathlib.Path(re.search(r"The source is in (\S+)\. ", message)[1])
        assert source.read_text().startswith("#version 460")


def test_a_lost_device(tmp_path):
    result = run_with(12, tmp_path, add_often, "VULKAN")
    assert result.ok and len(result.value) == 2, result  # it does not hang
    # TensorFlow replaces some of the messages by its own.
    assert "the device is lost" in result.value[0][1] + result.log
