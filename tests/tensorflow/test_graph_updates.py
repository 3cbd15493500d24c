# SPDX-License-Identifier: Apache-2.0
"""v.assign_add and v.assign_sub in functions, in device memory, which the host cannot
access, have the same results as on the CPU."""

import harness
import pytest

SIM, CPU = "/device:SIM:0", "/device:CPU:0"
# The graph pass itself is under test, so Python's ops are left as they are.
STRICT = {"CPU_SIM_STRICT": "1", "TFPLUG_PYTHON_UPDATES": "0"}


# ---- Functions that update variables; each returns numbers -------------------

def _in_sequence(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        v.assign_sub(x)
        first = v.read_value()
        v.assign_add(10 * x)
        v.assign_add(x * x)
        second = v.read_value()
        v.assign_sub(first)
        return first, second, v.read_value()
    return [f(tf.constant([3.0, 5.0])), f(tf.constant([0.5, 1.5])), v]


def _earlier_read_keeps_its_value(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        before = v.read_value()
        v.assign_add(x)
        return before, before * v
    return f(tf.constant([3.0, 4.0]))


def _cond(tf):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([5.0])

    @tf.function
    def f(x):
        def add():
            v.assign_add(x)
            v.assign_add(2 * x)
            return v.read_value()

        def subtract():
            v.assign_sub(x)
            w.assign_add([1.0])
            return v * 100
        return tf.cond(tf.reduce_sum(x) > 0, add, subtract)
    return [f(tf.constant([1.0, 2.0])), f(tf.constant([-1.0, -2.0])),
            f(tf.constant([3.0, 0.0])), v, w]


def _while(tf):
    v, count = tf.Variable([1.0, 2.0]), tf.Variable(0, dtype=tf.int64)

    @tf.function
    def f(n, x):
        for i in tf.range(n):
            if i % 3 == 1:
                v.assign_sub(x)
            else:
                v.assign_add(x * tf.cast(i, tf.float32))
            count.assign_add(1)
        return v.read_value()
    x = tf.constant([1.0, 0.5])
    return [f(tf.constant(7), x), f(tf.constant(0), x), v, count]


def _nested(tf):
    v = tf.Variable([1.0, 2.0])

    @tf.function(experimental_attributes={"_noinline": True})
    def inner(x):
        v.assign_sub(x)
        return v * 2

    @tf.function
    def middle(x):
        v.assign_add(x)
        return inner(2 * x) + inner(3 * x)

    @tf.function
    def outer(x):
        a = middle(x)
        v.assign_add(a)
        return a, middle(a)
    return [outer(tf.constant([1.0, 0.25])), v]


def _tape(tf):
    w = tf.Variable([[0.5, -1.0], [2.0, 0.25]])

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [step(x), step(x), step(x), w]


def _shared_variable(tf):
    """One function captures the variable, another takes it as an argument."""
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def update(variable, x):
        variable.assign_add(x)
        return variable.read_value()

    @tf.function
    def f(x):
        a = update(v, x)
        v.assign_sub(3 * x)
        b = update(v, 5 * x)
        return a, b
    return [f(tf.constant([1.0, 2.0])), v]


def _unordered(tf):
    """In TensorFlow 1 the order of two updates is unspecified; both must take effect."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.get_variable("v", [2], use_resource=True,
                                      initializer=tf.zeros_initializer())
        x = tf.compat.v1.placeholder(tf.float32, [2])
        updates = [v.assign_add(x * (i + 1), read_value=False)
                   for i in range(20)]
        session.run(v.initializer)
        for _ in range(5):
            session.run(updates, {x: [1.0, 2.0]})
        return [session.run(v.read_value()).tolist()]


def _control_flow_of_tensorflow_1(tf):
    """Uses Switch and Merge, not If and While, which TensorFlow would lower to them."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            v = v1.get_variable("v", [2], use_resource=True,
                                initializer=tf.ones_initializer())
            x = v1.placeholder(tf.float32, [2])

            def body(i, total):
                with tf.control_dependencies(
                        [v.assign_add(x * tf.cast(i, tf.float32))]):
                    return i + 1, total + v.read_value()
            total = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
            with tf.control_dependencies([total]):
                last = v1.cond(tf.reduce_sum(x) > 0, lambda: v.assign_sub(x),
                               lambda: v.assign_add(10 * x))
            ops = {op.type for op in session.graph.get_operations()}
            assert "Switch" in ops and not ops & {"If", "While"}, ops
            session.run(v.initializer)
            return [result.tolist() for value in ([1.0, 2.0], [-1.0, 0.5])
                    for result in session.run([total, last], {x: value})]
    finally:
        v1.enable_control_flow_v2()


def _in_a_dataset(tf):
    """Functions of tf.data run on the CPU and are not changed."""
    with tf.device(CPU):
        count = tf.Variable(0, dtype=tf.int64)
        data = tf.data.Dataset.range(5).map(
            lambda i: tf.cond(i > 2, lambda: count.assign_add(10 * i),
                              lambda: count.assign_sub(i)))
        numbers = [int(number) for number in data]
    v = tf.Variable([0.5, 1.0])

    @tf.function
    def f(x):
        v.assign_add(x * 2 - x)
        return v.read_value()
    for number in numbers:
        f(tf.constant([float(number), 1.0]))
    return [numbers, v]


def _value_from_an_update(tf):
    """TensorFlow removes a control edge that is parallel to a data edge."""
    v = tf.Variable([1.0, 2.0])

    @tf.function(experimental_attributes={"_noinline": True})
    def double(x):
        v.assign_add(x)
        return v + x

    @tf.function
    def f(x):
        v.assign_sub(double(x))
        return v.read_value()
    return [f(tf.constant([1.0, 0.25])), v]


def _int64(tf):
    v = tf.Variable([1, 2], dtype=tf.int64)

    @tf.function
    def f(x):
        v.assign_add(x)
        v.assign_sub([1, 1])
        return v.read_value()
    return [f(tf.constant([5, 6], tf.int64)), v]


def _double_is_added_on_the_cpu(tf):
    """cpu_sim has no kernel that adds doubles."""
    v = tf.Variable([1, 2], dtype=tf.float64)

    @tf.function
    def f(x):
        v.assign_add(x)
        v.assign_sub([0.5, 0.25])
        return v.read_value()
    return [f(tf.constant([5, 6], tf.float64)), v]


def _mirrored(tf):
    """On SIM, each of two devices computes half of the batch."""
    devices = tf.config.list_logical_devices("SIM")
    kind = "SIM" if tf.constant(0.0).device.endswith("SIM:0") else "CPU"
    names = [f"{kind}:{i}" for i in range(2 if kind == "SIM" else 1)]
    assert len(devices) >= len(names)
    strategy = tf.distribute.MirroredStrategy(
        names, cross_device_ops=tf.distribute.ReductionToOneDevice())
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x):
        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * v * x)
            gradient = tape.gradient(loss, v)
            context = tf.distribute.get_replica_context()
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, gradient)
            v.assign_sub(0.01 * total)
            return loss
        losses = strategy.run(replica, args=(x,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
    x = tf.constant(2.0 / len(names))
    return [step(x), step(x), step(x), v.read_value()]


def _saved_model(tf):
    import tempfile

    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.total = tf.Variable([0.0, 0.0])

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
        def __call__(self, x):
            self.total.assign_add(x)
            self.total.assign_sub(x / 4)
            return {"total": self.total.read_value()}

    module = Counter()
    module(tf.constant([1.0, 2.0]))
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=module.__call__)
        loaded = tf.saved_model.load(folder)
        first = loaded(tf.constant([3.0, 4.0]))
        serve = loaded.signatures["serving_default"]
        second = serve(x=tf.constant([5.0, 6.0]))
    return [first, second, loaded.total]


CASES = {name[1:]: function for name, function in list(globals().items())
         if name.startswith("_") and callable(function)
         and not name.startswith("__")}


def run_case(name, device):
    """Returns the numbers that the case returns, as a flat list."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(device):
        results = CASES[name](tf)
    return [r.numpy().tolist() if hasattr(r, "numpy") else r
            for r in tf.nest.flatten(results)]


@pytest.fixture(scope="module", name="results")
def _results():
    names = sorted(CASES)
    keys = [[name, device] for name in names for device in (SIM, CPU)]
    return dict(zip(map(tuple, keys), harness.run_each(run_case, keys,
                                                       env=STRICT)))


@pytest.mark.parametrize("name", sorted(CASES))
def test_function_computes_the_same_as_on_the_cpu(results, name):
    import numpy as np
    ours, cpus = results[name, SIM], results[name, CPU]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    for have, want in zip(ours.value, cpus.value):
        np.testing.assert_allclose(have, want, rtol=1e-6)
