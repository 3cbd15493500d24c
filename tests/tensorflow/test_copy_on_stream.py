# SPDX-License-Identifier: Apache-2.0
"""CopyOnStream, the pass that copies tensors between the CPU and the device on the
stream of the kernels: results are those of the CPU, for sizes that cpu_sim copies at once
and for others, in loops and branches, and TensorFlow's own copies are gone."""

import harness
import numpy as np
import pytest

TO_DEVICE, TO_HOST = "TfplugToDeviceV1", "TfplugToHostV1"
SHAPES = [[3], [0, 4], [], [300, 1000]]
TYPES = ["float32", "float64", "float16", "int64", "bool", "complex64"]


def _functions(tf, device):
    """Returns {name: function of one tensor of the CPU}."""
    def back_and_forth(x):
        with tf.device("/device:CPU:0"):
            x = tf.identity(x)
        with tf.device(device):
            y = tf.concat([x[None], x[None]], 0)
            z = tf.reverse(y, [0])
        with tf.device("/device:CPU:0"):
            z = tf.concat([z, z], 0)
        with tf.device(device):
            return tf.stack([z, z]), tf.identity(x), y

    def loop(x):
        def body(i, y):
            with tf.device("/device:CPU:0"):
                y = tf.concat([y[1:], y[:1]], 0)
            with tf.device(device):
                return i + 1, tf.reverse(y, [0])

        with tf.device(device):
            return tf.while_loop(lambda i, _: i < 5, body,
                                 [0, tf.reshape(x, [-1])])[1]

    def branch(x):
        with tf.device("/device:CPU:0"):
            y = tf.reverse(tf.reshape(x, [-1]), [0])
            is_long = tf.size(x) > 3

        def copied():
            with tf.device(device):
                return tf.concat([y, y], 0)

        return tf.cond(is_long, copied, lambda: y)

    def embedding(x):
        """Counts words, of which -1 is the last one, as the gradient of Keras' layer
        does: TensorFlow computes with int32 in host memory."""
        with tf.device("/device:CPU:0"):
            words = tf.clip_by_value(tf.cast(x, tf.int32), -4, 3)
        with tf.device(device):
            words = tf.where(words < 0, words + 4, words)
            table = tf.reshape(tf.range(20.0), [4, 5])
            rows = tf.reshape(tf.gather(table, words), [-1, 5])
            words = tf.reshape(words, [-1])
            return tf.math.unsorted_segment_sum(rows, words, 4), (
                tf.gather(table, tf.tensor_scatter_nd_update(
                    [0, 1, 2], [[1]], tf.size(x)[None] % 4)))

    return {f.__name__: f for f in (back_and_forth, loop, branch, embedding)}


def results(name, device):
    """Returns the bytes of all results, the ops of the graphs that ran, and whether this
    release has asynchronous kernels."""
    import tensorflow as tf
    from tensorflow.python.eager import context
    random = np.random.default_rng(0)
    found = []
    context.context().enable_run_metadata()
    for dtype in TYPES:
        function = tf.function(_functions(tf, f"/device:{device}:0")[name])
        for shape in SHAPES:
            with tf.device("/device:CPU:0"):
                x = tf.cast(tf.constant(random.normal(0, 2, shape)), dtype)
            for _ in range(3):
                for y in tf.nest.flatten(function(x)):
                    found.append([list(y.shape), y.numpy().tobytes().hex()])
    metadata = context.context().export_run_metadata()
    return found, sorted({n.op for f in metadata.function_graphs
                          for g in f.partition_graphs for n in g.node}), (
        13 <= int(tf.__version__.split(".")[1]) <= 23)


@pytest.mark.parametrize("name", ["back_and_forth", "loop", "branch", "embedding"])
def test_results_are_those_of_the_cpu(name):
    expected, *_ = harness.run(results, name, "CPU").value
    found, ops, is_asynchronous = harness.run(results, name, "SIM").value
    assert found == expected
    assert TO_DEVICE in ops
    assert (TO_HOST in ops) == (is_asynchronous and name in ("back_and_forth", "loop"))
    if name == "embedding" and harness.release() != (2, 17):
        assert "_Recv" not in ops


def failure(hook):
    """Returns the error of a step whose copy fails, and the results of the next one."""
    from fault import Faults
    faults = Faults()
    import tensorflow as tf

    @tf.function
    def step(x):
        with tf.device("/device:SIM:0"):
            y = tf.nn.relu(x)
        with tf.device("/device:CPU:0"):
            return tf.sqrt(y)

    with tf.device("/device:CPU:0"):
        x = tf.constant([4.0, -9.0])
    step(x)
    faults.arm(hook)
    try:
        step(x)
        error = ""
    except tf.errors.OpError as e:
        error = e.message
    faults.disarm()
    return error, step(x).numpy().tolist()


@pytest.mark.parametrize("hook", ["memcpy_htod", "memcpy_dtoh"])
def test_a_copy_that_fails_fails_its_op(hook):
    error, after = harness.run(failure, hook).value
    assert hook in error
    assert after == [2, 0]


def loop_over_dataset(device):
    """Returns the result of a loop that carries the next element of a dataset and an
    optional result, as Keras' with `steps_per_execution` does, and what the copies from
    the device in its body copy that wait for all kernels."""
    import graph_runs
    import tensorflow as tf
    data = tf.data.Dataset.from_tensor_slices(np.arange(12, dtype="float32")).batch(2)
    with tf.device(device):
        total = tf.Variable([1., 2.])

        @tf.function(jit_compile=False)
        def run(iterator):
            last = tf.experimental.Optional.from_value(tf.zeros([2]))
            element = iterator.get_next_as_optional()
            i = 0
            while i < 5 and element.has_value():
                if i != 2:
                    total.assign(total * 2. + element.get_value())
                last = tf.experimental.Optional.from_value(total + 1.)
                if i < 4:
                    element = iterator.get_next_as_optional()
                i += 1
            return last.get_value(), tf.cast(i, tf.float32)

        result, functions = graph_runs.recorded(lambda: run(iter(data)))
    nodes = {node.name: node for nodes in functions for node in nodes}
    return [[value.numpy().tolist() for value in (*result, total)],
            [nodes[node.input[0].split(":")[0]].op for node in nodes.values()
             if node.op == "_Send" and "while/body" in node.name
             and "SIM" in node.attr["send_device"].s.decode()]]


def test_a_loop_over_a_dataset_does_not_wait_for_the_device():
    """See keep_optionals_on_host.h."""
    ours, cpus = harness.run_each(loop_over_dataset, [["/device:SIM:0"], ["/CPU:0"]])
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    assert ours.value[0] == cpus.value[0]
    assert ours.value[1] == []
