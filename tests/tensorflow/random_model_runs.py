# SPDX-License-Identifier: Apache-2.0
"""Draws Keras models from a seed (layers, shapes, batches, losses, optimizers, types and
settings of `compile`), and runs `fit`, `predict` and `evaluate` on a device."""

import random

import harness

# An input's kind: shape without the batch, and the type of its elements.
IMAGE, VOLUME, SEQUENCE, TOKENS, VECTOR = "image", "volume", "sequence", "tokens", "vector"
VOCABULARY = 50
POLICIES = ["float32"] * 5 + ["mixed_float16", "mixed_bfloat16", "float64"]


class _Draw(random.Random):
    """Draws a model layer by layer."""

    def __init__(self, seed):
        super().__init__(seed)
        from keras import layers
        self.layers = layers

    def maybe(self, chance):
        return self.random() < chance

    def one(self, *makers):
        """Calls one of the functions."""
        return self.choice(makers)()

    def shape(self, kind):
        return {
            IMAGE: lambda: (self.choice([8, 13, 16]), self.choice([8, 11, 20]),
                            self.choice([1, 3, 4])),
            VOLUME: lambda: (6, 7, self.choice([5, 8]), 2),
            SEQUENCE: lambda: (self.choice([5, 8, 19]), self.choice([1, 3, 8])),
            TOKENS: lambda: (self.choice([5, 9, 16]),),
            VECTOR: lambda: (self.choice([1, 5, 17, 64]),),
        }[kind]()

    def features(self, kind, x):
        """Returns vectors computed from an input."""
        return {IMAGE: self.of_image, VOLUME: self.of_volume,
                SEQUENCE: self.of_sequence, TOKENS: self.of_tokens,
                VECTOR: self.of_vector}[kind](x)

    def convolution(self, x):
        la = self.layers
        count, size = self.choice([3, 4, 8, 17]), self.choice([1, 2, 3, 5, (1, 3)])
        stride = self.choice([1, 1, 2])
        padding = "same" if min(x.shape[1:3]) < 5 else self.choice(["same", "valid"])
        return self.one(
            lambda: la.Conv2D(count, size, strides=stride, padding=padding,
                              use_bias=self.maybe(0.7), activation=self.choice(
                                  [None, "relu", "gelu", "swish", "leaky_relu"])),
            lambda: la.Conv2D(count, 3, dilation_rate=2, padding="same"),
            lambda: la.SeparableConv2D(count, 3, strides=stride, padding="same"),
            lambda: la.DepthwiseConv2D(3, strides=stride, padding="same",
                                       depth_multiplier=self.choice([1, 2])),
            lambda: la.Conv2DTranspose(count, size, strides=stride, padding="same"))(x)

    def of_image(self, x):
        la = self.layers
        for _ in range(self.randint(1, 5)):
            is_large, channels = min(x.shape[1:3]) > 5, x.shape[-1]
            x = self.one(
                lambda: self.convolution, lambda: self.convolution,
                lambda: self.convolution,
                lambda: la.BatchNormalization(axis=self.choice([-1, -1, 1])),
                lambda: la.LayerNormalization(axis=self.choice([-1, [1, 2, 3]])),
                lambda: la.GroupNormalization(1 if channels % 2 else 2),
                lambda: self.one(lambda: la.MaxPooling2D, lambda: la.AveragePooling2D)(
                    self.choice([2, 3, (1, 2)]), strides=self.choice([None, 1, 2]),
                    padding="valid" if is_large and self.maybe(0.5) else "same"),
                lambda: la.UpSampling2D(
                    2 if max(x.shape[1:3]) < 25 else 1,
                    interpolation=self.choice(["nearest", "bilinear"])),
                lambda: la.ZeroPadding2D(((1, 0), (2, 1))),
                lambda: (la.Cropping2D(((1, 0), (1, 2))) if is_large else
                         la.PReLU(shared_axes=[1, 2])),
                lambda: la.Resizing(5, self.choice([6, 11]), interpolation=self.choice(
                    ["bilinear", "nearest", "bicubic"])))(x)
        return self.one(la.GlobalAveragePooling2D, la.GlobalMaxPooling2D, la.Flatten,
                        lambda: lambda v: self.of_sequence(
                            la.Reshape((v.shape[1] * v.shape[2], v.shape[3]))(v)))(x)

    def of_volume(self, x):
        la = self.layers
        x = self.one(lambda: la.Conv3D(4, 3, padding="same"),
                     lambda: la.Conv3D(5, 2, strides=2),
                     lambda: la.Conv3DTranspose(3, 2, strides=2),
                     lambda: la.ConvLSTM2D(3, 3, padding="same",
                                           return_sequences=True))(x)
        return la.Flatten()(self.one(
            lambda: la.MaxPooling3D(2), la.BatchNormalization,
            lambda: la.AveragePooling3D(2, padding="same"))(x))

    def of_sequence(self, x):
        la = self.layers
        for _ in range(self.randint(1, 3)):
            count = self.choice([4, 7, 16])
            x = self.one(
                lambda: la.LSTM(count, return_sequences=True,
                                go_backwards=self.maybe(0.3)),
                lambda: la.GRU(count, return_sequences=True,
                               reset_after=self.maybe(0.7)),
                lambda: la.Bidirectional(la.SimpleRNN(count, return_sequences=True)),
                lambda: lambda v: v + la.MultiHeadAttention(
                    self.choice([1, 3]), self.choice([4, 5]))(
                        v, v, use_causal_mask=self.maybe(0.5)),
                lambda: la.LayerNormalization(center=self.maybe(0.7)),
                lambda: la.Conv1D(count, self.choice([1, 3, 4]), padding=self.choice(
                    ["same", "causal"]), dilation_rate=self.choice([1, 2])),
                lambda: la.Dense(count, activation=self.choice(
                    ["softmax", "tanh", "elu", "selu", "softplus", "mish", "relu6"])),
                lambda: la.EinsumDense("abc,cd->abd", (None, count), bias_axes="d"),
                lambda: la.AveragePooling1D(2, padding="same"),
                la.UnitNormalization)(x)
        return self.one(la.GlobalAveragePooling1D, la.GlobalMaxPooling1D, la.Flatten,
                        lambda: la.LSTM(6), lambda: la.GRU(5))(x)

    def of_tokens(self, x):
        width = self.choice([4, 8, 15])
        return self.of_sequence(self.layers.Embedding(VOCABULARY, width)(x))

    def of_vector(self, x):
        for _ in range(self.randint(0, 3)):
            x = self.layers.Dense(
                self.choice([3, 8, 31]), kernel_regularizer=self.choice([None, "l2"]),
                activation=self.choice(["relu", "tanh", "sigmoid", "gelu", None]))(x)
            if self.maybe(0.3):
                x = self.layers.BatchNormalization()(x)
        return x

    def optimizer(self):
        from keras import optimizers
        return self.one(
            lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=self.maybe(0.5)),
            lambda: optimizers.SGD(0.01, clipnorm=1.0, use_ema=self.maybe(0.3)),
            lambda: optimizers.Adam(1e-3, amsgrad=self.maybe(0.3), clipvalue=0.5),
            lambda: optimizers.AdamW(
                optimizers.schedules.CosineDecay(1e-3, 10)),
            lambda: optimizers.RMSprop(1e-3, centered=self.maybe(0.5)),
            lambda: optimizers.Nadam(1e-3), lambda: optimizers.Adagrad(1e-2),
            lambda: optimizers.Adamax(1e-3), lambda: optimizers.Lion(1e-4),
            lambda: optimizers.Ftrl(1e-2), lambda: optimizers.Adadelta(0.1),
            lambda: optimizers.LossScaleOptimizer(optimizers.SGD(0.01)))


def run(seed, device):
    """Returns what the model of a seed is, and its losses, predictions and evaluation on
    the device. Dropout is left out: devices draw different random numbers."""
    import keras
    import numpy as np
    import tensorflow as tf
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    draw, numbers = _Draw(seed), np.random.default_rng(seed)
    policy = draw.choice(POLICIES)
    keras.config.set_dtype_policy(policy)
    kinds = draw.choice([[IMAGE], [VOLUME], [SEQUENCE], [TOKENS], [VECTOR],
                         [draw.choice([IMAGE, TOKENS]), SEQUENCE]])
    batch = draw.choice([1, 2, 3, 7, 16])
    examples = 2 * batch + draw.choice([0, 1])
    with tf.device(device):
        inputs = [keras.Input(draw.shape(kind), dtype="int32" if kind == TOKENS else None)
                  for kind in kinds]
        features = [keras.layers.Dense(6)(draw.features(kind, x))
                    for kind, x in zip(kinds, inputs)]
        x = keras.layers.Concatenate()(features) if len(features) > 1 else features[0]
        loss = draw.choice(["mse", "huber", "mae", "log_cosh", "binary_crossentropy",
                            "sparse_categorical_crossentropy"])
        ends = {"binary_crossentropy": "sigmoid",
                "sparse_categorical_crossentropy": "softmax"}
        y = keras.layers.Dense(5, activation=ends.get(loss), dtype="float32")(x)
        model = keras.Model(inputs, y)
        eager = draw.maybe(0.15)
        model.compile(draw.optimizer(), loss, run_eagerly=eager,
                      **harness.without_xla_on_cpu(device), steps_per_execution=1 if eager else draw.choice([1, 1, 3]))
        data = [numbers.integers(0, VOCABULARY, (examples, *i.shape[1:]))
                if i.dtype == "int32" else
                numbers.normal(size=(examples, *i.shape[1:])).astype(i.dtype)
                for i in inputs]
        data = data if len(data) > 1 else data[0]
        if loss == "sparse_categorical_crossentropy":
            wanted = numbers.integers(0, 5, examples)
        else:
            wanted = numbers.integers(0, 2, (examples, 5)).astype("float32")
        history = model.fit(data, wanted, batch_size=batch, epochs=2, verbose=0,
                            shuffle=False)
        predicted = model.predict(data, batch_size=batch + 1, verbose=0)
        evaluated = model.evaluate(data, wanted, batch_size=batch, verbose=0)
    layers = ", ".join(type(layer).__name__ for layer in model.layers)
    return {"model": f"{policy}, batch {batch}, {loss}, "
                     f"{type(model.optimizer).__name__}: {layers}",
            "policy": policy,
            "numbers": [float(n) for n in [*history.history["loss"], evaluated,
                                           *np.ravel(predicted)[:64]]]}


def difference(ours, cpus):
    """Returns the largest difference of two results of `run`, in units of what the types
    allow. What is infinite or NaN must be so in both."""
    import numpy as np
    have, want = np.array(ours["numbers"]), np.array(cpus["numbers"])
    allowed = {"float32": 2e-3, "float64": 1e-5}.get(ours["policy"], 0.1)
    error = np.abs(have - want) / (allowed * np.maximum(np.abs(want), 1))
    error[(have == want) | (np.isnan(have) & np.isnan(want))] = 0
    return float(np.nan_to_num(error, nan=np.inf).max())
