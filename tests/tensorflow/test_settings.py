# SPDX-License-Identifier: Apache-2.0
"""Tests several plug-ins in one process: TensorFlow crashes on a graph with nodes on
the devices of two plug-ins whose settings for its rewriters differ
(passes/internal/shared_settings.h). The plug-ins are few_kernels.cc, built for three
devices, and foreign_optimizer.c, which turns off two rewriters on the CPU and does not
use tfplug."""

import shutil

import harness
import pytest

FEW = [harness.small_plugin_path(name) for name in ("few_a", "few_b", "few_c")]
FOREIGN = FEW[0].with_name("libforeign_optimizer.so")


def run_graph(paths, devices, is_import):
    """Loads the plug-ins and runs a graph with nodes on all devices."""
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    for path in paths:
        if is_import:  # what `import tensorflow` does for tensorflow-plugins
            load_library.load_library(path)
        load_library.load_pluggable_device_library(path)

    @tf.function
    def function(x):
        for device in [*devices, "CPU"]:
            with tf.device(f"/device:{device}:0"):
                x = x + x + x + x
        return x

    return float(function(tf.constant([1.0]))[0])


def _run(*paths, is_import=False, settings=""):
    """`settings`: of each few_kernels, separated by ';'."""
    env = {}
    devices = [path.stem[len("libtfplug_"):].upper() for path in paths
               if path in FEW]
    for device in devices:
        env[device + "_KERNELS"] = "AddV2"
    for device, text in zip(devices, settings.split(";")):
        env[device + "_SETTINGS"] = text
    result = harness.run(run_graph, [str(path) for path in paths], devices,
                         is_import, plugin=False, env=env)
    if result.died == 0:
        assert result.ok, result
        assert result.value == 4.0 ** (len(devices) + 1)
    return result


A, B, C = FEW


@pytest.mark.parametrize("paths", [
    [A, B], [A, B, C], [FOREIGN, A], [FOREIGN, A, B]])
def test_plugins_without_settings(paths):
    result = _run(*paths)
    assert result.ok, result
    assert "conflicting" not in result.log
    assert "refused" not in result.log


def test_the_first_setting_applies_to_all():
    result = _run(A, B, C, settings="constant_folding=off;;")
    assert result.ok, result
    assert "refused" not in result.log


@pytest.mark.parametrize("settings, refused", [
    (";remapping=off", "remapping = kOff for FEW_B"),
    ("remapping=off;remapping=on", "remapping = kOn for FEW_B"),
    (";disable_model_pruning=on", "disable_model_pruning = kOn for FEW_B")])
def test_a_setting_that_differs_is_refused(settings, refused):
    result = _run(A, B, settings=settings)
    assert result.ok, result
    assert f"{refused} is refused, because it differs for FEW_A" in result.log


def test_a_setting_that_differs_from_a_foreign_plugin_is_refused():
    result = _run(FOREIGN, A, settings="constant_folding=off")
    assert result.ok, result
    assert ("constant_folding = kOff for FEW_A is refused, because it differs for "
            "CPU" in result.log)
    assert str(FOREIGN) in result.log


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A folder like tensorflow-plugins, from which all libraries are loaded before the
    first is registered."""
    folder = tmp_path_factory.mktemp("plugins")
    for path in [*FEW, FOREIGN]:
        shutil.copy(path, folder)
    return folder


def run_folder(folder, order):
    import os
    listdir = os.listdir
    os.listdir = lambda path: order if path == folder else listdir(path)
    return run_graph([folder], ["FEW_A", "FEW_B", "FEW_C"], True)


@pytest.mark.parametrize("order", [[3, 0, 1, 2], [0, 1, 2, 3], [2, 3, 1, 0]])
def test_a_folder_in_any_order(folder, order):
    names = [path.name for path in [*FEW, FOREIGN]]
    env = {f"FEW_{x}_KERNELS": "AddV2" for x in "ABC"}
    env["FEW_C_SETTINGS"] = "remapping=off"
    result = harness.run(run_folder, str(folder), [names[i] for i in order],
                         plugin=False, env=env)
    assert result.ok, result
    assert result.value == 4.0 ** 4
    assert "refused" not in result.log


def test_a_foreign_plugin_loaded_later_cannot_be_joined():
    """TensorFlow has our settings then, and accepts no others."""
    result = _run(A, FOREIGN)
    assert result.died != 0, "TensorFlow no longer crashes: relax shared_settings.h"
    assert ("the setting layout_optimizer of CPU" in result.log and
            "load that library first" in result.log), result.log
