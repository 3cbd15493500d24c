# SPDX-License-Identifier: Apache-2.0
"""Small models of the digits data set, for Keras 2 and 3. None has batch
normalization, whose result depends on how a batch is divided."""

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

keras = tf.keras  # In 2.12, "import keras" has the names of TensorFlow 1.


def digits():
    """Returns images of the shape (n, 8, 8, 1) and their labels."""
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[..., np.newaxis]
    return images, data.target.astype(np.int64)


def cnn():
    layers = keras.layers
    return keras.Sequential([
        layers.InputLayer((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Flatten(), layers.Dense(64, "relu"), layers.Dense(10)])


def transformer():
    """An encoder whose tokens are the eight rows of an image."""
    layers = keras.layers
    images = keras.Input((8, 8, 1))
    # A dense layer over the whole image knows each row's position.
    tokens = layers.Reshape((8, 32))(layers.Dense(8 * 32)(layers.Flatten()(images)))
    for _ in range(2):
        normal = layers.LayerNormalization()(tokens)
        tokens = layers.Add()([tokens, layers.MultiHeadAttention(4, 8)(normal, normal)])
        normal = layers.LayerNormalization()(tokens)
        tokens = layers.Add()([
            tokens, layers.Dense(32)(layers.Dense(64, "relu")(normal))])
    return keras.Model(images, layers.Dense(10)(layers.Flatten()(tokens)))


MODELS = {"cnn": cnn, "transformer": transformer}
