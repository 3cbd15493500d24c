# SPDX-License-Identifier: Apache-2.0
"""Keras' own training loop has the same losses on the device, whose memory the host
cannot access, as on the CPU."""

import harness
import pytest

# The graph pass itself is under test, so Python's ops are left as they are.
STRICT = {"CPU_SIM_STRICT": "1", "TFPLUG_PYTHON_UPDATES": "0"}
OPTIMIZERS = {
    "sgd": lambda keras: keras.optimizers.SGD(0.1),
    "momentum": lambda keras: keras.optimizers.SGD(0.1, momentum=0.9),
    "nesterov": lambda keras: keras.optimizers.SGD(
        0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda keras: keras.optimizers.Adam(0.01),
    "adam, in loops": lambda keras: keras.optimizers.Adam(0.01),
}
STEPS_AT_ONCE = {"adam, in loops": 5}  # in a tf.while_loop with tf.cond
# Ops of training that belong on the CPU: input data, and counters on the host.
ON_THE_CPU = {"_Arg", "_Retval", "_Send", "_Recv", "_HostSend", "_HostRecv",
              "Const", "NoOp", "Identity", "IteratorGetNext",
              "OptionalFromValue", "OptionalGetValue", "OptionalHasValue",
              "OptionalNone"}


def _model(keras, np, optimizer):
    def weights(seed):
        random = np.random.default_rng(seed)
        return lambda shape, dtype=None: random.normal(
            0, 0.2, shape).astype(np.float32)
    model = keras.Sequential([
        keras.Input((20,)),
        keras.layers.Dense(32, "relu", kernel_initializer=weights(1)),
        keras.layers.Dense(5, kernel_initializer=weights(2)),
    ])
    model.compile(
        OPTIMIZERS[optimizer](keras), jit_compile=False,
        steps_per_execution=STEPS_AT_ONCE.get(optimizer, 1),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"] if optimizer == "sgd" else None)
    return model


def _data(np):
    random = np.random.default_rng(0)
    x = random.normal(size=(320, 20)).astype(np.float32)
    return x, x[:, :5].argmax(axis=1).astype(np.int64)


def fit(optimizer, device):
    """Returns the loss after each batch (or each loop of batches), and the ops that
    ran on the CPU in functions that also ran ops on the device."""
    import keras
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.eager import context
    losses = []

    class Losses(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    # Without tf.device, Keras' functions run on SIM:0 and their input pipeline on
    # the CPU.
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model = _model(keras, np, optimizer)
        x, y = _data(np)
        context.context().enable_run_metadata()
        model.fit(x, y, batch_size=32, epochs=5, shuffle=False, verbose=0,
                  callbacks=[Losses()])
        metadata = context.context().export_run_metadata()
    found = set()
    for function in metadata.function_graphs:
        graphs = function.partition_graphs
        where = {tf.DeviceSpec.from_string(n.device).device_type: n
                 for g in graphs for n in g.node}
        if device in where:
            found |= {n.op for g in graphs for n in g.node if
                      n.device.endswith("CPU:0")}
    variable = model.trainable_variables[0]
    on_device = getattr(variable, "device", None) or variable.value.device  # Keras 2, 3
    assert f"{device}:0" in on_device, on_device
    return losses, sorted(found)


def train_on_batch(device):
    """Returns the losses without soft placement, when an op without a kernel on the
    device is an error, and that of fit()."""
    import keras
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:CPU:0" if device == "CPU" else None):
        model = _model(keras, np, "adam")
        x, y = _data(np)
        losses = [float(model.train_on_batch(x[i:i + 32], y[i:i + 32]))
                  for i in range(0, 320, 32)]
        return losses + model.fit(x, y, verbose=0, shuffle=False).history["loss"]


def train(how, device):
    return (train_on_batch(device) if how == "train_on_batch"
            else fit(how, device))


@pytest.fixture(scope="module", name="results")
def _results():
    cases = [[how, device] for how in [*OPTIMIZERS, "train_on_batch"]
             for device in ("SIM", "CPU")]
    return dict(zip(map(tuple, cases),
                    harness.run_each(train, cases, env=STRICT)))


def both(results, how):
    ours, cpus = results[how, "SIM"], results[how, "CPU"]
    assert ours.ok and cpus.ok, f"on the device: {ours}\non the CPU: {cpus}"
    return ours.value, cpus.value


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_fit_has_the_same_losses_as_on_the_cpu(results, optimizer):
    import numpy as np
    (losses, on_the_cpu), (cpus, _) = both(results, optimizer)
    np.testing.assert_allclose(losses, cpus, rtol=1e-5)
    steps = STEPS_AT_ONCE.get(optimizer, 1)
    assert len(losses) == 50 / steps and losses[-1] < 0.8 * losses[0]
    if steps == 1:  # the control flow of a loop also runs on the CPU
        assert set(on_the_cpu) <= ON_THE_CPU


def test_train_on_batch_without_soft_placement(results):
    import numpy as np
    np.testing.assert_allclose(*both(results, "train_on_batch"), rtol=1e-5)
