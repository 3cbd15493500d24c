# SPDX-License-Identifier: Apache-2.0
"""The models that tools/bench fit trains. Each function returns (model, batch size,
inputs of many batches, labels) and works on any backend of Keras.

HELD_OUT tells whether the project is tuned to the others; only the kernel for 1 x 1
filters was written with one of these. LARGE is for GPUs, and measured by name."""

import numpy as np
from keras import Input, Model, Sequential, applications, config, layers


def _data(shape, batch, batches, classes=10, label_shape=()):
    random = np.random.default_rng(1)
    count = batch * batches
    return (batch, random.normal(0, 1, (count, *shape)).astype(np.float32),
            random.integers(0, classes, (count, *label_shape)))


def _tokens(length, batch, batches, words=1000, variable=False):
    random = np.random.default_rng(2)
    count = batch * batches
    tokens = random.integers(1, words, (count, length))
    if variable:
        ends = random.integers(1, length + 1, count)
        tokens[np.arange(length) >= ends[:, None]] = 0
    return batch, tokens.astype(np.int32), random.integers(0, 10, count)


def mlp_small():
    model = Sequential([Input((64,)), layers.Dense(32, "relu"), layers.Dense(10)])
    return model, *_data((64,), 32, 400)


def mlp_at_once():
    return mlp_small()


def mlp_large():
    model = Sequential([Input((784,)), layers.Dense(512, "relu"),
                        layers.Dense(256, "relu"), layers.Dense(10)])
    return model, *_data((784,), 128, 100)


def lstm():
    model = Sequential([Input((32,), dtype="int32"), layers.Embedding(1000, 64),
                        layers.LSTM(64), layers.Dense(10)])
    return model, *_tokens(32, 32, 60)


def transformer(length=64, width=64, blocks=2):
    tokens = Input((length,), dtype="int32")
    positions = layers.Embedding(length, width)(np.arange(length)[None])
    x = layers.Embedding(1000, width)(tokens) + positions
    for _ in range(blocks):
        attended = layers.MultiHeadAttention(4, width // 4)(x, x)
        x = layers.LayerNormalization()(x + attended)
        inner = layers.Dense(width)(layers.Dense(2 * width, "gelu")(x))
        x = layers.LayerNormalization()(x + inner)
    x = layers.GlobalAveragePooling1D()(x)
    return Model(tokens, layers.Dense(10)(x)), *_tokens(length, 32, 20)


def cnn():
    stack = [Input((28, 28, 1))]
    for filters in (32, 64):
        stack += [layers.Conv2D(filters, 3, padding="same", use_bias=False),
                  layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D()]
    model = Sequential([*stack, layers.Flatten(), layers.Dense(10)])
    return model, *_data((28, 28, 1), 64, 20)


def _convolve(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    return x


def unet(size=64):
    image = Input((size, size, 3))
    skips, x = [], image
    for filters in (16, 32):
        x = _convolve(x, filters)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = _convolve(x, 64)
    for filters in (32, 16):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = _convolve(layers.Concatenate()([x, skips.pop()]), filters)
    model = Model(image, layers.Conv2D(4, 1)(x))
    return model, *_data((size, size, 3), 8, 20, 4, (size, size))


def mobile_net():
    model = applications.MobileNetV2((96, 96, 3), weights=None, classes=10,
                                     classifier_activation=None)
    return model, *_data((96, 96, 3), 16, 6)


def gru():
    model = Sequential([
        Input((32,), dtype="int32"), layers.Embedding(1000, 64, mask_zero=True),
        layers.GRU(64), layers.Dense(10)])
    return model, *_tokens(32, 32, 60, variable=True)


def pointwise():
    """An autoencoder of the channels of each pixel, and a classifier of the pixels."""
    stack = [layers.Conv2D(filters, 1, activation="relu")
             for filters in (32, 8, 32, 64)]
    model = Sequential([Input((32, 32, 64)), *stack, layers.Conv2D(10, 1)])
    return model, *_data((32, 32, 64), 16, 20, 10, (32, 32))


def conv1d():
    stack = [Input((256, 8))]
    for filters in (32, 64):
        stack += [layers.Conv1D(filters, 5, padding="same", activation="relu"),
                  layers.MaxPooling1D(4)]
    model = Sequential([*stack, layers.Flatten(), layers.Dense(10)])
    return model, *_data((256, 8), 32, 40)


def transformer_large():
    return transformer(length=128, width=512, blocks=4)


def transformer_mixed():
    config.set_dtype_policy("mixed_float16")
    return transformer_large()


def resnet50():
    model = applications.ResNet50(weights=None, classes=10, classifier_activation=None)
    return model, *_data((224, 224, 3), 32, 6)


# Arguments of compile().
OPTIONS = {"mlp_at_once": {"steps_per_execution": 20}}
NAMED = {
    "MLP 64-32-10, batch 32": mlp_small,
    "MLP 784-512-256-10, batch 128": mlp_large,
    "LSTM(64), 32 tokens, batch 32": lstm,
    "two transformer blocks, width 64, 64 tokens, batch 32": transformer,
    "CNN with batch normalization, 28 x 28, batch 64": cnn,
    "U-Net with transposed convolutions, 64 x 64, batch 8": unet,
}
HELD_OUT = {
    "MobileNetV2, 96 x 96, batch 16": mobile_net,
    "GRU(64), 1 to 32 tokens, batch 32": gru,
    "1 x 1 convolutions, 32 x 32 x 64, batch 16": pointwise,
    "Conv1D, 256 x 8, batch 32": conv1d,
    "MLP 64-32-10, batch 32, 20 steps at once": mlp_at_once,
}
LARGE = {
    "four transformer blocks, width 512, 128 tokens, batch 32": transformer_large,
    "the same with mixed_float16": transformer_mixed,
    "ResNet50, 224 x 224, batch 32": resnet50,
}
