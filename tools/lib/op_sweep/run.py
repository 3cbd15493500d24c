# SPDX-License-Identifier: Apache-2.0
"""Runs one op on one device, eagerly and without soft placement."""

import dataclasses

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_registry, ops

from op_sweep.draw import TensorList, Variable

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
# The error of a case whose inputs the device cannot have: TensorFlow permits variables of
# int32 only on the host, and lists of bool only on its own devices.
NO_INPUTS = "no inputs"


@dataclasses.dataclass
class Outcome:
    """The arrays that an op returned, or its error."""

    arrays: list = None  # outputs, then the values of variables
    error: str = ""  # the error's class
    message: str = ""
    changed: str = ""  # an input that the kernel overwrote


def _flat(attrs):
    return tuple(part for item in attrs.items() for part in item)


def _number_of_outputs(definition, attrs):
    return sum(attrs[arg.number_attr] if arg.number_attr else
               len(attrs[arg.type_list_attr]) if arg.type_list_attr else 1
               for arg in definition.output_arg)


def call(op, inputs, attrs):
    """Returns the output tensors of an op on the current device."""
    return execute.quick_execute(
        op, _number_of_outputs(op_def_registry.get(op), attrs), inputs, _flat(attrs),
        context.context())


class _Inputs:
    """The tensors of a case on a device."""

    def __init__(self, case, device, host):
        self.tensors, self.variables, self.kept = [], [], []
        self.device, self.lists, self.first = device, None, ([], tf.float32)
        for arg in case.definition.input_arg:
            value = case.args[arg.name]
            for each in value if isinstance(value, list) else [value]:
                self.tensors.append(self._tensor(arg.name, each, arg.name in host))
        value = case.args.get("tensor")
        if isinstance(value, np.ndarray):  # the rows of a list that the op returns
            self.first = list(value.shape[1:]), tf.as_dtype(value.dtype)

    def _tensor(self, name, value, in_host_memory):
        if isinstance(value, Variable):
            with tf.device(self.device):
                self.variables.append(tf.Variable(value.value))
            return self.variables[-1].handle
        if isinstance(value, TensorList):
            tensor = self._tensor(name, value.value, False)
            element = list(value.value.shape[1:])
            self.lists = (element, tensor.dtype)
            with tf.device(self.device):
                return call("TensorListFromTensor", [tensor, tf.constant(
                    element, tf.int32)], {"element_dtype": tensor.dtype.as_datatype_enum,
                                          "shape_type": types_pb2.DT_INT32})[0]
        with tf.device(CPU):
            tensor = tf.constant(value)
        if not in_host_memory and self.device != CPU and value.dtype.kind not in "OSU":
            tensor = tensor._copy_to_device(self.device)  # pylint: disable=W0212
            self.kept.append((name, value, tensor))
        return tensor

    def changed(self):
        """Returns the name of an input that the kernel has overwritten, or ""."""
        for name, value, tensor in self.kept:
            if tensor.numpy().tobytes() != value.tobytes():
                return name
        return ""


def run(case, device, host=()):
    """Returns the Outcome of a case on a device."""
    try:
        inputs = _Inputs(case, device, host)
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        return Outcome(error=NO_INPUTS, message=error.message)
    try:
        with tf.device(device):
            outputs = call(case.op, inputs.tensors, case.attrs)
        arrays = [_numbers(each, inputs) for each in outputs or []
                  if each.dtype.as_datatype_enum != types_pb2.DT_RESOURCE]
        arrays += [each.numpy() for each in inputs.variables]
        return Outcome(arrays, changed=inputs.changed())
    except tf.errors.OpError as error:
        return Outcome(error=type(error).__name__, message=error.message)
    except (ValueError, TypeError) as error:  # converting arguments or results
        return Outcome(error=type(error).__name__, message=str(error))


def _numbers(tensor, inputs):
    if tensor.dtype == tf.variant:
        element, dtype = inputs.lists or inputs.first
        with tf.device(inputs.device):
            tensor, = call("TensorListStack", [tensor, tf.constant(element, tf.int32)], {
                "element_dtype": dtype.as_datatype_enum, "num_elements": -1})
    return np.asarray(tensor.numpy())


# ---- Gradients -------------------------------------------------------------------


def has_gradient(op):
    """Returns whether TensorFlow can differentiate the op."""
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    try:
        return registry.lookup(op) is not None
    except LookupError:
        return False


def jacobians(case, device):
    """Returns the Jacobians of the first output by each floating-point input, as
    tf.test.compute_gradient computes them from the op's gradient."""
    names = [arg.name for arg in case.definition.input_arg]
    by = [name for name in names if isinstance(case.args[name], np.ndarray) and
          tf.as_dtype(case.args[name].dtype).is_floating]
    attrs = {attr.name: case.attrs[attr.name] for attr in case.definition.attr}
    inferred = {arg.type_attr for arg in case.definition.input_arg} | {
        arg.number_attr for arg in case.definition.input_arg} | {
        arg.type_list_attr for arg in case.definition.input_arg}

    def function(*values):
        args = {**case.args, **dict(zip(by, values))}
        result = getattr(tf.raw_ops, case.op)(
            **args, **{name: value.decode() if isinstance(value, bytes) else value
                       for name, value in attrs.items() if name not in inferred})
        return result[0] if isinstance(result, (list, tuple)) else result
    with tf.device(device):
        theoretical, _ = tf.test.compute_gradient(function, [case.args[name] for name in by])
    return [np.asarray(each) for each in theoretical]
