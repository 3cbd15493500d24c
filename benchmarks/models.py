# SPDX-License-Identifier: Apache-2.0
"""Keras models with random weights, whose graphs dump_graphs.py writes."""

import keras
from keras import layers


def application(name, size):
    """Returns a builder of a model in keras.applications for `size` x `size` images."""
    def build():
        return (getattr(keras.applications, name)(
            weights=None, input_shape=(size, size, 3)), "image", size)
    return build


def lstm(vocabulary=20000, width=256, steps=80):
    """Builds an embedding, two LSTMs and a classifier with two classes."""
    tokens = keras.Input((steps,), dtype="int32")
    x = layers.Embedding(vocabulary, 128)(tokens)
    x = layers.LSTM(width, return_sequences=True)(x)
    x = layers.LSTM(width)(x)
    return (keras.Model(tokens, layers.Dense(2, activation="softmax")(x)),
            "tokens", (vocabulary, steps))


def bert(vocabulary=30522, width=768, depth=12, heads=12, steps=128):
    """Builds an encoder with the dimensions of BERT base, and a classifier."""
    tokens = keras.Input((steps,), dtype="int32")
    positions = keras.ops.arange(steps)
    x = (layers.Embedding(vocabulary, width)(tokens)
         + layers.Embedding(512, width)(positions))
    x = layers.Dropout(0.1)(layers.LayerNormalization(epsilon=1e-12)(x))
    for _ in range(depth):
        attended = layers.MultiHeadAttention(
            heads, width // heads, dropout=0.1)(x, x)
        x = layers.LayerNormalization(epsilon=1e-12)(
            x + layers.Dropout(0.1)(attended))
        inner = layers.Dense(4 * width, activation="gelu")(x)
        inner = layers.Dropout(0.1)(layers.Dense(width)(inner))
        x = layers.LayerNormalization(epsilon=1e-12)(x + inner)
    pooled = layers.Dense(width, activation="tanh")(x[:, 0])
    return (keras.Model(tokens, layers.Dense(2, activation="softmax")(pooled)),
            "tokens", (vocabulary, steps))


MODELS = {
    "resnet50": application("ResNet50", 224),
    "mobilenet_v2": application("MobileNetV2", 224),
    "efficientnet_b0": application("EfficientNetB0", 224),
    "lstm": lstm,
    "bert12": bert,
    "vgg16": application("VGG16", 224),
}
