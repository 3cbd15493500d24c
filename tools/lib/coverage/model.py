# SPDX-License-Identifier: Apache-2.0
"""Loads a model's functions from a Python file or a SavedModel without running
them, as {name: ConcreteFunction} and {layer name: class name}."""

import importlib.util
import pathlib
import sys

import numpy as np
import tensorflow as tf


class ModelError(Exception):
    """The file, or the value that it returns, is not a supported model."""


def load(path):
    """Returns the functions and layers of the model at `path`: FILE.py,
    FILE.py:FUNCTION, or the directory of a SavedModel."""
    if pathlib.Path(path).is_dir():
        return _saved_model(path)
    file, _, name = path.partition(":")
    returned = _call(pathlib.Path(file), name or "model")
    if isinstance(returned, dict):
        return _functions(returned, path), {}
    parts = returned if isinstance(returned, tuple) else (returned,)
    if not 1 <= len(parts) <= 3 or not hasattr(parts[0], "layers"):
        raise ModelError(
            f"{path} returns {type(returned).__name__}. It must return a Keras "
            "model, (model, inputs), (model, inputs, targets), or a dict of "
            "functions.")
    return _keras(*parts)


def _saved_model(directory):
    loaded = tf.saved_model.load(directory)
    if not loaded.signatures:
        raise ModelError(f"The SavedModel {directory} has no signatures.")
    # A signature alone does not keep the variables alive.
    return _Holding(loaded, loaded.signatures), {}


class _Holding(dict):
    """A dict that also keeps the owner of its values alive."""

    def __init__(self, owner, values):
        super().__init__(values)
        self.owner = owner


def _call(file, name):
    spec = importlib.util.spec_from_file_location("coverage_of", file)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise ModelError(f"{file} has no function {name}().")
    return function()


def _functions(functions, path):
    concrete = {}
    for name, function in functions.items():
        arguments = ()
        if isinstance(function, tuple):
            function, *arguments = function
        if hasattr(function, "get_concrete_function"):
            function = function.get_concrete_function(*arguments)
        if not hasattr(function, "function_def"):
            raise ModelError(
                f"{path}: {name!r} is neither a ConcreteFunction, nor a "
                "tf.function with an input_signature, nor a tuple "
                "(tf.function, argument, ...).")
        concrete[name] = function
    return _Holding(functions, concrete)


def _keras(model, inputs=None, targets=None):
    if inputs is None:
        if not getattr(model, "inputs", None):
            raise ModelError("The model does not define the shapes of its "
                             "inputs: return (model, inputs).")
        inputs = [np.zeros([2 if n is None else n for n in tensor.shape],
                           _name(tensor.dtype)) for tensor in model.inputs]
        inputs = inputs[0] if len(inputs) == 1 else inputs
    inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
    specs = tf.nest.map_structure(_spec, inputs)
    outputs = model(inputs, training=False)  # Builds the remaining layers.

    def inference(x):
        return model(x, training=False)

    if _is_compiled(model):
        if targets is None:
            targets = tf.nest.map_structure(
                lambda y: _zero_targets(model, y), outputs)
        targets = tf.nest.map_structure(tf.convert_to_tensor, targets)
        _build_training(model, inputs, targets)
        arguments = (specs, tf.nest.map_structure(_spec, targets))

        def training(x, y):
            return model.train_step((x, y))

        if getattr(model, "jit_compile", False) is True:
            inference, training = _as_keras(inference), _as_keras(training)
    else:
        arguments = (specs,)

        def training(x):
            variables = model.trainable_variables
            with tf.GradientTape() as tape:
                results = tf.nest.flatten(model(x, training=True))
                loss = tf.add_n([tf.reduce_mean(tf.square(y)) for y in results])
            return tape.gradient(loss, [getattr(v, "value", v) if not isinstance(
                v, tf.Variable) else v for v in variables])

    functions = {
        "inference": tf.function(inference).get_concrete_function(specs),
        "training": tf.function(training).get_concrete_function(*arguments),
    }
    layers = {layer.name: type(layer).__name__
              for layer in model._flatten_layers()}  # pylint: disable=W0212
    return _Holding(model, functions), layers


def _is_compiled(model):
    return bool(getattr(model, "compiled", False) or
                getattr(model, "_is_compiled", False))


def _as_keras(step):
    """Wraps a step as fit() and predict() do for a model with jit_compile=True."""
    compiled = tf.function(step, jit_compile=True)
    return lambda *arguments: compiled(*arguments)


def _zero_targets(model, output):
    sparse = "sparse" in str(getattr(model.loss, "name", model.loss)).lower()
    if sparse:
        return np.zeros(output.shape[:-1], np.int64)
    return np.zeros(output.shape, _name(output.dtype))


def _build_training(model, inputs, targets):
    """Creates the variables of optimizer and metrics, which must exist before a
    function is traced."""
    if hasattr(model, "_symbolic_build"):  # Keras 3
        model._symbolic_build(data_batch=(inputs, targets))
    else:
        model.train_on_batch(inputs, targets)


def _name(dtype):
    return getattr(dtype, "name", dtype)


def _spec(tensor):
    return tf.TensorSpec(tensor.shape, tensor.dtype)
