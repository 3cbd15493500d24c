# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's rewriters and gradients make of a graph runs on the device with the
same results as on the CPU: sums that are split to save memory, second derivatives of
branches and loops, constants that are fed, and normalizations fused for oneDNN."""

import harness
import numpy as np
import pytest


def _on_both(compute):
    """Returns the results of compute(device) on the device and on the CPU."""
    import tensorflow as tf
    results = []
    for device in ("SIM", "CPU"):
        with tf.device(device):
            results.append([np.asarray(x).tolist() for x in tf.nest.flatten(
                compute(device))])
    return results


def _check(result):
    assert result.ok, result
    device, cpu = result.value
    assert len(device) == len(cpu) > 0
    for a, b in zip(device, cpu):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


# ---- Sums that TensorFlow splits once it estimates that the graph needs 215 MB

def _terms(tf, x):
    return [tf.square(x), tf.abs(x), tf.sqrt(x), -x]


def _wide_sums(how):
    import tensorflow as tf

    def compute(device):
        shape = [15_000_000]
        x = tf.fill(shape, 0.5)
        if how == "loop":
            @tf.function
            def f(x):
                return tf.while_loop(lambda i, _: i < 2, lambda i, y: (
                    i + 1, tf.add_n(_terms(tf, y))), [0, x])[1][:3]
        elif how == "session":
            from tensorflow.python.eager import context
            v1 = tf.compat.v1
            config = context.context().config  # Has the experimental options.
            with tf.Graph().as_default(), tf.device(device), v1.Session(
                    config=config) as session:
                # If x were fed, TensorFlow would not split the sum.
                value = v1.placeholder(tf.float32, [])
                total = tf.add_n(_terms(tf, tf.fill(shape, value)))
                total, sine = session.run([total, tf.sin(total)], {value: 0.5})
                return total[:3], sine[:3]
        else:
            @tf.function
            def f(x):
                return tf.add_n(_terms(tf, x))[:3]
        return f(x)
    results = _on_both(compute)
    # Without passes, the graph has the ops into which TensorFlow splits a sum.
    set_options = tf.config.optimizer.set_experimental_options
    set_options({"use_plugin_optimizers": False})
    try:
        with tf.device("SIM"):
            compute("SIM")
    except tf.errors.OpError as error:
        assert "AddN/tmp_var" in str(error), error
        return results
    finally:
        set_options({"use_plugin_optimizers": True})
    raise AssertionError("TensorFlow has not split the sum")


def test_wide_sums_that_are_split_to_save_memory():
    for result in harness.run_each(
            _wide_sums, [["function"], ["loop"], ["session"]]):
        _check(result)


# ---- Second derivatives, which add and clear optionals and lists

def _second_derivative(name):
    import tensorflow as tf

    def of_a_map(x):
        """Sums and looks up maps, which must not leave the host, in branches."""
        from tensorflow.python.ops import map_ops
        tensors = map_ops.empty_tensor_map()
        for key in (1., 2.):
            tensors = map_ops.tensor_map_insert(tensors, tf.constant(key), x)
        tensors = tf.identity(tensors)
        return sum(map_ops.tensor_map_lookup(tensors, tf.constant(key), tf.float32)
                   for key in (1., 2.)) ** 3

    def power(x, n):
        return tf.while_loop(lambda i, _: i < n,
                             lambda i, y: (i + 1, y * tf.sin(x)), [0, x])[1]

    def written(x):
        array = tf.while_loop(lambda i, _: i < 4, lambda i, array: (
            i + 1, array.write(i, tf.sin(x[:i % 2 + 1]) * x[0])),
            [0, tf.TensorArray(tf.float32, 4, infer_shape=False)])[1]
        return array.concat() * array.read(0)[0]

    functions = {
        "cond": lambda x: tf.cond(x[0] > 0, lambda: x * x * x, lambda: tf.sin(x)),
        "switch_case": lambda x: tf.switch_case(
            tf.cast(x[1], tf.int32), [lambda: x, lambda: x * x * x]),
        "cond in cond": lambda x: tf.cond(
            x[0] > 0, lambda: tf.cond(x[1] > 1, lambda: x ** 3, lambda: x),
            lambda: tf.sin(x)),
        "while": lambda x: power(x, 3),
        "while in cond": lambda x: tf.cond(
            x[0] > 0, lambda: power(x, 3), lambda: x),
        "cond in while": lambda x: tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.cond(
                y[0] > 0, lambda: y * tf.sin(x), lambda: y * x)), [0, x])[1],
        "map_fn": lambda x: tf.map_fn(lambda v: v * v * tf.sin(v), x),
        "map_fn of cond": lambda x: tf.map_fn(lambda v: tf.cond(
            v > 1, lambda: v * v * v, lambda: tf.sin(v)), x),
        "map_fn of map_fn": lambda x: tf.map_fn(lambda v: tf.reduce_sum(
            tf.map_fn(lambda w: w * w * v, x)), x),
        "scan": lambda x: tf.scan(lambda a, v: a * tf.sin(v), x),
        "foldl": lambda x: tf.foldl(lambda a, v: a * tf.sin(v) + v * v, x),
        "elements of different shapes": written,
        "map": of_a_map,
    }

    @tf.function(autograph=False)
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = functions[name](x)
            first = inner.gradient(y, x)
        return y, first, outer.gradient(first, x)
    return _on_both(lambda _: f(tf.constant([0.7, 1.3])))


def test_second_derivatives_of_branches_and_loops():
    for result in harness.run_each(_second_derivative, [
            [name] for name in (
                "cond", "switch_case", "cond in cond", "while", "while in cond",
                "cond in while", "map_fn", "map_fn of cond", "map_fn of map_fn", "scan",
                "foldl", "elements of different shapes", "map")]):
        _check(result)


# ---- Constants and other values that a session feeds

def _fed(name):
    import tensorflow as tf
    v1 = tf.compat.v1
    random = np.random.RandomState(3)

    def array(*shape):
        return random.rand(*shape).astype("float32")

    def conv(x, filters):
        return tf.nn.conv2d(x, filters, 1, "SAME")

    def graph():
        """Returns what to fetch and what to feed."""
        half, axis = tf.constant(0.5), tf.constant([1])
        four = v1.placeholder(tf.float32, [4])
        two = v1.placeholder(tf.float32, [2, 3])
        image = v1.placeholder(tf.float32, [1, 4, 4, 2])
        filters, depth = tf.constant(array(2, 2, 2, 3)), tf.constant(array(3))
        feeds = {four: array(4), two: array(2, 3), image: array(1, 4, 4, 2)}
        if name == "a scalar":
            y = tf.sqrt(tf.square(half * tf.constant([3.0, 4.0])) + 1)
            feeds[half] = 1.5
        elif name == "a fetched scalar":
            y = [tf.sqrt(tf.square(half * four)), half]
        elif name == "GELU":
            y = half * four * (1 + tf.math.erf(four * 0.70710678))
            feeds[half] = 0.75
        elif name == "cast and back":
            wide = tf.cast(four, tf.float64)
            y, feeds[wide] = tf.cast(wide, tf.float32) * 2, array(4)
        elif name == "the axes of a sum":
            y, feeds[axis] = tf.reduce_sum(tf.exp(two), axis), [0]
        elif name == "a row":
            row = tf.constant(array(1, 4))
            y = tf.nn.relu(tf.matmul(two, array(3, 4)) + row)
            feeds[row] = -array(1, 4)
        elif name == "a scale of channels":
            scale = tf.constant(array(1, 1, 1, 3))
            y, feeds[scale] = conv(image, filters) * scale, array(1, 1, 1, 3)
        elif name == "a shape":
            shape = tf.constant([2, 4])
            y, feeds[shape] = tf.exp(tf.broadcast_to(four, shape)), [3, 4]
        elif name == "attention":
            q = tf.tile(tf.reshape(four, [1, 1, 2, 2]), [1, 2, 1, 1])
            y = tf.matmul(tf.nn.softmax(tf.matmul(q, q, transpose_b=True) * half), q)
            feeds[half] = 2.0
        elif name == "the filter of a normalization":
            y = tf.nn.relu(v1.nn.fused_batch_norm(
                conv(image, filters), depth, depth, depth, depth,
                is_training=False)[0])
            feeds[filters] = array(2, 2, 2, 3)
        return y, feeds

    def compute(device):
        random.seed(3)
        with tf.Graph().as_default(), tf.device(device):
            fetches, feeds = graph()
            with v1.Session() as session:
                return session.run(fetches, feeds)
    return _on_both(compute)


def test_values_that_a_session_feeds():
    for result in harness.run_each(_fed, [
            [name] for name in (
                "a scalar", "a fetched scalar", "GELU", "cast and back",
                "the axes of a sum", "a row", "a scale of channels", "a shape",
                "attention", "the filter of a normalization")]):
        _check(result)


# ---- tf.parallel_stack, which TensorFlow turns into updates of one tensor

def _parallel_stacks(options, with_text):
    import tensorflow as tf
    tf.config.optimizer.set_experimental_options(options)

    @tf.function
    def f(x, wide, text):
        return (tf.parallel_stack([x, x * 2, tf.sin(x)]) * 2,
                tf.parallel_stack([wide, wide + 1]),
                tf.parallel_stack([text, text]) if with_text else ())

    def fetched(device, soft):
        v1 = tf.compat.v1
        with tf.Graph().as_default(), tf.device(device), v1.Session(
                config=v1.ConfigProto(allow_soft_placement=soft)) as session:
            x = v1.placeholder(tf.float32, [2])
            stack = tf.parallel_stack([x, x * 2, tf.sin(x)])
            return session.run([stack, stack * 2], {x: [1.0, 2.0]}), session.run(
                stack, {x: [3.0, 4.0]})
    return _on_both(lambda device: [*fetched(device, True), *fetched(device, False), *[
        y if y.dtype != tf.string else tf.strings.length(y)
        for y in tf.nest.flatten(f(tf.constant([1.0, 2.0]), tf.constant(
            [3, 4], tf.int64), tf.constant(["a", "bc"])))]])


@pytest.mark.parametrize("options", [{}, {"disable_meta_optimizer": True}],
                         ids=["passes", "no passes"])
def test_parallel_stack(options):
    # TensorFlow 2.22's own kernel, and so the CPU, returns empty strings.
    _check(harness.run(_parallel_stacks, options, harness.release() < (2, 22)))


def _parallel_stack_in_a_loop():
    import tensorflow as tf

    @tf.function
    def f(x):
        y = tf.zeros([2, 3])
        for i in tf.range(3):
            y += tf.parallel_stack([x, tf.cast(i, tf.float32) * x])
        return y
    with tf.device("/device:SIM:0"):
        return f(tf.constant([1.0, 2.0, 3.0])).numpy().tolist()


def test_parallel_stack_in_a_loop():  # which the CPU rejects
    result = harness.run(_parallel_stack_in_a_loop)
    assert result.ok, result
    assert result.value == [[3.0, 6.0, 9.0]] * 2


# ---- Normalizations that TensorFlow fuses if its own kernels use oneDNN

def _normalizations():
    import tensorflow as tf

    @tf.function
    def f(x, v):
        def norm(is_training):
            given = [] if is_training else [v, v]
            return tf.compat.v1.nn.fused_batch_norm(
                x, v, v, *given, is_training=is_training)[0]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.relu(norm(True))
        return tf.nn.relu(norm(False)), y, tape.gradient(y, x), tf.nn.relu(
            norm(False) + x)
    x = np.random.RandomState(1).randn(2, 4, 4, 3).astype("float32")
    return _on_both(lambda _: f(tf.constant(x), tf.constant([1.0, 2.0, 3.0])))


def test_normalizations_with_onednn():
    _check(harness.run(_normalizations, env={"TF_ENABLE_ONEDNN_OPTS": "1"}))


# ---- Updates that locks exclude, in any order

def _critical_sections():
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default(), tf.device("/device:SIM:0"), v1.Session() as session:
        section = tf.CriticalSection()
        variable = tf.Variable(0.)

        def add():
            with tf.control_dependencies([variable.assign_add(2.)]):
                return variable.read_value()
        sums = [section.execute(add) for _ in range(20)]
        session.run(v1.global_variables_initializer())
        return sorted(float(x) for x in session.run(sums))


@pytest.mark.parametrize("regions", "01")
def test_critical_sections(regions):
    result = harness.run(_critical_sections, env={"TFPLUG_REGIONS": regions})
    assert result.ok, result
    assert result.value == [2. * (i + 1) for i in range(20)]
