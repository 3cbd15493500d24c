# SPDX-License-Identifier: Apache-2.0
"""More Keras models, as in models.py: networks of keras.applications, a U-Net, and
models of sequences with attention."""

import models
import numpy as np


def _application(name, size, batch, optimizer):
    import keras
    inputs, labels = models._batch((batch, size, size, 3), 1000, seed=11)
    model = getattr(keras.applications, name)(
        input_shape=(size, size, 3), weights=None, classifier_activation=None)
    return models._compiled(model, optimizer, inputs, labels)


def efficientnet_v2_b0(optimizer="adam", size=224, batch=2):
    return _application("EfficientNetV2B0", size, batch, optimizer)


def convnext_tiny(optimizer="adam", size=224, batch=2):
    return _application("ConvNeXtTiny", size, batch, optimizer)


def densenet121(optimizer="adam", size=224, batch=2):
    return _application("DenseNet121", size, batch, optimizer)


def unet(optimizer="adam", size=64, batch=2):
    """A U-Net of three levels: a transposed convolution leads to the second, a
    bilinear resize to the first. It classifies each pixel."""
    import keras
    layers = keras.layers

    def block(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    image = keras.Input((size, size, 3))
    first = block(image, 16)
    second = block(layers.MaxPooling2D()(first), 32)
    x = block(layers.MaxPooling2D()(second), 64)
    x = layers.Conv2DTranspose(32, 2, strides=2)(x)
    x = block(layers.Concatenate()([x, second]), 32)
    x = layers.UpSampling2D(interpolation="bilinear")(x)
    x = block(layers.Concatenate()([x, first]), 16)
    inputs, _ = models._batch((batch, size, size, 3), 4, seed=12)
    labels = np.random.default_rng(12).integers(0, 4, (batch, size, size))
    return models._compiled(keras.Model(image, layers.Conv2D(4, 1)(x)), optimizer,
                            inputs, labels)


def decoder(optimizer="adam", length=16):
    """A language model: two blocks of multi-head attention with a causal mask."""
    import keras
    layers = keras.layers
    inputs, _ = models._tokens(4, length + 1, 50, 5, seed=13)
    tokens = keras.Input((length,), dtype="int64")
    x = layers.Embedding(50, 32)(tokens)
    for _ in range(2):
        attended = layers.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
        x = layers.LayerNormalization()(x + attended)
        x = layers.LayerNormalization()(
            x + layers.Dense(32)(layers.Dense(64, "silu")(x)))
    return models._compiled(keras.Model(tokens, layers.Dense(50)(x)), optimizer,
                            inputs[:, :-1], inputs[:, 1:])


def seq2seq(optimizer="adam", length=12):
    """A GRU encodes a sentence, another one decodes it and attends to the encoder's
    outputs."""
    import keras
    layers = keras.layers
    keras.utils.set_random_seed(14)  # for the scale of the attention
    inputs, _ = models._tokens(4, length, 50, 5, seed=14)
    tokens = keras.Input((length,), dtype="int64")
    x = layers.Embedding(50, 16)(tokens)
    encoded, state = layers.GRU(24, return_sequences=True, return_state=True)(x)
    decoded = layers.GRU(24, return_sequences=True)(x, initial_state=state)
    context = layers.AdditiveAttention()([decoded, encoded])
    x = layers.Concatenate()([decoded, context])
    return models._compiled(keras.Model(tokens, layers.Dense(50)(x)), optimizer,
                            inputs, inputs[:, ::-1].copy())


def bidirectional(optimizer="adam"):
    """A classifier of sentences of different lengths with a bidirectional LSTM: 0 is
    no token."""
    import keras
    layers = keras.layers
    inputs, labels = models._tokens(4, 12, 100, 5, seed=15)
    for row, end in enumerate((12, 7, 9, 3)):
        inputs[row, end:] = 0
    model = keras.Sequential([
        keras.Input((12,), dtype="int64"),
        layers.Embedding(100, 16, mask_zero=True),
        layers.Bidirectional(layers.LSTM(16)), layers.Dense(5)])
    return models._compiled(model, optimizer, inputs, labels)


def sentences(optimizer="adam"):
    """A classifier of sentences, a sum over words: the gradient of the embedding has
    rows for few of the words."""
    import keras
    layers = keras.layers
    inputs, labels = models._tokens(8, 12, 300, 5, seed=16)
    model = keras.Sequential([
        keras.Input((12,), dtype="int64"), layers.Embedding(300, 16),
        layers.GlobalAveragePooling1D(), layers.Dense(24, "relu"), layers.Dense(5)])
    return models._compiled(model, optimizer, inputs, labels)
