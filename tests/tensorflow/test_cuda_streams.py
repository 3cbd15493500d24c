# SPDX-License-Identifier: Apache-2.0
"""What a stream of examples/cuda_like does in stock TensorFlow, on its emulated driver:
graphs of launches, copies that do not wait, and times for a profile."""

import ctypes
import sys

import harness
import numpy as np
import pytest
from compiled_cases import region_runs
from test_backend import check_trains_as_on_the_cpu, MODELS
from test_cuda_like import BLAS, ENVIRONMENT, run

sys.path.append(str(harness.ROOT / "tools/lib/profile"))
import xspace

REGIONS = {"TFPLUG_REGIONS": "1", "TFPLUG_LOG_REGIONS": "1"}


def count_region_runs(**environment):
    """Returns the result of region_runs, with the numbers of graphs and kernels that were
    launched in the last run."""
    return run(region_runs, "CUDA_LIKE", ENVIRONMENT["CUDA_LIKE_DRIVER"],
               ["cudaLikeGraphLaunches", "cudaLikeKernelLaunches"], **REGIONS, **environment)


@pytest.mark.parametrize("environment", [{}, BLAS], ids=["kernels", "cublas"])
def test_a_region_is_a_graph(environment):
    graph, launches = (
        count_region_runs(**environment, TFPLUG_REGION_GRAPHS=value) for value in ("", "0"))
    for result in (graph, launches):
        assert result.ok and result.value[0] == [], result
    assert graph.value[1] == [1, 0], graph
    assert launches.value[1][0] == 0 and launches.value[1][1] >= 16, launches
    assert "are captured as a graph" in graph.log
    assert "graph" not in launches.log


@pytest.mark.parametrize("function", ["cuStreamBeginCapture_v2", "cuStreamEndCapture",
                                      "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                      "cublasSetWorkspace_v2"])
def test_a_graph_fails(function):
    result = count_region_runs(CUDA_LIKE_FAULT=f"hook={function},times=1000", **BLAS)
    assert result.ok and result.value[0] == [], result
    graphs, kernels = result.value[1]
    assert graphs == 0 and kernels > 4, result
    if function != "cuGraphLaunch":
        assert "are enqueued one by one: " + function[:-3] in result.log, result


def failed_launches(driver):
    """Returns the errors of runs of a region, and the number of launches of the first."""
    import tensorflow as tf
    count = ctypes.CDLL(driver).cudaLikeKernelLaunches

    def compute(x):
        return tf.cumsum(tf.nn.softmax(tf.cumsum(tf.nn.softmax(x) * 2.0, 1)), 1)
    function = tf.function(compute, jit_compile=False)
    errors, launches = [], 0
    with tf.device("/device:CUDA_LIKE:0"):
        x = tf.constant(np.ones((4, 6), np.float32))
        for _ in range(6):
            before = count()
            try:
                function(x)
                errors.append("")
            except tf.errors.OpError as error:
                errors.append(error.message)
            launches = launches or count() - before
    return errors, launches


def test_a_launch_fails_while_a_graph_is_captured():
    """The launches are repeated one by one, and the error names its op."""
    clean = run(failed_launches, ENVIRONMENT["CUDA_LIKE_DRIVER"], **REGIONS)
    assert clean.ok and set(clean.value[0]) == {""}, clean
    assert "are captured as a graph" in clean.log, clean.log
    # The first run records, the second one is like it, and the third one captures.
    after = 2 * clean.value[1] + 1
    result = run(failed_launches, ENVIRONMENT["CUDA_LIKE_DRIVER"], **REGIONS,
                 CUDA_LIKE_FAULT=f"hook=cuLaunchKernel,after={after},times=1000")
    assert result.ok, result
    errors = result.value[0]
    assert errors[:2] == ["", ""], result
    for error in errors[2:]:
        assert "op 'Softmax', node 'Softmax': cuLaunchKernel: CUDA_ERROR" in error, error
    assert "one by one: op 'Softmax', node 'Softmax': cuLaunchKernel" in result.log, result


@pytest.mark.parametrize("name", MODELS)
def test_keras_trains_with_graphs(name):
    check_trains_as_on_the_cpu(name, **ENVIRONMENT, **BLAS, TFPLUG_REGIONS="1")


def blocking_copies(driver):
    """Returns for two calls of fit, with 4 and 24 steps, and for as many calls of a
    function with a result in host memory, for how many copies CUDA would let a thread
    of TensorFlow wait."""
    import keras
    import tensorflow as tf
    count = ctypes.CDLL(driver).cudaLikeBlockingCopies
    copies, results = [], []
    keras.utils.set_random_seed(1)

    @tf.function
    def to_host(x):
        y = tf.cumsum(tf.cumsum(x * 2) - 1)  # smaller graphs are not rewritten
        with tf.device("CPU:0"):
            return tf.identity(y)

    with tf.device("CUDA_LIKE:0"):
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
        model.compile("adam", "mse", metrics=["mae"])
        for steps in 4, 4, 24:  # the first one creates variables
            before = count()
            x = np.ones((steps * 8, 8), np.float32)
            history = model.fit(x, x[:, :4], batch_size=8, verbose=0)
            copies.append(count() - before)
        x = tf.ones([8])
        for calls in 4, 24:
            before = count()
            results += [to_host(x)[0] for _ in range(calls)]
            copies.append(count() - before)
    return copies[1:], [float(history.history["loss"][0]), *map(float, results)]


def test_batches_and_results_are_copied_without_waiting():
    staged, direct = (run(blocking_copies, ENVIRONMENT["CUDA_LIKE_DRIVER"],
                          CUDA_LIKE_STAGING=value) for value in ("1", "0"))
    assert staged.ok and direct.ok, (staged, direct)
    few, many, few_calls, many_calls = staged.value[0]
    assert many - few <= 1 and few_calls == many_calls, staged  # a wait in 32 steps
    assert direct.value[1] == staged.value[1], (staged, direct)
    *_, few_calls, many_calls = direct.value[0]
    assert many_calls - few_calls >= 20, direct


def profile_from_the_start(folder):
    import tensorflow as tf
    tf.profiler.experimental.start(folder)
    with tf.device("CUDA_LIKE:0"):  # which is created only now
        x = tf.ones([8, 8])
        x = tf.matmul(x, x).numpy()
    tf.profiler.experimental.stop()
    return float(x[0, 0])


def test_a_profile_that_begins_before_the_device_has_its_kernels(tmp_path):
    result = run(profile_from_the_start, str(tmp_path))
    assert result.ok and result.value == 8, result
    trace = xspace.read(next(tmp_path.rglob("*.xplane.pb")))
    (device,) = trace.devices
    assert "MatMul" in {event.name for event in device.events("kernel")}, device
    assert trace.dropped == 0
