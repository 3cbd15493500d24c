# SPDX-License-Identifier: Apache-2.0
"""The models of tools/tf-matrix. Each builder receives Keras and returns a model,
its inputs and its targets. They work in Keras 2.12 to 3. tools/tf-matrix itself reads
their names and descriptions, without TensorFlow."""

import sys

# Largest relative difference from the CPU, where it is not 1e-4.
TOLERANCE = {"mixed": 2e-2, "mixed_float16": 5e-3, "convnext": 1e-3,
             "efficientnet": 1e-3, "cnn": 1e-3}

# The model whose result replaces the CPU's where TensorFlow has no kernels for it.
SAME_IN_FLOAT = {"mixed": "cnn", "mixed_float16": "cnn"}

BATCH, STEPS = 8, 3


def _images(random, size, channels, classes):
    images = random.normal(0, 1, (BATCH * STEPS, size, size, channels))
    return images.astype("float32"), random.integers(classes, size=BATCH * STEPS)


def _tokens(random, steps, classes):
    tokens = random.integers(50, size=(BATCH * STEPS, steps))
    return tokens, random.integers(classes, size=BATCH * STEPS)


def cnn(keras, random):
    """two convolutions with batch normalization, Adam."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((12, 12, 3)),
        layers.Conv2D(8, 3, padding="same", use_bias=False),
        layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
        layers.Conv2D(16, 3), layers.BatchNormalization(), layers.ReLU(),
        layers.GlobalAveragePooling2D(), layers.Dense(5)])
    return model, *_images(random, 12, 3, 5)


def lstm(keras, random):
    """an embedding, an LSTM and a classifier, Adam."""
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((10,), dtype="int32"), layers.Embedding(50, 8),
        layers.LSTM(12), layers.Dense(4)])
    return model, *_tokens(random, 10, 4)


def seq2seq(keras, random):
    """an encoder with a bidirectional GRU, whose state a GRU decodes into tokens."""
    layers = keras.layers
    tokens = keras.Input((10,), dtype="int32")
    embedded = layers.Embedding(50, 8)(tokens)
    _, forward, backward = layers.Bidirectional(
        layers.GRU(6, return_sequences=True, return_state=True))(embedded)
    state = layers.Concatenate()([forward, backward])
    decoded = layers.GRU(12, return_sequences=True)(embedded, initial_state=state)
    model = keras.Model(tokens, layers.Dense(50)(decoded))
    x, _ = _tokens(random, 10, 4)
    return model, x, random.integers(50, size=x.shape)


def attention(keras, random):
    """a transformer block: multi-head attention and layer normalization."""
    layers = keras.layers
    tokens = keras.Input((10,), dtype="int32")
    x = layers.Embedding(50, 16)(tokens)
    x = layers.LayerNormalization()(
        x + layers.MultiHeadAttention(2, 8)(x, x))
    inner = layers.Dense(16)(layers.Dense(32, activation="gelu")(x))
    x = layers.LayerNormalization()(x + inner)
    model = keras.Model(tokens, layers.Dense(4)(
        layers.GlobalAveragePooling1D()(x)))
    return model, *_tokens(random, 10, 4)


def _builder(application, name):
    """Returns the function with which Keras builds all sizes of an application."""
    return getattr(sys.modules[application.__module__], name)


def convnext(keras, random):
    """ConvNeXt with one block per stage; Keras compiles its grouped convolutions with
    XLA."""
    model = _builder(keras.applications.ConvNeXtTiny, "ConvNeXt")(
        depths=[1, 1, 1, 1], projection_dims=[8, 16, 32, 64], weights=None,
        input_shape=(32, 32, 3), classes=5, classifier_activation=None)
    return model, *_images(random, 32, 3, 5)


def efficientnet(keras, random):
    """EfficientNetV2 with one layer per block, and without dropout, which is random."""
    model = _builder(keras.applications.EfficientNetV2B0, "EfficientNetV2")(
        0.25, 0.1, 32, 0, 0, 8, 8, 0.9, "swish", "default", "efficientnetv2-b0",
        weights=None, input_shape=(32, 32, 3), classes=5,
        classifier_activation=None)
    return model, *_images(random, 32, 3, 5)


def unet(keras, random):
    """a U-Net of two levels with transposed convolutions."""
    layers = keras.layers

    def block(x, filters):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        return layers.BatchNormalization()(x)

    image = keras.Input((16, 16, 3))
    outer = block(image, 8)
    inner = block(layers.MaxPooling2D()(outer), 16)
    up = layers.Conv2DTranspose(8, 2, strides=2)(inner)
    x = block(layers.Concatenate()([up, outer]), 8)
    model = keras.Model(image, layers.Conv2D(3, 1)(x))
    x, _ = _images(random, 16, 3, 1)
    return model, x, random.integers(3, size=x.shape[:3])


def mixed(keras, random):
    """the CNN with the policy mixed_bfloat16."""
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    return cnn(keras, random)


def mixed_float16(keras, random):
    """the CNN with the policy mixed_float16, which scales the loss."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    return cnn(keras, random)


def eager(keras, random):
    """the CNN with run_eagerly=True."""
    return cnn(keras, random)


def tape(keras, random):
    """the CNN with its own training loop: GradientTape, clipped gradients, moving
    averages of the weights; then train_on_batch and its relatives."""
    return cnn(keras, random)


MODELS = {build.__name__: build for build in (
    cnn, lstm, seq2seq, attention, convnext, efficientnet, unet, mixed,
    mixed_float16, eager, tape)}
