# SPDX-License-Identifier: Apache-2.0
"""Updates and reads of slices of variables in device memory, which the host cannot
access, have the same results as on the CPU: in functions, and in Keras' training of
an Embedding."""

import harness
import pytest

# The graph pass itself is under test, so Python's ops are left as they are.
STRICT = {"CPU_SIM_STRICT": "1", "TFPLUG_PYTHON_UPDATES": "0"}


def _slices(tf, values, indices):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices))


def _how(how):
    """Returns a case that updates slices, some of them twice, in the given way."""
    def case(tf):
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        @tf.function
        def f():
            getattr(v, how)(_slices(tf, [[10.0, 20.0], [30.0, -40.0]],
                                    [2, 0] if how == "scatter_update"
                                    else [2, 2]))
            return v.read_value()
        return f(), f()
    return case


def _index_of_rank_2_and_int64(tf):
    v = tf.Variable(tf.zeros([4, 2]))

    @tf.function
    def f(indices):
        v.scatter_add(tf.IndexedSlices(tf.ones([2, 2, 2]), indices))
        return v.read_value()
    return f(tf.constant([[0, 3], [3, 3]], tf.int64))


def _scalar_index(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    rows = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tf.function
    def f(i):
        v.scatter_add(tf.IndexedSlices(tf.constant(10.0), i))
        v.scatter_update(tf.IndexedSlices(tf.constant(7.0), i + 1))
        rows.scatter_sub(tf.IndexedSlices(tf.constant([1.0, 2.0]), i))
        return v.read_value(), rows.read_value()
    return f(tf.constant(1))


def _nothing(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x, indices):
        v.scatter_sub(tf.IndexedSlices(x, indices))
        return v.read_value()
    return f(tf.zeros([0]), tf.zeros([0], tf.int64))


def _in_sequence(tf):
    """Updates slices, with updates of the whole variable and reads before and after."""
    v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f(x):
        before = v.read_value()
        v.assign_add(x)
        v.scatter_sub(_slices(tf, [10.0, 20.0], [1, 1]))
        between = tf.gather(v, [1, 0])
        v.scatter_add(_slices(tf, [0.5], [0]))
        v.assign_sub(x * 2)
        return before, between, v.read_value()
    return f(tf.constant([1.0, 2.0, 3.0])), f(tf.constant([1.0, 1.0, 1.0]))


def _while(tf):
    v = tf.Variable([0.0, 0.0, 0.0])

    @tf.function
    def f(n):
        total = tf.constant([0.0])
        for i in tf.range(n):
            v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 2.0]),
                                           tf.stack([i % 3, 1])))
            total += tf.gather(v, [i % 3])
        return total, v.read_value()
    return f(tf.constant(5))


def _cond(tf):
    v = tf.Variable([0.0, 0.0])

    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            v.scatter_add(tf.IndexedSlices(x, tf.constant([0, 1])))
        else:
            v.scatter_sub(tf.IndexedSlices(x, tf.constant([1, 0])))
        return v.read_value()
    return f(tf.constant([1.0, 2.0])), f(tf.constant([-3.0, -4.0]))


def _lookup(tf):
    """Reads slices, some repeatedly and in batches; the gradient is IndexedSlices."""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    @tf.function
    def f(indices):
        with tf.GradientTape() as tape:
            y = tf.nn.embedding_lookup(v, indices)
            loss = tf.reduce_sum(y * y)
        gradient = tape.gradient(loss, v)
        v.scatter_sub(gradient)
        in_batches = tf.raw_ops.ResourceGather(
            resource=v.handle, indices=tf.constant([[1], [0], [1]]),
            batch_dims=1, dtype=tf.float32)
        return y, v.sparse_read(indices), in_batches, v.read_value()
    return f(tf.constant([[0, 2], [2, 2]]))


CASES = {"add": _how("scatter_add"), "sub": _how("scatter_sub"),
         "update": _how("scatter_update"), "max": _how("scatter_max"),
         "min": _how("scatter_min"), "rank 2": _index_of_rank_2_and_int64,
         "scalar index": _scalar_index, "nothing": _nothing,
         "sequence": _in_sequence, "while": _while, "cond": _cond, "lookup": _lookup}
OPTIMIZERS = {
    "sgd": lambda keras: keras.optimizers.SGD(0.5),
    "momentum": lambda keras: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda keras: keras.optimizers.Adam(0.01),
}


def run_case(name, device):
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(f"/device:{device}:0"):
        return tf.nest.map_structure(lambda x: x.numpy().tolist(),
                                     CASES[name](tf))


def fit(optimizer, device):
    """Returns the loss after each batch of a model with an Embedding."""
    import keras
    import numpy as np
    import tensorflow as tf
    random = np.random.default_rng(0)
    x = random.integers(0, 50, size=(256, 6))
    y = (x.sum(axis=1) % 4).astype(np.int64)
    losses = []

    class Losses(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    def weights(seed):
        seeded = np.random.default_rng(seed)
        return lambda shape, dtype=None: seeded.normal(
            0, 0.2, shape).astype(np.float32)

    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model = keras.Sequential([
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(50, 8, embeddings_initializer=weights(1)),
            keras.layers.Flatten(),
            keras.layers.Dense(4, kernel_initializer=weights(2)),
        ])
        model.compile(
            OPTIMIZERS[optimizer](keras), jit_compile=False,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(x, y, batch_size=32, epochs=4, shuffle=False, verbose=0,
                  callbacks=[Losses()])
    on_device = model.trainable_variables[0].value.device
    assert f"{device}:0" in on_device, on_device
    return losses


def _both(function, names):
    """Returns {name: (result on the device, result on the CPU)}."""
    cases = [[name, device] for name in names for device in ("SIM", "CPU")]
    results = harness.run_each(function, cases, env=STRICT)
    return dict(zip(names, zip(results[::2], results[1::2])))


@pytest.fixture(scope="module", name="results")
def _results():
    return _both(run_case, list(CASES))


@pytest.fixture(scope="module", name="losses")
def _losses():
    return _both(fit, list(OPTIMIZERS))


@pytest.mark.parametrize("name", sorted(CASES))
def test_function_computes_the_same_as_on_the_cpu(results, name):
    ours, cpus = results[name]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    assert ours.value == cpus.value


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_embedding_has_the_same_losses_as_on_the_cpu(losses, optimizer):
    import numpy as np
    ours, cpus = losses[optimizer]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    assert len(cpus.value) == 32 and cpus.value[-1] < cpus.value[0]
    np.testing.assert_allclose(ours.value, cpus.value, rtol=1e-5)
