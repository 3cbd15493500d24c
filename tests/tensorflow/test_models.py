# SPDX-License-Identifier: Apache-2.0
"""Whole models train and compute on the device as on the CPU, without soft placement
and in memory that the host cannot access. The sizes are small; tools/models runs the
full ones."""

import harness
import model_runs
import optimizer_runs
import pytest
import random_model_runs

STRICT = {"CPU_SIM_STRICT": "1"}
SIM0, SIM1, CPU = "/device:SIM:0", "/device:SIM:1", "/device:CPU:0"
# The smallest images for which no layer degenerates.
MODELS = {
    "mlp": {},
    "cnn": {"batch": 4},
    "mobilenet_v2": {"size": 64, "batch": 2},
    "resnet50": {"size": 64, "batch": 2},
    "lstm": {},
    "gru_unrolled": {},
    "transformer": {},
    "bidirectional": {},
    "seq2seq": {},
    "decoder": {},
    "unet": {"size": 32},
}
FROZEN = {"mobilenet_v2", "resnet50", "unet"}  # see model_runs.compare
# The CPU has arguments, and counts the steps of a mask: CudnnRNNV3 reads lengths there.
MOST_ON_CPU = {"bidirectional": 9}
INFERENCE, GRADIENTS = 1e-4, 1e-3  # largest relative differences


@pytest.fixture(scope="module", name="compared")
def _compared():
    results = harness.run_each(
        model_runs.compare,
        [[name, MODELS[name], name in FROZEN] for name in MODELS], env=STRICT)
    return dict(zip(MODELS, results))


@pytest.mark.parametrize("name", MODELS)
def test_model_computes_the_same_as_on_the_cpu(compared, name):
    assert compared[name].ok, compared[name]
    found = compared[name].value
    assert found["inference"] <= INFERENCE
    assert found["loss"] <= INFERENCE
    assert found["gradients"] <= GRADIENTS, found["worst"]
    assert found["spread"] > 0, "all outputs are the same: nothing is compared"
    assert found["ops"]["SIM:0"] > 20 * len(MODELS[name])
    assert found["ops"].get("CPU:0", 0) <= MOST_ON_CPU.get(name, 3)


def test_digits_are_learned():
    import numpy as np
    ours, cpus = harness.run_each(model_runs.learn_digits,
                                  [[SIM0, 6], [CPU, 6]], env=STRICT)
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    assert ours.value["accuracy"] >= 0.97
    np.testing.assert_allclose(ours.value["losses"][:20],
                               cpus.value["losses"][:20], rtol=1e-3)


def test_optimizers():
    names = list(optimizer_runs.OPTIMIZERS)
    assert len(names) >= 24
    for name, result in zip(names, harness.run_each(
            optimizer_runs.compare, [[n, SIM0] for n in names], env=STRICT)):
        assert result.ok, f"{name}: {result}"
        found = result.value
        assert found["fell"] != 0, f"{name}: nothing was trained"
        assert found["loss"] <= 1e-5 and found["weights"] <= 1e-4, f"{name}: {found}"


@pytest.fixture(scope="module", name="split")
def _split():
    cases = [[SIM0, CPU], [CPU, SIM0], [SIM0, SIM1]]
    return dict(zip(map(tuple, cases), harness.run_each(
        model_runs.split_model, cases, env=STRICT)))


@pytest.mark.parametrize("first,second", [(SIM0, CPU), (CPU, SIM0),
                                          (SIM0, SIM1)])
def test_model_split_between_two_devices(split, first, second):
    assert split[first, second].ok, split[first, second]
    found = split[first, second].value
    assert found["difference"] < 1e-5
    assert found["losses"][-1] < 0.8 * found["losses"][0]
    places = [place[-len(SIM0):] for place in found["places"]]
    assert {first, second, CPU} == set(places)


def test_memory_does_not_grow_during_training():
    # If each step leaked a tensor, the device would run out of memory.
    steps = 1000
    result = harness.run(model_runs.memory, steps, env={
        **STRICT, "CPU_SIM_BFC": "0", "CPU_SIM_MEMORY": "512K"})
    assert result.ok, result
    host = result.value["host"]
    # TensorFlow's threads vary by some KB; a leak of 32 bytes per step is detected.
    assert host[-1] - host[1] < 16 * steps, f"host memory grows: {host}"
    first, last = result.value["losses"]
    assert last < first


# Two inputs, attention and a GRU; LSTMs in mixed_float16; GRUs in float64.
# tools/models --random draws more.
@pytest.mark.parametrize("seed", [5, 7, 9])
def test_random_model(seed):
    ours, cpus = (harness.run(random_model_runs.run, seed, device)
                  for device in (SIM0, CPU))
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    assert all(abs(number) < 1e4 for number in cpus.value["numbers"])
    assert random_model_runs.difference(ours.value, cpus.value) <= 1
