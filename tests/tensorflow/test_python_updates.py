# SPDX-License-Identifier: Apache-2.0
"""Updates of variables on the device, as Python users write them, have the same
results as on the CPU, eagerly and in functions."""

import harness
import pytest

STRICT = {"CPU_SIM_STRICT": "1"}


def _matrix(tf):
    return tf.Variable(tf.reshape(tf.range(1.0, 13.0), (4, 3)))


def assign_add(tf):
    v = _matrix(tf)
    v.assign_add(tf.ones_like(v))
    v.assign_sub(2 * tf.ones_like(v))
    return v


def step_counter(tf):
    step = tf.Variable(0, dtype=tf.int64)
    for _ in range(3):
        step.assign_add(1)
    return step


def returned_value(tf):
    v = tf.Variable([1.0, 2.0])
    return v.assign_add([1.0, 1.0]), v.assign_sub([2.0, 0.5])


def gradient_accumulation(tf):
    weights = _matrix(tf)
    total = tf.Variable(tf.zeros_like(weights), trainable=False)
    for scale in (1.0, 2.0):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * weights) * scale
        total.assign_add(tape.gradient(loss, weights))
    weights.assign_sub(0.1 * total)
    return weights, total


def moving_average(tf):
    v = _matrix(tf)
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([v])
    v.assign_add(tf.ones_like(v))
    average.apply([v])
    return average.average(v)


def slices(tf):
    v = _matrix(tf)
    v[1].assign([7.0, 8.0, 9.0])
    v[2:, ::2].assign([[1.0, 2.0], [3.0, 4.0]])
    v[..., 1].assign([5.0, 6.0, 7.0, 8.0])
    return v


def scatter(tf, kind):
    v = _matrix(tf)
    rows = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    getattr(v, f"scatter_{kind}")(tf.IndexedSlices(rows, tf.constant([2, 0, 1])))
    return v


def scatter_nd(tf, kind):
    v = _matrix(tf)
    getattr(v, f"scatter_nd_{kind}")([[0, 1], [3, 2]], [5.0, -1.0])
    return v


def sparse_read(tf):
    return _matrix(tf).sparse_read([2, 0]), _matrix(tf).gather_nd([[1, 2]])


def generator(tf):
    random = tf.random.Generator.from_seed(3)
    drawn = [random.uniform([2]), random.normal([3]),
             random.uniform([4], 0, 100, tf.int32)]
    random.skip(5)
    return drawn, random.split(2)[1].normal([2]), random.state


def binomial(tf):
    """TensorFlow's kernel writes the new state into a buffer that others share."""
    random = tf.random.Generator.from_seed(3)
    return [random.binomial([3], [9.0] * 3, [0.5] * 3) for _ in range(3)], random.state


def every_draw(tf):
    """Each op that advances a state; an earlier read keeps its value."""
    raw, results = tf.raw_ops, []
    draws = {
        raw.StatefulRandomBinomial: {"counts": [9.0], "probs": [0.5]},
        raw.StatefulStandardNormalV2: {},
        raw.StatefulTruncatedNormal: {},
        raw.StatefulUniform: {},
        raw.StatefulUniformFullInt: {"dtype": tf.uint64},
        raw.StatefulUniformInt: {"minval": 0, "maxval": 1000},
        raw.RngSkip: {"delta": 7},
        raw.RngReadAndSkip: {"delta": 7}}
    for op, arguments in draws.items():
        random = tf.random.Generator.from_seed(3)
        # The CPU's kernel of binomials changes what was read.
        on_device = "SIM" in random.state.device
        before = random.state.read_value() if on_device else tf.constant([3, 0, 0])
        call = dict(arguments, resource=random.state.handle)
        if op is raw.RngReadAndSkip:
            call |= {"alg": 1, "delta": tf.constant(7, tf.uint64)}
        else:
            call["algorithm"] = tf.constant(1, tf.int64)
        if "delta" in call and op is raw.RngSkip:
            call["delta"] = tf.constant(7, tf.int64)
        if op not in (raw.RngSkip, raw.RngReadAndSkip):
            call["shape"] = tf.constant([1])
        drawn = [x for x in (op(**call), op(**call)) if x is not None]
        results += [*drawn, random.state.read_value(), tf.cast(before, tf.int64)]
    return results


def raw_updates(tf):
    """tf.raw_ops has functions of its own."""
    raw, v = tf.raw_ops, tf.Variable([1.0, 2.0, 3.0])
    raw.AssignAddVariableOp(resource=v.handle, value=[1.0, 1.0, 1.0])
    raw.AssignSubVariableOp(resource=v.handle, value=[0.5, 1.0, 1.5])
    raw.ResourceScatterAdd(resource=v.handle, indices=[2, 0], updates=[5.0, 6.0])
    raw.ResourceScatterMul(resource=v.handle, indices=[1], updates=3.0)
    raw.ResourceScatterNdSub(ref=v.handle, indices=[[1]], updates=[0.25])
    raw.ResourceStridedSliceAssign(ref=v.handle, begin=[0], end=[1], strides=[1],
                                   value=[9.0])
    unnamed = raw.VarHandleOp(dtype=tf.float32, shape=[1])
    raw.AssignVariableOp(resource=unnamed, value=[1.0])
    raw.AssignAddVariableOp(resource=unnamed, value=[2.0])
    return (v, raw.ReadVariableOp(resource=unnamed, dtype=tf.float32),
            raw.ResourceGather(resource=v.handle, indices=[1, 0], dtype=tf.float32))


def imported_functions(tf):
    """Other modules import the functions under their own names."""
    from tensorflow.python.ops import resource_variable_ops
    from tensorflow.python.ops.gen_resource_variable_ops import (
        assign_add_variable_op as add)
    from tensorflow.python.ops.state_ops import scatter_add, scatter_nd_update
    v = tf.Variable([1.0, 2.0, 3.0])
    add(v.handle, tf.constant([1.0, 2.0, 3.0]))
    resource_variable_ops.assign_sub_variable_op(v.handle, [1.0, 1.0, 1.0])
    scatter_add(v, [0], [2.0])
    scatter_nd_update(v, [[1]], [8.0])
    return v


def scatter_at_scalar(tf):
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_update(tf.IndexedSlices(7.0, 1))
    v.scatter_add(tf.IndexedSlices(2.0, 2))
    w = _matrix(tf)
    w.scatter_update(tf.IndexedSlices(tf.constant([7.0, 8.0, 9.0]), 1))
    return v, w


def scatter_of_a_list(tf):
    """Lists of tensors are on the host."""
    raw = tf.raw_ops
    empty = raw.EmptyTensorList(element_shape=tf.constant([], tf.int32),
                                max_num_elements=-1, element_dtype=tf.float32)
    v = tf.Variable([empty])
    v.scatter_update(tf.IndexedSlices(raw.TensorListFromTensor(
        tensor=[1.0, 2.0], element_shape=tf.constant([], tf.int32)), 0))
    return raw.TensorListGetItem(input_handle=v[0], index=1, element_dtype=tf.float32,
                                 element_shape=tf.constant([], tf.int32))


def wrong_shape(tf):
    """An update is not broadcast."""
    v = tf.Variable([1.0, 2.0])
    for update in (v.assign_add, v.assign_sub):
        try:
            update([1.0])
        except tf.errors.InvalidArgumentError as error:
            assert ("Cannot update variable with shape [2] using a Tensor with shape "
                    "[1], shapes must be equal." in str(error)), error
        else:
            raise AssertionError("updated")

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def unknown_shape(x):
        v.assign_add(x)
    unknown_shape(tf.constant([1.0, 2.0]))
    return v


def function_of_one_op(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        v.assign_add(x)
    f(tf.constant([1.0, 1.0]))
    return v


def branches_and_loop(tf):
    v = _matrix(tf)

    @tf.function
    def f(x):
        if tf.reduce_sum(x) > 0:
            v[0].assign(x)
        else:
            v.scatter_nd_update([[1, 1]], [8.0])
        for _ in tf.range(3):
            v.assign_add(tf.ones_like(v))
        return v.read_value()
    x = tf.constant([1.0, 2.0, 3.0])
    return f(x), f(-x)


def generator_in_function(tf):
    random = tf.random.Generator.from_seed(3)

    @tf.function
    def f():
        return (random.normal([2]), random.uniform([3]),
                random.binomial([4], [900.0] * 4, [0.5] * 4))
    first, second = f(), f()
    for x, y in zip(first, second):
        assert (x.numpy() != y.numpy()).any(), (x, y)
    return first, second, random.state


def unrelated_variable(tf):
    """A variable in host memory keeps TensorFlow's own ops."""
    with tf.device("CPU:0"):
        v = _matrix(tf)
        v.assign_add(tf.ones_like(v))
        v[1].assign([7.0, 8.0, 9.0])
        return tf.identity(v)


CASES = {function.__name__: function for function in (
    assign_add, step_counter, returned_value, gradient_accumulation,
    moving_average, slices, sparse_read, generator, binomial, every_draw,
    raw_updates, imported_functions, scatter_at_scalar, scatter_of_a_list,
    wrong_shape, function_of_one_op,
    branches_and_loop, generator_in_function, unrelated_variable)}
for _kind in ("add", "sub", "min", "max", "mul", "div", "update"):
    CASES[f"scatter_{_kind}"] = lambda tf, kind=_kind: scatter(tf, kind)
for _kind in ("add", "sub", "min", "max", "update"):
    CASES[f"scatter_nd_{_kind}"] = lambda tf, kind=_kind: scatter_nd(tf, kind)


def run(name, device):
    import tensorflow as tf
    with tf.device(f"/device:{device}:0"):
        return tf.nest.map_structure(
            lambda x: x.numpy().tolist(), CASES[name](tf))


def fit_eagerly(device):
    """Returns the losses of a Keras model that trains without functions."""
    import keras
    import numpy as np
    import tensorflow as tf
    x = np.linspace(-1, 1, 96).reshape(32, 3).astype("float32")
    with tf.device(f"/device:{device}:0"):
        model = keras.Sequential([
            keras.layers.Dense(4, "relu", kernel_initializer="ones"),
            keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("adam", "mse", run_eagerly=True)
        return model.fit(x, x[:, :1], epochs=3, batch_size=8, shuffle=False,
                         verbose=0).history["loss"]


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[name, device] for name in CASES for device in ("SIM", "CPU")]
    results = harness.run_each(run, cases, env=STRICT)
    return dict(zip(CASES, zip(results[::2], results[1::2])))


@pytest.mark.parametrize("name", sorted(CASES))
def test_update_computes_the_same_as_on_the_cpu(results, name):
    import numpy as np
    ours, cpus = results[name]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    flat = [np.concatenate([np.ravel(x) for x in _leaves(r.value)])
            for r in (ours, cpus)]
    np.testing.assert_allclose(*flat, rtol=1e-6)


def _leaves(value):
    """Returns the rectangular lists of numbers in `value`, in order."""
    try:
        import numpy as np
        return [np.asarray(value, dtype=float)]
    except ValueError:
        return [leaf for part in value for leaf in _leaves(part)]


def test_keras_trains_eagerly():
    import numpy as np
    ours, cpus = harness.run_each(fit_eagerly, [["SIM"], ["CPU"]], env=STRICT)
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    np.testing.assert_allclose(ours.value, cpus.value, rtol=1e-5)
    assert ours.value[-1] < ours.value[0]
