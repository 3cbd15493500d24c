# SPDX-License-Identifier: Apache-2.0
"""Keras' recurrent layers and attention run entirely on the device; outputs and
gradients equal the CPU's."""

import functools

import harness
import pytest

SIM, CPU = "SIM:0", "CPU:0"
# Keras draws the weights eagerly, with shapes and seeds from the host.
ARGUMENTS = {"_Arg", "_DeviceArg", "_Send"}
RELATIVE = {"output": 1e-4, "gradient": 1e-3}


def _recurrent(keras, cell, unroll, mask):
    from keras import layers
    # These are loops; test_rnn_kernels.py has the kernels of whole layers.
    options = {} if keras.__version__.startswith("2.") else {"use_cudnn": False}
    cell = functools.partial(getattr(layers, cell), **options)
    return keras.Sequential([
        layers.Input((5,), dtype="int64"),
        layers.Embedding(20, 6, mask_zero=mask),
        cell(8, return_sequences=True, unroll=unroll),
        cell(5, unroll=unroll), layers.Dense(3)])


def _transformer(keras):
    from keras import layers
    tokens = layers.Input((5,), dtype="int64")
    x = layers.Embedding(20, 8)(tokens)
    for block in range(2):
        attended = layers.MultiHeadAttention(2, 4)(x, x)
        attended = layers.Dropout(0.1, seed=block)(attended)
        x = layers.LayerNormalization()(x + attended)
        hidden = layers.Dense(16, activation="gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(8)(hidden))
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(3)(x))


def _value(weight):
    """Returns the value of a weight: a property in Keras 3, a method in Keras 2."""
    return weight.value() if callable(weight.value) else weight.value


def run_model(kind, device, steps=3):
    """Trains a model for some steps. Returns outputs, the gradients of the first
    step, losses, and the executed ops that ran on another device."""
    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context
    tf.config.set_soft_device_placement(False)
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    with tf.device(device):
        model = (_transformer(keras) if kind == "transformer" else
                 _recurrent(keras, *kind))
        weights = model.trainable_variables
        assert all(device in _value(w).device for w in weights)
        x = tf.constant(random.integers(0, 20, (6, 5)))
        y = tf.constant(random.integers(0, 3, 6))
    output = tf.function(lambda x: model(x, training=False))

    @tf.function
    def step(x, y):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(
                        y, model(x, training=True)))
            found = tape.gradient(loss, weights)
            found = [tf.convert_to_tensor(g) for g in found]
            for w, g in zip(weights, found):
                w.assign(w - 0.1 * g)
        return loss, found

    context.context().enable_run_metadata()
    with tf.device(device):
        outputs = output(x).numpy().tolist()
        losses = []
        for i in range(steps):
            loss, found = step(x, y)
            losses.append(float(loss))
            if i == 0:
                gradients = [g.numpy().tolist() for g in found]
    graphs = context.context().export_run_metadata().function_graphs
    context.context().disable_run_metadata()
    nodes = [n for function in graphs for graph in function.partition_graphs
             for n in graph.node]
    ran = [(n.op, n.device) for n in nodes]
    copies = [n.name for n in nodes
              if ("LogicalAnd" in n.name or "TensorList" in n.name) and
              n.op in ("_HostSend", "_HostRecv", "_Send", "_Recv")]
    sums = [n.name for n in nodes if n.op in ("AddN", "ZerosLike") and
            n.attr["T"].type == tf.variant.as_datatype_enum]
    return dict(output=[outputs], gradient=gradients, losses=losses, sums=sums,
                ops=sorted({op for op, _ in ran}),
                count=len(ran), copies=copies,
                elsewhere=sorted({op for op, d in ran if device not in d}
                                 - ARGUMENTS))


KINDS = {
    "LSTM": ["LSTM", False, False], "GRU": ["GRU", False, False],
    "LSTM, unrolled": ["LSTM", True, False],
    "GRU, unrolled": ["GRU", True, False],
    "LSTM, masked": ["LSTM", False, True],
    "transformer": "transformer",
}


@pytest.fixture(scope="module", name="results")
def _results():
    """Returns the results of each kind on SIM and on the CPU."""
    cases = [[kind, device] for device in (SIM, CPU) for kind in KINDS.values()]
    found = harness.run_each(run_model, cases)
    return dict(zip(KINDS, zip(found, found[len(KINDS):])))


@pytest.mark.parametrize("kind", KINDS)
def test_model(results, kind):
    import numpy as np
    ours, cpus = results[kind]
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    assert not ours.value["elsewhere"], ours.value["elsewhere"]
    assert ours.value["count"] > 50
    for what, limit in RELATIVE.items():
        scale = max(np.abs(w).max() for w in map(np.array, cpus.value[what]))
        for have, want in zip(ours.value[what], cpus.value[what]):
            have, want = np.array(have), np.array(want)
            # Some gradients are zero except for rounding, such as those of the
            # biases of attention's keys: the tolerance comes from the others.
            size = max(np.abs(want).max(), 1e-4 * scale)
            assert np.abs(have - want).max() <= limit * size, what
    np.testing.assert_allclose(ours.value["losses"], cpus.value["losses"],
                               rtol=1e-4)
    # Dropout differs from step to step, so the loss need not fall in each.
    assert min(cpus.value["losses"][1:]) < cpus.value["losses"][0]


def _skip_without_loops(results):
    """The metadata lists the ops of the graphs that a step's function runs, but not those
    of the functions that they call, as Keras 2 does for each recurrent layer."""
    if "PartitionedCall" in results["LSTM"][0].value["ops"]:
        pytest.skip("Keras 2 runs its recurrent layers in functions of their own")


def test_loops_stay_loops(results):
    """The gradients of loops need sums of tensor lists, which TensorFlow supports on
    its own devices only, unless the release gives plug-ins functions for them (2.15 and
    2.18 do); masks are lists of bool. Passes replace both: see lower_list_gradients.h
    and cast_bool_lists.h."""
    _skip_without_loops(results)
    for kind in ("LSTM", "GRU", "LSTM, masked"):
        found = results[kind][0].value
        ops = found["ops"]
        assert "TensorListStack" in ops and "TensorListPopBack" in ops
        assert ("TensorListResize" in ops) != bool(found["sums"]), found["sums"]


def test_int32_of_loops_stays_on_the_host(results):
    """A condition is the LogicalAnd of two comparisons of int32, which are on the
    host, and so are the counter and the shapes that the gradient needs: see
    keep_conditions_on_host.h and recompute_loop_values.h."""
    _skip_without_loops(results)
    for kind in ("LSTM", "GRU"):
        found = results[kind][0].value
        assert "LogicalAnd" in found["ops"]
        assert not found["copies"]


def fit_several_steps_at_once(device):
    """Returns the losses of `fit` whose steps are a loop, with loops in it."""
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    x = random.normal(size=(14, 7, 5)).astype("float32")
    with tf.device(device):
        model = keras.Sequential([
            layers.Input((7, 5)),
            layers.Bidirectional(layers.SimpleRNN(4, return_sequences=True)),
            layers.GRU(8, return_sequences=True), layers.LSTM(6), layers.Dense(3)])
        model.compile("sgd", "mse", steps_per_execution=2,
                      **harness.without_xla_on_cpu(device))
        history = model.fit(x, x[:, 0, :3], batch_size=4, epochs=2, verbose=0)
    return history.history["loss"]


def test_loops_in_a_loop_of_steps():
    import numpy as np
    ours, cpus = harness.run_each(fit_several_steps_at_once, [[SIM], [CPU]])
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    np.testing.assert_allclose(ours.value, cpus.value, rtol=1e-5)


def fetch_list_of_bool(device):
    """Returns the op that fetches a loop's list of bool by its name, and its values."""
    import tensorflow as tf
    with tf.Graph().as_default(), tf.device(device):
        x = tf.compat.v1.placeholder(tf.float32, [3])
        _, signs = tf.while_loop(
            lambda i, _: i < 3, lambda i, signs: (i + 1, signs.write(i, x[i] > 0.)),
            [0, tf.TensorArray(tf.bool, 3)])
        stack = signs.stack()
        with tf.compat.v1.Session() as session:
            return stack.op.type, session.run(stack, {x: [1., -1., 2.]}).tolist()


def test_a_list_of_bool_is_fetched():
    result = harness.run(fetch_list_of_bool, SIM)
    assert result.ok, result
    assert list(result.value) == ["TensorListStack", [True, False, True]]


def connectionist_loss(device):
    """Returns the loss, its gradient, and whether each loop becomes part of the graph."""
    import numpy as np
    import tensorflow as tf
    logits = np.random.RandomState(0).randn(9, 2, 5).astype("float32")

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.nn.ctc_loss([[1, 2, 2], [4, 3, 1]], x, [3, 3], [9, 7],
                                  blank_index=0)
        return loss, tape.gradient(loss, x)

    with tf.device(device):
        results = [r.numpy().tolist() for r in f(tf.constant(logits))]
    graph = f.get_concrete_function(tf.constant(logits)).graph.as_graph_def()
    nodes = [*graph.node, *(n for g in graph.library.function for n in g.node_def)]
    loops = [n for n in nodes if n.op in ("While", "StatelessWhile")]
    return results, [n.attr["_lower_using_switch_merge"].b for n in loops]


def gradient_of_complex_scan(device):
    """Returns the gradient of a loop over lists of complex numbers, which TensorFlow
    has on its own devices only."""
    import tensorflow as tf
    x = tf.constant([[1 + 2j, -1j], [0.5 - 1j, 2], [3j, 1 - 1j]], tf.complex64)

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.abs(tf.scan(lambda a, b: a * b, x)))
        return tape.gradient(y, x)
    with tf.device(device):
        return gradient(x).numpy().view("float32").tolist()


def test_gradient_of_a_loop_over_complex_numbers():
    import numpy as np
    ours, cpus = harness.run_each(gradient_of_complex_scan, [[SIM], [CPU]])
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    np.testing.assert_allclose(ours.value, cpus.value, rtol=1e-5)


def test_the_loops_of_a_ctc_loss_become_part_of_the_graph():
    import numpy as np
    ours, cpus = harness.run_each(connectionist_loss, [["SIM:0"], ["CPU:0"]])
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    for have, want in zip(ours.value[0], cpus.value[0]):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
    assert len(ours.value[1]) >= 2 and all(ours.value[1])


def work_on_lists():
    """Returns the errors of eager ops on lists, which no pass can rewrite, where Python's
    functions are bypassed; and the results of these functions."""
    import tensorflow as tf
    from tensorflow.python.eager import context, execute
    from tensorflow.python.ops import list_ops, map_ops
    tf.config.set_soft_device_placement(False)
    variant, boolean = tf.variant.as_datatype_enum, tf.bool.as_datatype_enum
    with tf.device("/device:SIM:0"):
        values = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        x = list_ops.tensor_list_from_tensor(values, element_shape=[2])
        masks = tf.constant([True, False])
        words = []
        for op, inputs, attrs in (
                (b"AddN", [x, x], ("N", 2, "T", variant)),
                (b"ZerosLike", [x], ("T", variant)),
                (b"TensorListFromTensor", [masks, tf.constant(0, shape=[0])],
                 ("element_dtype", boolean, "shape_type", tf.int32.as_datatype_enum))):
            try:
                execute.execute(op, 1, inputs, attrs, context.context())
            except tf.errors.UnimplementedError as error:
                words.append(str(error))
        with tf.GradientTape() as tape:
            tape.watch(values)
            x = list_ops.tensor_list_from_tensor(values, element_shape=[2])
            stack = list_ops.tensor_list_stack(x, tf.float32, num_elements=2)
            y = tf.reduce_sum(stack * stack) + tf.reduce_sum(
                list_ops.tensor_list_get_item(x, 0, tf.float32, [2]))
        results = [
            list_ops.tensor_list_stack(tf.raw_ops.AddN(inputs=[x, x]), tf.float32),
            list_ops.tensor_list_stack(tf.zeros_like(x), tf.float32),
            tape.gradient(y, values)]
        bools = list_ops.tensor_list_from_tensor(masks, element_shape=[])
        bools = list_ops.tensor_list_set_item(bools, 1, tf.constant(True))
        results.append(list_ops.tensor_list_stack(bools, tf.bool))
    with tf.device("/device:CPU:0"):
        x = list_ops.tensor_list_from_tensor([1.0, 2.0], element_shape=[])
    # Without tf.device, TensorFlow chooses the device for a list that is on the CPU.
    results.append(list_ops.tensor_list_stack(tf.raw_ops.AddN(inputs=[x, x]), tf.float32))
    bools = list_ops.tensor_list_from_tensor([True, True], element_shape=[])
    bools = list_ops.tensor_list_set_item(bools, 0, False)
    results.append(list_ops.tensor_list_stack(bools, tf.bool))
    with tf.GradientTape() as tape:
        tape.watch(values)
        x = map_ops.tensor_map_insert(map_ops.empty_tensor_map(), 1., values)
        x = map_ops.tensor_map_insert(x, 2., values * values)
        y = sum(map_ops.tensor_map_lookup(x, key, tf.float32) for key in (1., 2.))
    results.append(tape.gradient(y, values))
    return words, [result.numpy().tolist() for result in results]


def change_slices():
    """Updates a slice, as Keras' SGD does for an Embedding."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:SIM:0"):
        v = tf.Variable([[1.0], [2.0]])
        try:
            v.scatter_sub(tf.IndexedSlices(tf.ones([1, 1]), tf.constant([1])))
        except tf.errors.UnimplementedError as error:
            assert "TF_" in str(error) and "tensor_scatter" in str(error)
        else:
            return "changed"
        v.assign(tf.tensor_scatter_nd_sub(v, [[1]], [[1.0]]))
    return v.numpy().tolist()


def run_rejected(name):
    return {"lists": work_on_lists, "slices": change_slices}[name]()


def test_eager_lists_and_slices():
    lists, slices = harness.run_each(
        run_rejected, [["lists"], ["slices"]], env={"TFPLUG_PYTHON_UPDATES": "0"})
    assert lists.ok and slices.ok, f"{lists}\n{slices}"
    # Releases up to 2.18 export the functions, so only lists of bool are rejected.
    exports_functions = slices.value == "changed"
    hints = ["cast to"] if exports_functions else ["unroll=True", "unroll=True", "cast to"]
    found, results = lists.value
    assert len(found) == len(hints), lists
    for words, hint in zip(found, hints):
        assert hint in words, words
    assert results == [[[2, 4], [6, 8]], [[0, 0], [0, 0]], [[3, 5], [6, 8]],
                       [True, True], [2, 4], [False, True], [[3, 5], [7, 9]]]
    assert exports_functions or slices.value == [[1.0], [1.0]], slices
