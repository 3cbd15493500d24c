"""Trains a Keras model on the device and on the CPU, and compares them."""

import sys

import numpy as np
import tensorflow as tf


def train(device, x, y):
    tf.keras.utils.set_random_seed(1)
    with tf.device(f"/device:{device}:0"):
        model = tf.keras.Sequential([
            tf.keras.layers.Conv2D(8, 3, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.MaxPool2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10, activation="softmax"),
        ])
        model.compile("adam", "sparse_categorical_crossentropy")
        history = model.fit(x, y, epochs=3, batch_size=32, shuffle=False, verbose=2)
    return history.history


def main():
    if not tf.config.list_physical_devices("MY_DEVICE"):
        sys.exit("TensorFlow has no MY_DEVICE device: run ./build.sh, or see `tfplug doctor`")
    random = np.random.default_rng(0)
    y = random.integers(10, size=640)
    x = random.normal(size=(640, 8, 8, 1)) * 0.3
    x[np.arange(640), y % 8, y // 2] += 2  # A bright pixel tells the class.
    x = x.astype(np.float32)

    on_device, on_cpu = train("MY_DEVICE", x, y), train("CPU", x, y)
    difference = np.max(np.abs(np.subtract(on_device["loss"], on_cpu["loss"])))
    print(f"losses on MY_DEVICE: {on_device['loss']}\nlosses on the CPU: "
          f"{on_cpu['loss']}\nlargest difference: {difference:.1e}")
    if difference > 1e-3:
        sys.exit("The losses differ by more than 1e-3.")
    if on_device["loss"][-1] > 0.7 * on_device["loss"][0]:
        sys.exit("The model did not learn: the last loss is above 0.7 of the first.")


if __name__ == "__main__":
    main()
