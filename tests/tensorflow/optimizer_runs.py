# SPDX-License-Identifier: Apache-2.0
"""Trains a small model with each optimizer of Keras, on the device and on the CPU."""

STEPS = 10
# Has variables of int32, for which TensorFlow has VarHandleOp only on the CPU.
ADAFACTOR = "Adafactor, with soft placement"


def _schedule(name, *arguments):
    import keras
    return getattr(keras.optimizers.schedules, name)(*arguments)


# The optimizers, by their names in keras.optimizers, and their settings. A setting
# that is a tuple is the schedule of a learning rate.
OPTIMIZERS = {
    "SGD": ("SGD", {}),
    "SGD, momentum": ("SGD", {"momentum": 0.9}),
    "SGD, Nesterov's momentum": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "SGD, clipnorm, weight_decay": ("SGD", {"clipnorm": 0.1, "weight_decay": 0.01}),
    "SGD, ExponentialDecay": ("SGD", {
        "learning_rate": ("ExponentialDecay", 0.1, 5, 0.5)}),
    "RMSprop": ("RMSprop", {}),
    # Centered, Keras mistakes the rows of a sparse gradient, on the CPU as well.
    "RMSprop, momentum": ("RMSprop", {"momentum": 0.9}),
    "Adam": ("Adam", {}),
    "Adam, AMSGrad": ("Adam", {"amsgrad": True}),
    "Adam, CosineDecay": ("Adam", {"learning_rate": ("CosineDecay", 0.01, 10)}),
    "Adam, moving average of weights": ("Adam", {
        "use_ema": True, "ema_overwrite_frequency": 3}),
    "Adam, accumulated gradients": ("Adam", {"gradient_accumulation_steps": 2}),
    "Adam, clipvalue": ("Adam", {"clipvalue": 0.01}),
    "Adam, scaled loss": ("LossScaleOptimizer", {"inner_optimizer": "Adam"}),
    "AdamW": ("AdamW", {}),
    "AdamW, global_clipnorm": ("AdamW", {"global_clipnorm": 0.5}),
    "Adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "Adagrad": ("Adagrad", {}),
    "Adamax": ("Adamax", {}),
    ADAFACTOR: ("Adafactor", {"learning_rate": 0.01}),
    "Nadam": ("Nadam", {}),
    "Ftrl": ("Ftrl", {"l1_regularization_strength": 1e-3}),
    "Lion": ("Lion", {}),
    "Lamb": ("Lamb", {}),
    "Muon": ("Muon", {}),
}


def make(name):
    """Returns an optimizer of OPTIMIZERS."""
    import keras
    kind, settings = OPTIMIZERS[name]
    settings = {key: _schedule(*value) if isinstance(value, tuple) else
                keras.optimizers.get(value) if key == "inner_optimizer" else value
                for key, value in settings.items()}
    return getattr(keras.optimizers, kind)(**settings)


def compare(name, device):
    """Returns the largest difference of a loss, relative to the loss, and of the
    weights after STEPS steps: the norm, relative to that of their changes; and how much
    the loss fell on the CPU."""
    import more_models
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(name == ADAFACTOR)
    losses, weights = [], []
    for place in (device, "/device:CPU:0"):
        with tf.device(place):
            model, inputs, labels = more_models.sentences(make(name))
            before = [w.copy() for w in model.get_weights()]
            losses.append([float(model.train_on_batch(inputs, labels))
                           for _ in range(STEPS)])
            assert place in model.trainable_variables[0].value.device
            weights.append(model.get_weights())
    losses = np.array(losses)

    def norm(of, to):
        return np.sqrt(sum(np.sum((a - b)**2.0) for a, b in zip(of, to)))

    return {"loss": float(np.abs(losses[0] / losses[1] - 1).max()),
            "weights": float(norm(*weights) / norm(weights[1], before)),
            "fell": float(1 - losses[1][-1] / losses[1][0])}
