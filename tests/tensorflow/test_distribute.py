# SPDX-License-Identifier: Apache-2.0
"""tfplug.distribute: strategies on several devices and in several processes train as
one device does. See docs/guide/distribute.md."""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys

import distribute_runs as runs
import harness
import numpy as np
import pytest

# TensorFlow 2.22 does not install Keras.
HAS_KERAS = importlib.util.find_spec("keras") is not None
HAS_KERAS_3 = HAS_KERAS and harness.keras_version() >= "3"


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


def copied_plugin(folder):
    """Returns the environment with another build of the plug-in."""
    path = folder / "libtfplug_cpu_sim.so"
    path.write_bytes(harness.plugin_path().read_bytes() + b"\0")
    return {"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(path)}


def test_workers_with_different_devices_are_refused():
    for result in harness.run_together(runs.in_worker, [[], []],
                                       runs.cluster([[0], [1, 2]], worker=2)):
        assert result.error == (
            "ValueError: the workers' devices differ: worker 0 has 1 of type SIM, worker 1 "
            "has 2 of type SIM. Give each worker the same number of devices "
            "(TFPLUG_VISIBLE_DEVICES selects them)"), result


def test_workers_with_different_plugins_are_refused_unless_permitted(tmp_path):
    one, two = runs.cluster([[0], [1]], worker=2)
    two.update(copied_plugin(tmp_path))
    for result in harness.run_together(runs.in_worker, [[], []], [one, two]):
        assert re.fullmatch(
            r"ValueError: the workers' plug-ins differ: worker 0 has libtfplug_cpu_sim\.so "
            r"\(SHA-256 \w{12}\), worker 1 has libtfplug_cpu_sim\.so \(SHA-256 \w{12}\)\. "
            r"Install the same file on all, or pass same_plugins=False",
            result.error), result
    one, two = runs.cluster([[0], [1]], worker=2)
    two.update(copied_plugin(tmp_path))
    for result in harness.run_together(runs.with_other_plugins, [[], []], [one, two]):
        assert result.ok, result
        np.testing.assert_allclose(result.value, expected()["loop"]["loss"], rtol=1e-4)


def test_slurm_starts_the_workers():
    """With the variables that srun sets; TensorFlow's resolver reads no others."""
    port = runs.ports(1)[0]
    envs = [{"SLURM_PROCID": str(i), "SLURM_STEP_NUM_TASKS": "2",
             "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": "2",
             "CPU_SIM_DEVICES": "2", "TFPLUG_VISIBLE_DEVICES": str(i)} for i in range(2)]
    for result in harness.run_together(runs.in_slurm, [[port], [port]], envs):
        assert result.ok, result
        np.testing.assert_allclose(result.value, expected()["loop"]["loss"], rtol=1e-4)


@pytest.mark.parametrize("name, size", [("cpu_sim", "4x2"), ("opencl", "2x2")])
def test_a_sample_of_the_matrix(name, size, monkeypatch, capsys):
    """tools/distribute matrix runs all sizes in all releases, on cuda_like, too."""
    examples = harness.plugin_path().parents[1]
    if not (examples / f"{name}/libtfplug_{name}.so").exists():
        pytest.skip(f"examples/{name} is not built")
    monkeypatch.syspath_prepend(harness.ROOT / "tools/lib/distribute")
    monkeypatch.setenv("TFPLUG_BUILD", str(examples.parent))
    import cells
    cells.main(name, size)
    results = list(map(json.loads, capsys.readouterr().out.splitlines()))
    ways = {tuple(result["cell"]) for result in results}
    sizes = tuple(map(int, size.split("x")))
    assert ways >= {(*sizes, "loop"), *[(*sizes, "keras")] * HAS_KERAS}
    for result in results:
        assert result.get("difference", 1) <= 1e-4, result


def test_a_watchdog_ends_a_process_without_progress():
    stuck = harness.run(runs.watched, 10)
    assert stuck.died == 75, stuck
    assert "No progress in 1 s, so this process ends" in stuck.log
    assert harness.run(runs.watched, 0).ok


@pytest.fixture
def three_hosts():
    sys.path.append(str(harness.ROOT / "examples/distribute"))
    import network
    try:
        net = network.Network(3, *network.parse("80mbit,20ms"))
    except RuntimeError as error:
        pytest.skip(str(error))
    yield net
    net.close()


SERVE = """
import socket
listener = socket.create_server(("", 7000))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    while data := connection.recv(1 << 20):
        if data.endswith(b"?"):
            connection.sendall(b"!")
"""
SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 7000), timeout=5)
for size in (1, 8_000_000):
    begin = time.monotonic()
    connection.sendall(bytes(size - 1) + b"?")
    assert connection.recv(1) == b"!"
    print(time.monotonic() - begin)
"""


def test_hosts_have_links_of_a_set_bandwidth_and_latency(three_hosts):
    def send():
        return subprocess.run(
            [*three_hosts.command(0), sys.executable, "-c", SEND,
             three_hosts.addresses[1]], text=True, capture_output=True, check=False)

    server = subprocess.Popen([*three_hosts.command(1), sys.executable, "-c", SERVE],
                              stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        round_trip, transfer = map(float, send().stdout.split())
        assert 0.04 <= round_trip < 0.2  # much more than 40 ms on a busy machine only
        assert 0.84 <= transfer < 2.5  # 64 Mbit through 80 Mbit/s, and a round trip
        assert three_hosts.bytes_sent[0] >= 8_000_000 and not three_hosts.bytes_sent[2]
        three_hosts.cut(1)
        assert "timed out" in send().stderr
        three_hosts.heal(1)
        assert send().returncode == 0
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(not HAS_KERAS, reason="the example's models need Keras")
def test_faults_are_reported_and_nothing_is_lost(tmp_path):
    """Hosts of examples/distribute have faults, report them and start again, and end with
    the losses and weights of an undisturbed training."""
    # A device cannot be registered twice, and tools/demo installs cpu_sim.
    settings, out = tmp_path / "settings", tmp_path / "out"
    settings.mkdir()
    (settings / "sitecustomize.py").write_text(
        f"import sys; sys.path.append({str(harness.ROOT / 'tools/lib')!r})\n"
        "import installed_plugins; installed_plugins.hide()\n")
    run = subprocess.run(
        [sys.executable, "-B", harness.ROOT / "examples/distribute/faults.py",
         "--rounds", "3", "--only", "killed", "device", "version", "--workers", "2",
         "--loopback", "--type", "SIM", "--out", out],
        env={**os.environ, "PYTHONPATH": str(settings),
             "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(harness.plugin_path())},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
    rows = {row.split(" | ")[0]: row for row in run.stdout.splitlines()[-3:]}
    assert rows.keys() == {"| killed", "| device", "| version"}
    assert all(row.endswith("| equal |") for row in rows.values())
    assert re.search("UnavailableError|DeadlineExceededError", rows["| killed"])
    assert "the workers' plug-ins differ" in rows["| version"]


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
