# SPDX-License-Identifier: Apache-2.0
"""tf.random.Generator on the device gives the CPU's numbers, eagerly and in functions:
where TensorFlow lets kernels update variables, with the kernels of RngReadAndSkip and
RngSkip, and with a copy of the state in host memory elsewhere."""

import harness
import numpy as np
import pytest

STRICT = {"CPU_SIM_STRICT": "1"}


def draw(tf, random):
    """Returns numbers of each distribution."""
    return [random.normal([2, 3]), random.normal([5], dtype=tf.float64),
            random.truncated_normal([4]), random.uniform([7]),
            random.uniform([3], 0, 100, tf.int32),
            random.uniform_full_int([3], tf.uint64), random.make_seeds(3),
            random.key]


def eager(tf):
    random = tf.random.Generator.from_seed(3)
    return draw(tf, random), random.state


def in_function(tf):
    random = tf.random.Generator.from_state([1, 2, 3], "philox")

    @tf.function
    def f():
        return draw(tf, random), draw(tf, random)
    return f(), f(), random.state


def in_loop(tf):
    random = tf.random.Generator.from_seed(7)

    @tf.function
    def f(n):
        total = tf.zeros([2])
        for _ in tf.range(n):
            total += random.normal([2])
        return total
    return f(tf.constant(4)), random.state


def split(tf):
    random = tf.random.Generator.from_seed(5)
    return [each.normal([2]) for each in random.split(3)], random.state


def skip(tf):
    # The counter's low half overflows.
    random = tf.random.Generator.from_state([-300, -1, 5], "philox")
    return random.skip(1), random.skip(1), random.skip(9), random.skip(-4), random.state


def reset(tf):
    random = tf.random.Generator.from_seed(5)
    kept = tf.random.Generator.from_state(random.state.read_value(), "philox")
    random.normal([3])
    random.reset_from_seed(11)
    return kept.uniform([3]), random.uniform([3])


def rng_skip(tf):
    from tensorflow.python.ops import gen_stateful_random_ops as ops
    random = tf.random.Generator.from_seed(1)
    ops.rng_skip(random.state.handle, tf.constant(1, tf.int64), tf.constant(2, tf.int64))
    return random.state


CASES = {function.__name__: function for function in (
    eager, in_function, in_loop, split, skip, reset, rng_skip)}


def run(name, device):
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(f"/device:{device}:0"):
        return [x.numpy().tolist() for x in tf.nest.flatten(CASES[name](tf))]


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[name, device] for name in CASES for device in ("SIM", "CPU")]
    results = harness.run_each(run, cases, env=STRICT)
    return dict(zip(CASES, zip(results[::2], results[1::2])))


@pytest.mark.parametrize("name", sorted(CASES))
def test_generator_gives_the_numbers_of_the_cpu(results, name):
    ours, cpus = results[name]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    assert len(ours.value) == len(cpus.value) > 0
    for got, want in zip(ours.value, cpus.value):
        if np.asarray(want).dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            assert got == want


def updates(states, algorithm, delta):
    """Returns for each state the old one and the new one, or the error, of the kernel
    itself, which Python functions may bypass."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    tf.config.set_soft_device_placement(False)
    found = []
    with tf.device("/device:SIM:0"):
        for state in states:
            v = tf.Variable(tf.constant(state, tf.int64))
            with tf.device("/device:CPU:0"):
                inputs = [v.handle, tf.constant(algorithm, tf.int32),
                          tf.constant(delta, tf.uint64)]
            try:
                old, = execute.quick_execute("RngReadAndSkip", 1, inputs, (),
                                             context.context())
                found.append([old.numpy().tolist(), v.numpy().tolist()])
            except tf.errors.OpError as error:
                found.append([type(error).__name__, error.message])
    return found


def test_kernel_advances_the_counter_or_names_the_remedy():
    good, bad = [-300, 6, 7, 8], [1, 2]
    result = harness.run(updates, [good, bad, [[1, 2, 3]]], 1, 2, env=STRICT)
    assert result.ok, result
    if result.value[0][0] == "UnimplementedError":
        assert all("this TensorFlow" in text and "create the generator under" in text
                   for _, text in result.value)
        return
    assert result.value[0] == [good[:3], [212, 7, 7, 8]]
    for kind, text in result.value[1:]:
        assert kind == "InvalidArgumentError" and "at least 3 int64" in text
    threefry, = harness.run(updates, [good], 2, 2, env=STRICT).value
    assert threefry[0] == "UnimplementedError" and "Philox" in threefry[1]
