# SPDX-License-Identifier: Apache-2.0
"""Times training steps of two small networks; run by benchmarks/opencl.py:

    opencl_steps.py tinygrad MODEL STEPS
    opencl_steps.py DEVICE MODEL STEPS [PLUGIN]     in TensorFlow

Prints the seconds of each step as JSON; the first one compiles. MODEL: mlp
(784-512-256-10, batch 128) or cnn (two convolutions, batch 64); both with Adam."""

import json
import os
import sys
import time

BATCH = {"mlp": 128, "cnn": 64}


def seconds(step, count):
    """Returns the wall time of each call; `step` returns the loss as a number."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        loss = step()
        times.append(time.perf_counter() - start)
    if not loss < 2.2:
        raise SystemExit(f"The network does not learn: its loss is {loss}.")
    return times


def tinygrad_step(name):
    os.environ.update(DEV="CL", TRAINING="1")
    from tinygrad import Tensor, TinyJit, nn

    class Mlp:
        def __init__(self):
            self.layers = [nn.Linear(784, 512), nn.Linear(512, 256), nn.Linear(256, 10)]

        def __call__(self, x):
            first, second, last = self.layers
            return last(second(first(x).relu()).relu())

    class Cnn:
        def __init__(self):
            self.first = nn.Conv2d(1, 32, 5, padding=2)
            self.second = nn.Conv2d(32, 64, 3, padding=1)
            self.last = nn.Linear(64 * 49, 10)

        def __call__(self, x):
            x = self.first(x).relu().max_pool2d()
            return self.last(self.second(x).relu().max_pool2d().flatten(1))

    network = {"mlp": Mlp, "cnn": Cnn}[name]()
    optimizer = nn.optim.Adam(nn.state.get_parameters(network))
    shape = (784,) if name == "mlp" else (1, 28, 28)
    x = Tensor.rand(BATCH[name], *shape).realize()
    y = Tensor.randint(BATCH[name], high=10).realize()

    @TinyJit
    def step():
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss.realize()

    return lambda: step().item()


def tensorflow_step(device, name, plugin):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import keras
    import tensorflow as tf
    from keras import layers
    from tensorflow.python.framework import load_library

    if plugin:
        load_library.load_pluggable_device_library(plugin)
    shape = (784,) if name == "mlp" else (28, 28, 1)
    with tf.device(f"/device:{device}:0"):
        network = keras.Sequential([keras.Input(shape)] + {
            "mlp": lambda: [layers.Dense(512, "relu"), layers.Dense(256, "relu")],
            "cnn": lambda: [
                layers.Conv2D(32, 5, padding="same", activation="relu"),
                layers.MaxPool2D(),
                layers.Conv2D(64, 3, padding="same", activation="relu"),
                layers.MaxPool2D(), layers.Flatten()],
        }[name]() + [layers.Dense(10)])
        optimizer = keras.optimizers.Adam()
        optimizer.build(network.trainable_variables)
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        x = tf.random.uniform((BATCH[name], *shape))
        y = tf.random.uniform((BATCH[name],), maxval=10, dtype=tf.int64)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = loss_of(y, network(x, training=True))
            variables = network.trainable_variables
            optimizer.apply_gradients(
                zip(tape.gradient(loss, variables), variables))
            return loss

    def run():
        with tf.device(f"/device:{device}:0"):
            return float(step())

    return run


if __name__ == "__main__":
    what, model, steps, *library = sys.argv[1:]
    one = (tinygrad_step(model) if what == "tinygrad"
           else tensorflow_step(what, model, *library or [None]))
    print(json.dumps(seconds(one, int(steps))))
