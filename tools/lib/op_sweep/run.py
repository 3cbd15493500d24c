# SPDX-License-Identifier: Apache-2.0
"""Runs one op on one device, eagerly and without soft placement."""

import dataclasses

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_library, op_def_registry, ops

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


def inferred_shapes(case):
    """Returns the shapes that the op's shape function infers for the arrays of run(), each
    None if it is that of a list; None instead of all if it rejects the arguments."""
    def symbol(value):
        if isinstance(value, list):
            return [symbol(each) for each in value]
        if isinstance(value, np.ndarray):
            return tf.constant(value)
        return tf.compat.v1.placeholder(
            tf.resource if isinstance(value, Variable) else tf.variant, [])
    with tf.Graph().as_default():
        try:
            outputs = op_def_library.apply_op(
                case.op, name="case", **{name: symbol(value)
                                         for name, value in case.args.items()},
                **_not_inferred(case))
        except (tf.errors.OpError, ValueError, TypeError):
            return None
    if not isinstance(outputs, (list, tuple)):
        outputs = [] if isinstance(outputs, tf.Operation) else [outputs]
    return [None if each.dtype == tf.variant else each.shape
            for each in tf.nest.flatten(outputs) if each.dtype != tf.resource]


def _not_inferred(case):
    """Returns the attributes that do not follow from the arguments."""
    inferred = {name for arg in case.definition.input_arg
                for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    return {attr.name: case.attrs[attr.name] for attr in case.definition.attr
            if attr.name not in inferred}


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
    attrs = {name: value.decode() if isinstance(value, bytes) else value
             for name, value in _not_inferred(case).items()}

    def function(*values):
        args = {**case.args, **dict(zip(by, values))}
        result = getattr(tf.raw_ops, case.op)(**args, **attrs)
        return result[0] if isinstance(result, (list, tuple)) else result
    with tf.device(device):
        theoretical, _ = tf.test.compute_gradient(function, [case.args[name] for name in by])
    return [np.asarray(each) for each in theoretical]
