# SPDX-License-Identifier: Apache-2.0
"""Finds the kernel that TensorFlow chooses for a node, in its own registry."""

import ctypes
import dataclasses
import functools

from tensorflow.python.framework import dtypes, kernels, op_def_registry

DEFAULT = "DEFAULT"
# Where a node can run, best first. ELSEWHERE: on the device that the model itself
# requests; REJECTED: the device's kernel rejects the node's attributes; XLA: only
# XLA can run it; NONE: no device has a kernel.
PLUGIN, BY_DEFAULT, ELSEWHERE, CPU, REJECTED, XLA, NONE = (
    "plugin", "default", "elsewhere", "cpu", "rejected", "xla", "none")
# Functions with jit_compile=True: called by another function, or by Python.
NESTED, OUTERMOST = "nested", "outermost"
# TensorFlow's own device types; all others belong to plug-ins.
BUILT_IN = {"CPU", "GPU", "TPU", "TPU_SYSTEM", "DEFAULT", "XLA_CPU", "XLA_GPU",
            "XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT", "COMPOSITE"}
UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")
_NO_UPDATE = ("By default, tfplug replaces the op in Python and in graphs; where it "
              "cannot, write v.assign(v + delta)")
_NO_VARIANTS = "A recurrent layer with unroll=True does not need the op"
# Rows: ops; whether only for variants; the C function that a kernel for them needs
# and that some releases lack; the workaround.
_NEEDED = (
    (UPDATES, False, "TF_AssignUpdateVariable", _NO_UPDATE),
    (("ZerosLike",), True, "TF_ZerosLikeVariant", _NO_VARIANTS),
    (("AddN",), True, "TF_AddNVariant", _NO_VARIANTS),
)


def plugin_device_types():
    """Returns the device types of plug-ins that have registered kernels."""
    return sorted({kernel.device_type for kernel in
                   kernels.get_all_registered_kernels().kernel} - BUILT_IN)


@functools.lru_cache(maxsize=None)
def op_definition(op):
    """Returns the OpDef, or None if TensorFlow has no such op."""
    return op_def_registry.get(op)


@functools.lru_cache(maxsize=None)
def _registered(op):
    return kernels.get_registered_kernels_for_op(op).kernel


def _attribute(node, name):
    """Returns an AttrValue of the node, or else the op's default, or else None."""
    if name in node.attr:
        return node.attr[name]
    definition = op_definition(node.op)
    for attr in definition.attr if definition else ():
        if attr.name == name and attr.HasField("default_value"):
            return attr.default_value
    return None


def _types(value):
    """Returns the DataType values in an AttrValue; () if it holds none."""
    if value is None:
        return ()
    if value.HasField("list"):
        return tuple(value.list.type)
    return (value.type,) if value.HasField("type") else ()


def _fits(kernel, node):
    for constraint in kernel.constraint:
        value = _attribute(node, constraint.name)
        if value is None:
            return False
        allowed = set(constraint.allowed_values.list.type)
        if not all(each in allowed for each in _types(value)):
            return False
    return True


def kernel_for(node, device_type):
    """Returns the KernelDef that TensorFlow chooses on a device of exactly this
    type, ignoring kernels for DEFAULT; None if there is none."""
    value = _attribute(node, "_kernel")
    label = value.s.decode() if value is not None else ""
    fitting = [kernel for kernel in _registered(node.op)
               if kernel.device_type == device_type and kernel.label == label
               and _fits(kernel, node)]
    return max(fitting, key=lambda kernel: kernel.priority, default=None)


def type_attributes(node):
    """Returns {attribute: sorted type names} of the attributes that determine the
    kernel; if no kernel is registered for the op, of all type attributes."""
    definition = op_definition(node.op)
    names = [attr.name for attr in definition.attr
             if attr.type in ("type", "list(type)")] if definition else []
    if _registered(node.op):
        decisive = {constraint.name for kernel in _registered(node.op)
                    for constraint in kernel.constraint}
        names = [name for name in names if name in decisive]
    return {name: sorted({dtypes.as_dtype(number).name for number in
                          _types(_attribute(node, name))}) for name in names}


@dataclasses.dataclass(frozen=True)
class Found:
    """The device whose kernel TensorFlow chooses for a node."""

    status: str  # PLUGIN, BY_DEFAULT, CPU or NONE
    host_memory: tuple  # arguments that the kernel reads or leaves in host memory
    on_host: bool  # whether these are all arguments


def find(node, device_type):
    """Returns the Found for a node on a device of this type."""
    for status, device in ((PLUGIN, device_type), (BY_DEFAULT, DEFAULT),
                           (CPU, "CPU")):
        kernel = kernel_for(node, device)
        if kernel is None:
            continue
        definition = op_definition(node.op)
        arguments = [arg.name for arg in [*definition.input_arg,
                                          *definition.output_arg]]
        host = tuple(name for name in arguments
                     if name in kernel.host_memory_arg)
        if status == CPU:
            host = ()  # The CPU has no other memory.
        return Found(status, host, bool(arguments) and
                     len(host) == len(arguments))
    return Found(NONE, (), False)


@functools.lru_cache(maxsize=None)
def _is_exported(function):
    """Returns whether this TensorFlow exports the function of the C API."""
    for library in (None, "libtensorflow_framework.so.2",
                    "libtensorflow_cc.so.2"):
        try:
            if hasattr(ctypes.CDLL(library), function):
                return True
        except OSError:
            pass
    return False


def warning(node, found):
    """Returns a known problem of the kernel that was found, or of writing one; ""
    if there is none."""
    if node.op in UPDATES and found.status == BY_DEFAULT:
        return ("TensorFlow's kernel writes to the variable on the host: it "
                "crashes or races with the stream. " + _NO_UPDATE)
    if node.op in ("OnesLike", "ZerosLike") and found.status == BY_DEFAULT:
        return ("TensorFlow's kernel expects an int32 in device memory, where no "
                "other kernel puts it, and fails in eager mode: register a "
                "kernel with host memory")
    for ops, variant, function, workaround in _NEEDED:
        if (node.op in ops and found.status != BY_DEFAULT and
                variant == ("variant" in type_attributes(node).get("T", ())) and
                not _is_exported(function)):
            return (f"this TensorFlow does not export {function}, which a "
                    f"plug-in's kernel needs. {workaround}")
    return ""
