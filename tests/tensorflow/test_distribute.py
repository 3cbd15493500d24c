# SPDX-License-Identifier: Apache-2.0
"""tfplug.distribute: strategies on several devices and in several processes train as
one device does. See docs/guide/distribute.md."""

import functools
import importlib.metadata
import importlib.util
import os
import subprocess
import sys

import distribute_runs as runs
import harness
import numpy as np
import pytest

# TensorFlow 2.22 does not install Keras.
HAS_KERAS = importlib.util.find_spec("keras") is not None
HAS_KERAS_3 = HAS_KERAS and importlib.metadata.version("keras") >= "3"


@functools.lru_cache(maxsize=None)
def expected():
    result = harness.run(runs.on_one_device, env={"CPU_SIM_DEVICES": "1"})
    assert result.ok, result
    assert {"loop", *["keras"] * HAS_KERAS} <= set(result.value)
    losses = result.value["loop"]["loss"]
    assert losses[-1] < 0.8 * losses[0]  # or equal results would show nothing
    return result.value


def check(results, devices):
    assert results.keys() == expected().keys()
    for way, result in results.items():
        assert result["devices"] == devices, way
        for name, values in expected()[way].items():
            if name != "devices":
                np.testing.assert_allclose(result[name], values, rtol=2e-4, atol=2e-5,
                                           err_msg=f"{way}, {name}")


def test_two_mirrored_devices_equal_one():
    result = harness.run(runs.mirrored)
    assert result.ok, result
    check(result.value, ["SIM:0", "SIM:1"])


@pytest.mark.parametrize("devices", [[[0], [1]], [[0, 1], [2, 3]]])
def test_two_workers_equal_one_device(devices):
    """Each process has its own devices, which TensorFlow numbers from 0."""
    results = harness.run_together(runs.in_worker, [[], []],
                                   runs.cluster(devices, worker=2))
    for result in results:
        assert result.ok, result
        check(result.value, [f"SIM:{i}" for i in range(len(devices[0]))])
        assert "looks for GPUs only" not in result.log
        # The second strategy has not reset the worker's server.
        assert "Enabling collective ops after program startup" not in result.log


def test_a_process_can_use_several_strategies():
    result = harness.run(runs.twice)
    assert result.ok, result
    np.testing.assert_allclose(result.value, expected()["loop"]["loss"][-1], rtol=1e-4)


@pytest.mark.skipif(not HAS_KERAS_3, reason="keras.distribution is part of Keras 3")
def test_data_parallel_uses_all_devices():
    result = harness.run(runs.with_data_parallel)
    assert result.ok, result
    names, trained = result.value
    assert names == ["sim:0", "sim:1"]
    assert trained["devices"] == ["SIM:0", "SIM:1"]
    np.testing.assert_allclose(trained["weights"], expected()["keras"]["weights"],
                               rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("variables_on, device", [("CPU", "CPU:0"), ("SIM", "SIM:0")])
def test_parameter_servers(variables_on, device, tmp_path):
    envs = runs.cluster([[0], [0, 1], [2]], chief=1, worker=1, ps=1)
    results = harness.run_together(runs.with_servers,
                                   [[str(tmp_path), variables_on]] * 3, envs)
    coordinator = results[0]
    assert coordinator.ok, "\n".join(map(str, results))
    value = coordinator.value
    assert value["variable"] == f"/job:ps/replica:0/task:0/device:{device}"
    assert value["compute"] == ["/device:SIM:0", "/device:SIM:1"]
    assert value["replicas"] == 2
    # Two replicas: each step subtracts the gradient twice.
    weights = 0.6 ** np.arange(4)
    np.testing.assert_allclose(value["losses"], 8 * weights[:3] ** 2, rtol=1e-5)
    np.testing.assert_allclose(value["weight"], [weights[3]] * 4, rtol=1e-5)
    assert "looks for GPUs only" not in coordinator.log


@pytest.mark.skipif(not HAS_KERAS, reason="the example's models need Keras")
def test_a_killed_worker_ends_the_other_and_nothing_is_lost(tmp_path):
    """A worker is killed; the other reports it; started again, both end with the losses
    and weights of an undisturbed training."""
    # A device cannot be registered twice, and tools/demo installs cpu_sim.
    settings, out = tmp_path / "settings", tmp_path / "out"
    settings.mkdir()
    (settings / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(harness.ROOT / 'tools/lib')!r})\n"
        "import installed_plugins; installed_plugins.hide()\n")
    run = subprocess.run(
        [sys.executable, "-B", harness.ROOT / "examples/distribute/faults.py",
         "--rounds", "1", "--type", "SIM", "--out", out],
        env={**os.environ, "PYTHONPATH": str(settings),
             "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(harness.plugin_path())},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    row = run.stdout.splitlines()[-1]
    assert row.startswith("| killed | 0 | 6 |") and row.endswith("| 4 | equal |"), row
    assert "UnavailableError" in row or "DeadlineExceededError" in row, row


def test_stock_strategies_warn_once_with_the_remedy():
    result = harness.run(runs.stock_strategies)
    assert result.ok, result
    assert all("CPU" in each[0] for each in result.value), result
    for text in (
            "MultiWorkerMirroredStrategy looks for GPUs only and trains on the CPU; it "
            "does not use SIM:0, SIM:1. Use tfplug.distribute.MultiWorkerMirrored",
            "CentralStorageStrategy looks for GPUs only and trains on the CPU; it does "
            'not use SIM:0, SIM:1. Pass compute_devices=["SIM:0"].'):
        assert result.log.count(text) == 1, result.log


def test_strategies_on_devices_do_not_warn():
    result = harness.run(runs.own_strategies)
    assert result.ok, result
    assert [each[0][-5:] for each in result.value] == ["SIM:0", "SIM:1"], result
    assert "looks for GPUs" not in result.log


def test_invalid_arguments_are_refused_with_the_choices():
    result = harness.run(runs.refusals)
    assert result.ok, result
    unknown, no_string, both, lower, hidden = result.value
    assert unknown == "TensorFlow has no NPU devices, but SIM, CPU"
    assert "must be a string, not 3" in no_string
    assert "not both" in both
    assert "no sim devices" in lower
    assert "no devices but CPUs" in hidden


def visible():
    import tensorflow as tf
    return [device.name for device in tf.config.list_physical_devices("SIM")]


@pytest.mark.parametrize("value, count, text", [
    ("", 0, ""), ("SIM:0", 1, ""),
    ("2", 0, "contain 2, but SIM has 2 devices, so none is used")])
def test_visible_devices(value, count, text):
    result = harness.run(visible, env={"TFPLUG_VISIBLE_DEVICES": value})
    assert result.ok and len(result.value) == count, result
    assert text in result.log, result.log


def adapted(without=None):
    """Looks up every private name; returns the release and the errors. `without` is
    removed first."""
    import tensorflow as tf
    adapter = sys.modules[runs.load_package().__name__ + "_adapter"]
    if without:
        owner, attribute = adapter.owner(without), without.split(".")[1]
        if attribute in vars(owner):
            delattr(owner, attribute)
    errors = []
    for name, (module, _, _) in adapter.NAMES.items():
        try:
            if HAS_KERAS_3 or not module.startswith("keras"):
                adapter.get(name)
        except NotImplementedError as error:
            errors.append(str(error))
    return tf.__version__, errors


def test_this_release_has_the_private_names():
    result = harness.run(adapted)
    assert result.ok and result.value[1] == [], result


def test_a_missing_private_name_is_reported_with_the_release():
    name = "ParameterServerStrategyV2Extended._set_num_gpus"
    result = harness.run(adapted, name)
    assert result.ok, result
    release, errors = result.value
    assert len(errors) == 1 and errors[0].startswith(
        f"TensorFlow {release} has no tensorflow.python.distribute."
        f"parameter_server_strategy_v2.{name}, which tfplug.distribute uses for "
        "ParameterServerStrategy. It was tested with TensorFlow 2.12 to 2.22")
