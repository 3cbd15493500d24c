# SPDX-License-Identifier: Apache-2.0
"""Keras models as people write them, for tests and for tools/coverage:

    tools/coverage tests/tensorflow/models.py:resnet50

Each function returns (model, inputs, labels) for a batch. NumPy draws the weights,
inputs and labels, so that they are the same on every device. The caller must have
imported TensorFlow.
"""

import numpy as np


def _batch(shape, classes, seed):
    random = np.random.default_rng(seed)
    inputs = random.normal(0, 1, shape).astype(np.float32)
    return inputs, random.integers(0, classes, shape[0])


def draw_weights(model, seed=0):
    """Gives a model reproducible weights with the spread of Glorot's initializer.
    The statistics and scales of normalizations do not change."""
    random = np.random.default_rng(seed)
    values = []
    for variable, value in zip(model.weights, model.get_weights()):
        if value.ndim >= 2:
            fan = value.size / value.shape[-1] + value.shape[-1]
            limit = np.sqrt(6 / fan)
            value = random.uniform(-limit, limit, value.shape)
        elif "seed" not in variable.name:
            value = value + 0.05 * np.abs(random.normal(size=value.shape))
        values.append(value)
    model.set_weights(values)


def _compiled(model, optimizer, inputs, labels):
    """Compiles the model for Keras without XLA, which does not support devices of
    plug-ins."""
    import keras
    draw_weights(model)
    model.compile(
        optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False)
    return model, inputs, labels


def mlp(optimizer="adam"):
    import keras
    inputs, labels = _batch((8, 64), 10, seed=1)
    model = keras.Sequential([
        keras.Input((64,)), keras.layers.Dense(128, "relu"),
        keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    return _compiled(model, optimizer, inputs, labels)


def cnn(optimizer="adam", batch=8):
    """The digits' CNN: 8 x 8 pixels, one channel."""
    import keras
    layers = keras.layers
    inputs, labels = _batch((batch, 8, 8, 1), 10, seed=2)
    model = keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", use_bias=False),
        layers.BatchNormalization(), layers.ReLU(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(), layers.Dropout(0.2, seed=3),
        layers.Dense(10)])
    return _compiled(model, optimizer, inputs, labels)


def mobilenet_v2(optimizer="adam", size=224, batch=2):
    import keras
    inputs, labels = _batch((batch, size, size, 3), 1000, seed=4)
    model = keras.applications.MobileNetV2(
        (size, size, 3), weights=None, classifier_activation=None)
    return _compiled(model, optimizer, inputs, labels)


def resnet50(optimizer="adam", size=224, batch=2):
    import keras
    inputs, labels = _batch((batch, size, size, 3), 1000, seed=5)
    model = keras.applications.ResNet50(
        input_shape=(size, size, 3), weights=None, classifier_activation=None)
    return _compiled(model, optimizer, inputs, labels)


def _tokens(batch, length, words, classes, seed):
    random = np.random.default_rng(seed)
    inputs = random.integers(1, words, (batch, length))
    return inputs.astype(np.int64), random.integers(0, classes, batch)


def lstm(optimizer="adam", cell="LSTM", unroll=False):
    """A classifier of sentences, with LSTM or GRU cells. Unless unrolled, it is a
    while loop over tensor lists, whose gradient adds variants."""
    import keras
    layers = keras.layers
    inputs, labels = _tokens(4, 12, 100, 5, seed=6)
    model = keras.Sequential([
        keras.Input((12,), dtype="int64"), layers.Embedding(100, 16),
        getattr(layers, cell)(24, unroll=unroll), layers.Dense(5)])
    return _compiled(model, optimizer, inputs, labels)


def lstm_unrolled(optimizer="adam"):
    return lstm(optimizer, unroll=True)


def gru(optimizer="adam"):
    return lstm(optimizer, "GRU")


def gru_unrolled(optimizer="adam"):
    return lstm(optimizer, "GRU", unroll=True)


def transformer(optimizer="adam", blocks=2):
    """A classifier of sentences: position embeddings, self-attention."""
    import keras
    layers = keras.layers

    class Positions(layers.Layer):
        """Adds a vector for each position in the sentence."""

        def build(self, shape):
            self.table = self.add_weight(shape=shape[1:], name="table")

        def call(self, x):
            return x + self.table

    inputs, labels = _tokens(4, 12, 100, 5, seed=7)
    tokens = keras.Input((12,), dtype="int64")
    x = layers.Embedding(100, 32)(tokens)
    x = Positions()(x)
    for _ in range(blocks):
        attended = layers.MultiHeadAttention(2, 16, dropout=0.1, seed=8)(x, x)
        x = layers.LayerNormalization()(x + attended)
        hidden = layers.Dense(64, "gelu")(x)
        hidden = layers.Dropout(0.1, seed=9)(layers.Dense(32)(hidden))
        x = layers.LayerNormalization()(x + hidden)
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(tokens, layers.Dense(5)(x))
    return _compiled(model, optimizer, inputs, labels)
