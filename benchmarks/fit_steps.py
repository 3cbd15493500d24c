# SPDX-License-Identifier: Apache-2.0
"""Trains one model with Keras' fit; run by benchmarks/fit.py:

    fit_steps.py MODEL DEVICE [PLUGIN]

KERAS_BACKEND selects tensorflow or jax. DEVICE: CPU, XLA (the CPU with jit_compile) or
the device type of PLUGIN. For each line on standard input, trains one epoch and prints
the seconds of a step; the first epoch traces and compiles."""

import contextlib
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import keras  # noqa: E402


def place(device, library):
    """Returns the scope of the device."""
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf
    if library:
        from tensorflow.python.framework import load_library
        load_library.load_pluggable_device_library(library)
        return tf.device(f"/device:{device}:0")
    return tf.device("/device:CPU:0")


def main(name, device, library=None):
    with place(device, library):
        import fit_models
        keras.utils.set_random_seed(0)
        model, batch, inputs, labels = getattr(fit_models, name)()
        model.compile(
            "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=device == "XLA" or keras.backend.backend() == "jax",
            **fit_models.OPTIONS.get(name, {}))
        for _ in sys.stdin:
            start = time.perf_counter()
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                history = model.fit(inputs, labels, batch)
            seconds = time.perf_counter() - start
            if not history.history["loss"][0] < 20:
                raise SystemExit(f"The model does not learn: {history.history}")
            print(seconds / -(-len(inputs) // batch), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
