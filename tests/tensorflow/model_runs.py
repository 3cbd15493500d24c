# SPDX-License-Identifier: Apache-2.0
"""Runs whole models on the device and on the CPU. Each function needs a process of
its own that has loaded the plug-in. Soft placement is off, so that an op without a
kernel on the device is an error. test_models.py runs small models, tools/models the
full ones."""

import collections
import os
import time

# TFPLUG_MODELS_DEVICE is the device's type.
DEVICE = f"/device:{os.environ.get('TFPLUG_MODELS_DEVICE', 'SIM')}:0"
CPU = "/device:CPU:0"
# Some gradients are zero except for rounding errors, such as those of a bias before a
# batch normalization and of an attention's key bias. Differences are therefore
# relative to at least this fraction of the largest gradient's norm.
FLOOR = 1e-4


def _norm_of_difference(have, want, floor):
    """Returns the norm of the difference, relative to the norm of `want`. (A rounding
    error that moves one activation across the kink of its ReLU changes a few
    elements of a gradient by much more.)"""
    import numpy as np
    norm = max(np.linalg.norm(want), floor, np.finfo("f").tiny)
    return float(np.linalg.norm(have - want) / norm)


def _difference(have, want):
    """Returns the largest difference, relative to the largest value."""
    import numpy as np
    largest = max(np.abs(want).max(initial=0), np.finfo("f").tiny)
    return float(np.abs(have - want).max(initial=0) / largest)


def _functions(tf, model, device, frozen=False):
    """Returns two tf.functions without XLA: inference, and loss with gradients."""
    loss_of = model.loss

    @tf.function(jit_compile=False)
    def infer(x):
        with tf.device(device):
            return model(x, training=False)

    @tf.function(jit_compile=False)
    def differentiate(x, y):
        with tf.device(device):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=not frozen))
            variables = [v.value for v in model.trainable_variables]
            return loss, [tf.convert_to_tensor(g) for g in
                          tape.gradient(loss, variables)]

    return infer, differentiate


def _count_ops(tf, context, run):
    """Returns the number of nodes that TensorFlow runs on each device, after all of
    its graph passes."""
    context.context().enable_run_metadata()
    context.context().export_run_metadata()  # discards earlier graphs
    run()
    metadata = context.context().export_run_metadata()
    context.context().disable_run_metadata()
    counts = collections.Counter()
    for function in metadata.function_graphs:
        for graph in function.partition_graphs:
            for node in graph.node:
                spec = tf.DeviceSpec.from_string(node.device)
                counts[f"{spec.device_type}:{spec.device_index}"] += 1
    return counts


def _builder(name):
    """Returns a function of models.py or more_models.py."""
    import models
    import more_models
    return getattr(models, name, None) or getattr(more_models, name)


def compare(name, options, frozen=False):
    """Compares a model of models.py or more_models.py on both devices, with the same weights: the
    results of inference, and the loss and all gradients of a training step.

    `frozen`: batch normalizations work as in inference. In training they make the
    gradients of a deep network with few images chaotic: if rounding moves one
    activation across the kink of its ReLU, the gradients of all earlier layers
    change, on the CPU as well."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context
    tf.config.set_soft_device_placement(False)
    outputs, losses, gradients, counts = {}, {}, {}, {}
    for device in (DEVICE, CPU):
        with tf.device(device):
            model, x, y = _builder(name)(**options)
            x, y = tf.constant(x), tf.constant(y)
            infer, differentiate = _functions(tf, model, device, frozen)
            assert infer(x).device.endswith(device)
            outputs[device] = infer(x).numpy()
            counts[device] = _count_ops(
                tf, context, lambda: differentiate(x, y))
            loss, found = differentiate(x, y)
            losses[device] = loss.numpy()
            gradients[device] = [g.numpy() for g in found]
            names = [v.path for v in model.trainable_variables]
            parameters = model.count_params()
    # In frozen models, no gradient consists of rounding errors only.
    floor = 0 if frozen else FLOOR * max(
        np.linalg.norm(g) for g in gradients[CPU])
    apart = [_norm_of_difference(have, want, floor) for have, want in
             zip(gradients[DEVICE], gradients[CPU])]
    worst = int(np.argmax(apart))
    tiny = sum(float(np.linalg.norm(g)) < floor for g in gradients[CPU])
    return {
        "parameters": parameters, "shape": list(x.shape),
        "inference": _difference(outputs[DEVICE], outputs[CPU]),
        "loss": _difference(losses[DEVICE], losses[CPU]),
        "gradients": apart[worst], "worst": names[worst],
        "tensors": len(apart), "tiny": int(tiny), "ops": dict(counts[DEVICE]),
        "spread": float(outputs[CPU].std()),
    }


def _smooth(model):
    """Returns the network with each ReLU replaced by SiLU, which has no kink."""
    import keras

    def replace(layer):
        if (isinstance(layer, keras.layers.ReLU)
                or getattr(layer, "activation", None) is keras.activations.relu):
            return keras.layers.Activation("silu", name=layer.name)
        return layer.__class__.from_config(layer.get_config())

    smooth = keras.models.clone_model(model, clone_function=replace)
    smooth.compile(loss=model.loss, jit_compile=False)
    return smooth


def gradient_errors(name, options, seeds, smooth=False, policy="float32"):
    """Returns the errors of the gradients of a training step, with batch
    normalizations in training mode, for each seed of the weights and inputs.

    An error is the norm of all differences from the gradients in float64 on the
    CPU, divided by the norm of those gradients: for the device, for the CPU, and for
    the CPU with the input scaled by 1 + 3e-7; then the difference between device and
    CPU. `smooth`: with SiLU in place of ReLU. `policy`: the dtype policy, except for
    the gradients in float64."""
    import keras
    import models
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    def make(device, floatx, policy):
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(policy)
        with tf.device(device):
            model, x, y = _builder(name)(**options)
            model = _smooth(model) if smooth else model
            labels = tf.constant(y)
        _, differentiate = _functions(tf, model, device)

        def run(weights, x):
            with tf.device(device):
                model.set_weights([w.astype(floatx) if w.dtype.kind == "f" else w
                                   for w in weights])
                _, found = differentiate(tf.constant(x.astype(floatx)), labels)
            return np.concatenate([g.numpy().ravel() for g in found]).astype("d")

        return model, x, run

    model, x, cpu = make(CPU, "float32", policy)
    _, _, device = make(DEVICE, "float32", policy)
    _, _, exact = make(CPU, "float64", "float64")
    rows = []
    for seed in range(seeds):
        models.draw_weights(model, seed)
        weights = model.get_weights()
        inputs = np.random.default_rng(seed).normal(size=x.shape).astype("f")
        truth, ours, cpus = (f(weights, inputs) for f in (exact, device, cpu))
        moved = cpu(weights, inputs * np.float32(1 + 3e-7))
        norm = np.linalg.norm(truth)
        rows.append([float(np.linalg.norm(a - b) / norm) for a, b in (
            (ours, truth), (cpus, truth), (moved, truth), (ours, cpus))])
    return rows


def _digits():
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    data = load_digits()
    return train_test_split(
        (data.images[..., None] / 16).astype(np.float32),
        data.target.astype(np.int64), test_size=0.25, random_state=0,
        stratify=data.target)


def unseen_digits():
    """Returns (images, labels) that learn_digits does not train on."""
    _, images, _, labels = _digits()
    return images, labels


def learn_digits(device, epochs):
    """Trains the digits' CNN with Keras' Adam, batch by batch. Returns the loss of
    each step, and the predictions for digits that it was not trained on."""
    import keras
    import models
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    x, test_x, y, test_y = _digits()
    random, losses = np.random.default_rng(1), []
    # Without tf.device, Keras' functions run on SIM:0.
    with tf.device(CPU if device == CPU else None):
        model = models.cnn(keras.optimizers.Adam(0.003), batch=32)[0]
        for _ in range(epochs):
            order = random.permutation(len(x))
            for i in range(0, len(order) - 31, 32):
                chosen = order[i:i + 32]
                losses.append(float(model.train_on_batch(x[chosen], y[chosen])))
        predicted = model.predict_on_batch(test_x).argmax(axis=1)
    where = model.trainable_variables[0].value.device
    assert where.endswith(device), where
    return {"losses": losses, "predictions": predicted.tolist(),
            "accuracy": float((predicted == test_y).mean())}


def split_model(first, second):
    """Computes the loss and gradients of a perceptron that is split between two
    devices, and compares them with those of the CPU alone. Returns the largest
    difference of any tensor."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    found, places = {}, set()
    for parts in ((first, second), (CPU, CPU)):
        variables = []
        random = np.random.default_rng(3)
        for device, shape in zip(parts, ((20, 16), (16, 5))):
            with tf.device(device):
                variables.append(tf.Variable(
                    random.normal(0, 0.3, shape).astype(np.float32)))

        @tf.function(jit_compile=False)
        def step(x, y, parts=parts, variables=variables):
            with tf.GradientTape() as tape:
                with tf.device(parts[0]):
                    hidden = tf.nn.relu(tf.matmul(x, variables[0]))
                with tf.device(parts[1]):
                    logits = tf.matmul(hidden, variables[1])
                    loss = tf.reduce_mean(
                        tf.nn.sparse_softmax_cross_entropy_with_logits(
                            y, logits))
            gradients = tape.gradient(loss, variables)
            for device, variable, gradient in zip(parts, variables, gradients):
                with tf.device(device):
                    variable.assign(variable - 0.5 * gradient)
            return loss

        x = random.normal(size=(24, 20)).astype(np.float32)
        y = x[:, :5].argmax(axis=1)
        losses = [float(step(tf.constant(x), tf.constant(y)))
                  for _ in range(10)]
        found[parts] = [np.array(losses)] + [v.numpy() for v in variables]
        places.update(v.device for v in variables)
    apart = max(_difference(have, want) for have, want in
                zip(found[first, second], found[CPU, CPU]))
    return {"difference": apart, "places": sorted(places),
            "losses": found[first, second][0].tolist()}


def memory(steps, samples=5):
    """Trains the perceptron. Returns, at equal intervals after a warm-up, the bytes
    that this process has allocated with malloc, and the bytes in use on the device
    if TensorFlow's allocator manages it. (The resident set would include pages that
    are first touched late.)

    The device's figure is not exact: TensorFlow counts whole blocks, which may be
    larger than the tensors in them. With the plug-in's own allocator and a small
    device, a tensor leaked by each step would exhaust the memory."""
    import ctypes
    import gc
    import models
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    class Mallinfo2(ctypes.Structure):  # malloc.h
        _fields_ = [(name, ctypes.c_size_t) for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks",
            "fsmblks", "uordblks", "fordblks", "keepcost")]

    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo2

    def used():
        gc.collect()
        time.sleep(0.1)  # until the last step's objects are released
        host = mallinfo2()
        return [tf.config.experimental.get_memory_info("SIM:0")["current"],
                host.uordblks + host.hblkhd]

    model, x, y = models.mlp()
    random, figures, losses = np.random.default_rng(2), [], []
    warm_up = steps // 5
    every = (steps - warm_up) // samples
    start = time.monotonic()
    for i in range(steps + 1):
        batch = random.normal(size=x.shape).astype(np.float32)
        loss = model.train_on_batch(batch, y)
        if i in (0, steps):
            losses.append(float(loss))
        if i >= warm_up and (i - warm_up) % every == 0:
            figures.append(used())
    where = model.trainable_variables[0].value.device
    assert where.endswith(DEVICE), where
    return {"device": [figure[0] for figure in figures],
            "host": [figure[1] for figure in figures],
            "losses": losses, "seconds": time.monotonic() - start}
