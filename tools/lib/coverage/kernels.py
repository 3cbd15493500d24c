# SPDX-License-Identifier: Apache-2.0
"""Which kernel TensorFlow takes for a node: asked of its own registry."""

import ctypes
import dataclasses
import functools

from tensorflow.python.framework import dtypes, kernels, op_def_registry

DEFAULT = "DEFAULT"
# Where a node can be run, best first; "elsewhere": where the model says.
PLUGIN, BY_DEFAULT, ELSEWHERE, CPU, NOBODY = (
    "plugin", "default", "elsewhere", "cpu", "nobody")
# TensorFlow's own device types; any other one is a plug-in's.
BUILT_IN = {"CPU", "GPU", "TPU", "TPU_SYSTEM", "DEFAULT", "XLA_CPU", "XLA_GPU",
            "XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT", "COMPOSITE"}
UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")
_NO_UPDATE = "there write v.assign(v + delta)"
_NO_VARIANTS = "a recurrent layer does without, made with unroll=True"
# Ops, of variants or not, a C function that a kernel for them needs and that
# some releases lack, and the way round.
_NEEDED = (
    (UPDATES, False, "TF_AssignUpdateVariable", _NO_UPDATE),
    (("ZerosLike",), True, "TF_ZerosLikeVariant", _NO_VARIANTS),
    (("AddN",), True, "TF_AddNVariant", _NO_VARIANTS),
)


def plugin_device_types():
    """The device types of plug-ins that have registered kernels."""
    return sorted({kernel.device_type for kernel in
                   kernels.get_all_registered_kernels().kernel} - BUILT_IN)


@functools.lru_cache(maxsize=None)
def op_definition(op):
    """The OpDef; None where TensorFlow has no such op."""
    return op_def_registry.get(op)


@functools.lru_cache(maxsize=None)
def _registered(op):
    return kernels.get_registered_kernels_for_op(op).kernel


def _attribute(node, name):
    """An AttrValue of the node, or the op's default for it, or None."""
    if name in node.attr:
        return node.attr[name]
    definition = op_definition(node.op)
    for attr in definition.attr if definition else ():
        if attr.name == name and attr.HasField("default_value"):
            return attr.default_value
    return None


def _types(value):
    """The types in an AttrValue, as numbers; () where it holds none."""
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
    """The KernelDef that TensorFlow takes on a device of this type alone,
    DEFAULT not considered; None where there is none."""
    value = _attribute(node, "_kernel")
    label = value.s.decode() if value is not None else ""
    fitting = [kernel for kernel in _registered(node.op)
               if kernel.device_type == device_type and kernel.label == label
               and _fits(kernel, node)]
    return max(fitting, key=lambda kernel: kernel.priority, default=None)


def type_attributes(node):
    """{attribute: sorted type names} of those attributes that decide which
    kernel is taken; where no kernel is, all of them."""
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
    """Who has a kernel for a node."""

    status: str  # PLUGIN, BY_DEFAULT, CPU or NOBODY
    host_memory: tuple  # arguments that it wants, or leaves, in host memory
    on_host: bool  # whether that is all of them


def find(node, device_type):
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
            host = ()  # all of the CPU's memory is the host's
        return Found(status, host, bool(arguments) and
                     len(host) == len(arguments))
    return Found(NOBODY, (), False)


@functools.lru_cache(maxsize=None)
def _is_exported(function):
    """Whether this TensorFlow has this function of the C API."""
    for library in (None, "libtensorflow_framework.so.2",
                    "libtensorflow_cc.so.2"):
        try:
            if hasattr(ctypes.CDLL(library), function):
                return True
        except OSError:
            pass
    return False


def warning(node, found):
    """What is known to go wrong with the kernel that was found, or with writing
    one; or ""."""
    if node.op in UPDATES and found.status == BY_DEFAULT:
        return ("TensorFlow's kernel writes to the variable from the host: it "
                "crashes, or races with the stream; a graph pass of the plug-in "
                f"may replace the op, but not in eager mode: {_NO_UPDATE}")
    if node.op in ("OnesLike", "ZerosLike") and found.status == BY_DEFAULT:
        return ("TensorFlow's kernel wants an int32 in device memory, where no "
                "other puts it, and fails in eager mode; have one of your own, "
                "in host memory")
    for ops, variant, function, way_round in _NEEDED:
        if (node.op in ops and found.status != BY_DEFAULT and
                variant == ("variant" in type_attributes(node).get("T", ())) and
                not _is_exported(function)):
            return (f"this TensorFlow exports no {function}, which a plug-in's "
                    "kernel needs; a graph pass of the plug-in may replace the "
                    f"op, but not in eager mode: {way_round}")
    return ""
