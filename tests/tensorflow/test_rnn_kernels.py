# SPDX-License-Identifier: Apache-2.0
"""The kernels of CudnnRNN compute what a loop of other ops does, and Keras trains its
layers LSTM and GRU with them: with the same results, whatever the mask."""

import harness
import pytest

NEEDS_KERAS_3 = pytest.mark.skipif(harness.keras_version().startswith("2."),
                                   reason="Keras 2 selects kernels by the name GPU")


def returned(function, *arguments, **options):
    """Returns what the function returns in a process of its own."""
    result = harness.run(function, *arguments, **options)
    assert result.ok, result
    return result.value


MODES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}  # and their gates
TIME, BATCH, INPUTS, UNITS = 5, 19, 4, 6


def step(tf, mode, x, h, c):
    """Returns the new state and cell; x and h are the products of a step."""
    if mode == "lstm":
        i, f, g, o = tf.split(x + h[0], 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c
    if mode == "gru":
        (xz, xr, xn), (hz, hr, hn) = (tf.split(v, 3, axis=1) for v in (x, h[0]))
        z, n = tf.sigmoid(xz + hz), tf.tanh(xn + tf.sigmoid(xr + hr) * hn)
        return z * h[1] + (1 - z) * n, c
    return (tf.tanh if mode == "rnn_tanh" else tf.nn.relu)(x + h[0]), c


def plain_rnn(tf, mode, layers, directions, x, h0, c0, params, lengths):
    """Computes CudnnRNNV3 with other ops."""
    width, count, at = MODES[mode] * UNITS, layers * directions, 0

    def take(*shape):
        nonlocal at
        size = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
        at += size
        return tf.reshape(params[at - size:at], shape)

    inputs = [INPUTS if p < directions else directions * UNITS for p in range(count)]
    weights = [(take(width, n), take(width, UNITS)) for n in inputs]
    biases = [(take(width), take(width)) for _ in range(count)]
    states, cells = [], []
    for layer in range(layers):
        outputs = []
        for d in range(directions):
            p = layer * directions + d
            h, c, y = h0[p], c0[p], [None] * TIME
            for t in reversed(range(TIME)) if d else range(TIME):
                of_x = tf.matmul(x[t], weights[p][0], transpose_b=True) + biases[p][0]
                of_h = tf.matmul(h, weights[p][1], transpose_b=True) + biases[p][1]
                new, cell = step(tf, mode, of_x, (of_h, h), c)
                valid = (t < lengths)[:, None]
                h, c = tf.where(valid, new, h), tf.where(valid, cell, c)
                y[t] = tf.where(valid, new, tf.zeros_like(new))
            outputs.append(tf.stack(y))
            states.append(h)
            cells.append(c)
        x = tf.concat(outputs, 2)
    return x, tf.stack(states), tf.stack(cells)


def largest_differences(mode, type_name):
    """Returns how far outputs and gradients are from those of plain_rnn, relative to
    the largest, for one and several layers and directions, and both orders of
    dimensions."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(0)
    differences = []
    for layers, directions, major in ((1, 1, True), (1, 2, False), (3, 1, False),
                                      (2, 2, True)):
        count, gates = layers * directions, MODES[mode]
        size = sum(gates * UNITS * ((INPUTS if p < directions else directions * UNITS)
                                    + UNITS + 2) for p in range(count))
        shapes = ((TIME, BATCH, INPUTS), *2 * ((count, BATCH, UNITS),), (size,),
                  (TIME, BATCH, directions * UNITS), *2 * ((count, BATCH, UNITS),))
        arrays = [random.normal(size=s) * .6 for s in shapes]
        given = ([tf.constant(a, type_name) for a in arrays[:4]], arrays[4:])
        results = []
        for device in "CPU:0", "SIM:0":
            with tf.device(device), tf.GradientTape() as tape:
                inputs = [tf.identity(v) for v in given[0]]
                tape.watch(inputs)
                x, h, c, params = inputs
                lengths = tf.constant(([TIME, 0, 3] * BATCH)[:BATCH])
                if device == "CPU:0":
                    outputs = plain_rnn(tf, mode, layers, directions, *inputs, lengths)
                else:
                    def swap(v):
                        return v if major else tf.transpose(v, [1, 0, 2])
                    y, h, c, *_ = tf.raw_ops.CudnnRNNV3(
                        input=swap(x), input_h=swap(h),
                        input_c=swap(c) if mode == "lstm" else tf.zeros([], x.dtype),
                        params=params, sequence_lengths=lengths, rnn_mode=mode,
                        direction=("uni", "bi")[directions - 1] + "directional",
                        time_major=major)
                    assert y.device.endswith(device)
                    outputs = [swap(y), swap(h), *([swap(c)] if mode == "lstm" else [])]
                outputs = outputs[:2 + (mode == "lstm")]
                loss = tf.add_n([tf.reduce_sum(y * tf.constant(w, y.dtype))
                                 for y, w in zip(outputs, given[1])])
            found = tape.gradient(loss, inputs)
            results.append([v.numpy().astype("float64") for v in
                            [*outputs, *(g for g in found if g is not None)]])
        differences += [float(np.max(np.abs(a - b)) / (1 + np.max(np.abs(a))))
                        for a, b in zip(results[0], results[1], strict=True)]
    return differences


@pytest.mark.parametrize("mode", MODES)
def test_layers_and_gradients(mode):
    assert max(returned(largest_differences, mode, "float64")) < 1e-13
    assert max(returned(largest_differences, mode, "float32")) < 3e-6
    # Where rounding changes the sign of a relu's input, its gradient comes or goes.
    half = 0.2 if mode == "rnn_relu" else 4e-2
    assert max(returned(largest_differences, mode, "float16")) < half


def other_versions():
    """Runs the ops of TensorFlow 1, whose parameters come as a list."""
    import numpy as np
    import tensorflow as tf
    raw, random = tf.raw_ops, np.random.default_rng(1)
    sizes = {"num_layers": 2, "num_units": UNITS, "input_size": INPUTS}
    with tf.device("SIM:0"):
        size = raw.CudnnRNNParamsSize(**sizes, T=tf.float32, S=tf.int32)
        params = tf.constant(random.normal(size=int(size[0])), tf.float32)
        weights, biases = raw.CudnnRNNParamsToCanonical(
            **sizes, params=params, num_params=16)
        again = raw.CudnnRNNCanonicalToParams(**sizes, weights=weights, biases=biases)
        x = tf.constant(random.normal(size=(TIME, BATCH, INPUTS)), tf.float32)
        h = tf.zeros((2, BATCH, UNITS))
        results = []
        for op in raw.CudnnRNN, raw.CudnnRNNV2, raw.CudnnRNNV3:
            more = {"sequence_lengths": [TIME] * BATCH} if op is raw.CudnnRNNV3 else {}
            with tf.GradientTape() as tape:
                tape.watch(params)
                y = op(input=x, input_h=h, input_c=h, params=params, **more)[0]
            predicted = op(input=x, input_h=h, input_c=h, params=params,
                           is_training=False, **more)[0]
            results.append([v.numpy().tolist() for v in
                            (y, predicted, tape.gradient(y, params))])
    return {"same": bool(tf.reduce_all(again == params)),
            "shapes": [list(w.shape) for w in (weights[0], weights[15], biases[0])],
            "equal": results[0] == results[1] == results[2]
            and results[0][0] == results[0][1]}


def test_other_versions_of_the_op():
    assert returned(other_versions) == {
        "same": True, "equal": True,
        "shapes": [[UNITS, INPUTS], [UNITS, UNITS], [UNITS]]}


def messages_of_wrong_arguments():
    import tensorflow as tf
    good = {"input": tf.zeros((TIME, BATCH, INPUTS)),
            "input_h": tf.zeros((1, BATCH, UNITS)),
            "input_c": tf.zeros((1, BATCH, UNITS)),
            "params": tf.zeros(4 * UNITS * (INPUTS + UNITS + 2)),
            "sequence_lengths": [TIME] * BATCH}
    wrong = [{"input_h": tf.zeros((1, BATCH + 1, UNITS))},
             {"input_c": tf.zeros((2, BATCH, UNITS))},
             {"params": tf.zeros(7)}, {"sequence_lengths": [TIME + 1] * BATCH},
             {"sequence_lengths": [TIME]}, {"input_mode": "skip_input"},
             {"input_h": tf.zeros((1, BATCH, 0))}]
    messages = []
    for change in wrong:
        with tf.device("SIM:0"):
            try:
                tf.raw_ops.CudnnRNNV3(**{**good, **change})
                messages.append("no error")
            except tf.errors.OpError as error:
                messages.append(error.message)
    return messages


def test_wrong_arguments():
    expected = ["Invalid input_h shape", "input_c must have the shape of input_h",
                "must have 288 elements", "between 0 and the 5 steps",
                f"each of the {BATCH} sequences", "use linear_input", "at least one feature"]
    for message, words in zip(returned(messages_of_wrong_arguments), expected,
                              strict=True):
        assert words in message


# The mask, go_backwards, return_sequences, and what else.
LAYERS = [(None, False, False, ""), (None, True, True, ""),
          (None, False, True, "bidirectional"), ("right", False, False, ""),
          ("right", False, True, ""), ("left", True, True, ""),
          ("any", False, True, ""), ("any", False, True, "bidirectional"),
          ("any", False, True, "zeros"), ("any", True, False, "zeros")]


def tokens_with(mask, random, numpy):
    """Returns tokens, of which 0 is masked; none of the third sequence is left."""
    tokens = random.integers(1, 20, (6, 7))
    if mask == "any":
        tokens[random.random((6, 7)) < .5] = 0
    elif mask:
        ends = random.integers(0, 8, (6, 1))
        steps = numpy.arange(7)
        tokens[steps >= ends if mask == "right" else steps < ends] = 0
    if mask:
        tokens[2] = 0
    return tokens


def train_with_and_without(cell, policy, cases):
    """Returns, for each layer: how far output, loss and gradients are from those of
    the loop, and whether each of the two used the kernels."""
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers
    keras.config.set_dtype_policy(policy)
    random = np.random.default_rng(0)

    def gradients(x, labels, use_cudnn, is_masked, is_bidirectional, options):
        keras.utils.set_random_seed(1)
        layer = getattr(layers, cell)(8, use_cudnn=use_cudnn, dropout=.3, **options)
        model = keras.Sequential([
            layers.Input((7,), dtype="int32"),
            layers.Embedding(20, 6, mask_zero=is_masked),
            layers.Bidirectional(layer) if is_bidirectional else layer,
            layers.Dense(3)])

        @tf.function
        def compute():
            with tf.GradientTape() as tape:
                y = model(x, training=True)
                loss = tf.reduce_mean((tf.cast(y, tf.float32) - labels) ** 2)
            return [y, loss] + [tf.convert_to_tensor(g) for g in tape.gradient(
                loss, model.trainable_variables)]

        found = [v.numpy().astype("float32") for v in compute()]
        ops = {n.type for n in compute.get_concrete_function().graph.get_operations()}
        return found, "CudnnRNNV3" in ops

    rows = []
    for mask, backwards, sequences, kind in cases:
        options = {"go_backwards": backwards, "return_sequences": sequences}
        if kind == "zeros":
            options["zero_output_for_mask"] = True
        with tf.device("SIM:0"):
            x = tf.constant(tokens_with(mask, random, np))
            labels = tf.constant(random.normal(size=(6, 7, 3) if sequences else (6, 3)),
                                 tf.float32)
            (a, loops), (b, kernels) = (
                gradients(x, labels, use, bool(mask), kind == "bidirectional", options)
                for use in (False, "auto"))
        rows.append([max(float(np.max(np.abs(p - q))) for p, q in zip(a, b)),
                     loops, kernels])
    return rows


@NEEDS_KERAS_3
@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_keras_trains_with_the_kernels(cell):
    for policy, limit, cases in (("float32", 3e-6, LAYERS),
                                 ("mixed_float16", 1e-2, LAYERS[6:8])):
        rows = returned(train_with_and_without, cell, policy, cases)
        for case, (difference, *used) in zip(cases, rows, strict=True):
            assert difference < limit and used == [False, True], (case, policy)


def ops_of_models(device_type):
    """Returns whether training, prediction and an export use the kernels, after
    fit with Keras' defaults, and on the CPU; and whether the loop predicts the same."""
    import tempfile
    import keras
    import numpy as np
    import tensorflow as tf
    from keras import layers
    uses = {}

    def note(name, graph):
        """Notes whether the graph, or a function that it calls, has the op."""
        definition = graph.as_graph_def()
        nodes = [*definition.node, *(n for f in definition.library.function
                                     for n in f.node_def)]
        uses[name] = any(n.op == "CudnnRNNV3" for n in nodes)

    x = np.ones((8, 5, 3), "float32")
    for device in f"{device_type}:0", "CPU:0":
        with tf.device(device):
            model = keras.Sequential([layers.Input((5, 3)), layers.LSTM(4),
                                      layers.Dense(1)])
            model.compile("adam", "mse")
            before, after = (model.fit(x, x[:, 0, :1], epochs=8, verbose=0).history[
                "loss"][i] for i in (0, -1))
            assert after < before
            for training in True, False:
                function = tf.function(lambda x, t=training: model(x, training=t))
                note(f"{device} {training}",
                     function.get_concrete_function(tf.constant(x)).graph)
            layer = layers.LSTM(4, dropout=.5)
            predicted = layer(x, training=False)
            layer.use_cudnn = False
            uses[f"{device} predicts the same"] = bool(np.allclose(
                predicted, layer(x, training=False), rtol=1e-5, atol=1e-6))
    with tempfile.TemporaryDirectory() as folder:
        model.export(folder, verbose=False)
        loaded = tf.saved_model.load(folder)
        note("export", loaded.signatures["serving_default"].graph)
    return uses


@NEEDS_KERAS_3
def test_only_training_uses_the_kernels():
    assert returned(ops_of_models, "SIM") == {
        "SIM:0 True": True, "SIM:0 False": False, "SIM:0 predicts the same": True,
        "CPU:0 True": False, "CPU:0 False": False, "CPU:0 predicts the same": True,
        "export": False}


@NEEDS_KERAS_3
def test_devices_of_type_gpu_use_the_kernels_everywhere():
    found = returned(ops_of_models, "GPU", env={"TFPLUG_DEVICE_TYPE": "SIM=GPU"})
    assert found["GPU:0 True"] and found["GPU:0 False"] and found["export"]
    assert found["GPU:0 predicts the same"]
