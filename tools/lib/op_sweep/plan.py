# SPDX-License-Identifier: Apache-2.0
"""Lists the ops and types of a device, from TensorFlow's own registry."""

import dataclasses
import functools
import itertools
import re
import zlib

from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import (dtypes, kernels, op_def_registry,
                                         versions)

# TensorFlow's own device types; all others belong to plug-ins.
BUILT_IN = {"CPU", "GPU", "TPU", "TPU_SYSTEM", "DEFAULT", "XLA_CPU", "XLA_GPU",
            "XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT", "COMPOSITE"}
# The types of an attribute that neither the kernel nor the op restricts.
ANY = [dtypes.as_dtype(name).as_datatype_enum for name in (
    "float32", "float64", "half", "bfloat16", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")]
_FLOAT, _DOUBLE = types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE
_HALVES = {types_pb2.DT_HALF, types_pb2.DT_BFLOAT16}
_WIDER = {_FLOAT: _DOUBLE, types_pb2.DT_COMPLEX64: types_pb2.DT_COMPLEX128}
_INTEGERS = [dtypes.as_dtype(name).as_datatype_enum for name in (
    "int8", "int16", "uint8", "uint16", "uint32", "uint64")]
_REAL_FLOATS = [_FLOAT, _DOUBLE, *sorted(_HALVES)]
# The ops that only the pass FuseElementwise creates; fused.py judges them.
FUSED = re.compile(r"TfplugFused(Map|Reduce|MatMul)V\d+")
# The ops that replace updates of variables, whose arguments depend on the attribute op;
# tests/tensorflow/test_optimizer_ops.py judges them.
_NEW_VALUES = re.compile(r"TfplugNew(TrainingValues|Slices)V\d+")
# Pairs of types of one op, such as those of Cast, are sampled beyond this number.
_MOST_PAIRS = 400
# The least priority of the kernels of an author's classes in a library that also has those
# that tfplug makes: see RegisterKernels in tfplug/kernel/internal/init_kernel.h.
_PRIORITY_OF_AUTHORS = 2


@dataclasses.dataclass(frozen=True)
class Unit:
    """An op and a choice of the types on which its kernel depends."""

    op: str
    types: tuple  # ((attribute, DataType), ...)
    host: frozenset  # arguments in host memory
    on_cpu: bool  # whether TensorFlow's CPU has a kernel for these types
    priority: int = 0  # of the kernel: TensorFlow uses the one with the highest

    @property
    def type_text(self):
        return ",".join(f"{name}={dtypes.as_dtype(number).name}"
                        for name, number in self.types)

    @property
    def is_authors(self):
        """Returns whether the kernel is none of those that tfplug makes in this library."""
        return self.priority >= _PRIORITY_OF_AUTHORS

    @property
    def name(self):
        return f"{self.op} {self.type_text}".strip()

    @property
    def id(self):
        """Returns a number that depends on nothing but the op and the types."""
        return zlib.crc32(f"{self.op} {self.type_text}".encode())


@functools.lru_cache(maxsize=None)
def registered(op):
    return kernels.get_registered_kernels_for_op(op).kernel


def has_authors_kernel(op, device_type):
    """Returns whether the op has a kernel of an author's class on the device."""
    return any(kernel.device_type == device_type and
               kernel.priority >= _PRIORITY_OF_AUTHORS for kernel in registered(op))


def device_types():
    """Returns the device types of plug-ins that have registered kernels."""
    return sorted({kernel.device_type for kernel in
                   kernels.get_all_registered_kernels().kernel} - BUILT_IN)


@functools.lru_cache(maxsize=None)
def allowed_types(op, attr):
    """Returns the types that the OpDef permits for a type attribute."""
    for each in op_def_registry.get(op).attr:
        if each.name == attr:
            return list(each.allowed_values.list.type) or ANY
    return ANY


@functools.lru_cache(maxsize=None)
def _cpu_constraints(op):
    """Returns {attribute: allowed types} of each CPU kernel of the op."""
    return [{each.name: frozenset(each.allowed_values.list.type)
             for each in kernel.constraint} for kernel in registered(op)
            if kernel.device_type == "CPU" and not kernel.label]


def has_cpu_kernel(op, types):
    """Returns whether the CPU has a kernel for {attribute: DataType or a list}; an
    attribute that is not chosen yet fits every kernel."""
    def fits(name, allowed):
        chosen = types.get(name)
        if chosen is None:
            return True
        return allowed.issuperset(chosen if isinstance(chosen, list) else [chosen])
    return any(all(fits(*each) for each in kernel.items())
               for kernel in _cpu_constraints(op))


def wider(op, types):
    """Returns the first of all_wider(); None if there is none."""
    return next(all_wider(op, types), None)


def all_wider(op, types):
    """Generates the types in which the CPU computes a more exact result: half and
    bfloat16 as float or double, or else float as double. For integers of which the
    CPU has no kernel, int32 or int64."""
    is_half = bool(_flat(types) & _HALVES)
    changes = ([dict.fromkeys(_HALVES, _FLOAT), dict.fromkeys(_HALVES, _DOUBLE)]
               if is_half else [_WIDER])
    if not has_cpu_kernel(op, types):
        changes += [dict.fromkeys(_INTEGERS, types_pb2.DT_INT32),
                    dict.fromkeys(_INTEGERS, types_pb2.DT_INT64)]
    for change in changes:
        result = {name: [change.get(each, each) for each in value]
                  if isinstance(value, list) else change.get(value, value)
                  for name, value in types.items()}
        permitted = all(_flat({name: value}) <= set(allowed_types(op, name))
                        for name, value in result.items())
        if result != types and permitted and has_cpu_kernel(op, result):
            yield result
            if not is_half:
                return


def _flat(types):
    return {number for value in types.values()
            for number in (value if isinstance(value, list) else [value])}


def has_device_kernel(device_type, op, number, attr="T"):
    """Returns whether the device computes the op in its own memory."""
    return number in allowed_types(op, attr) and any(
        kernel.device_type == device_type and not kernel.host_memory_arg and all(
            number in each.allowed_values.list.type for each in kernel.constraint
            if each.name == attr) for kernel in registered(op))


def _fused_types(device_type, op):
    """Returns the types in which the expressions of a fused op begin."""
    return [number for number in (_REAL_FLOATS if "MatMul" in op else ANY)
            if has_device_kernel(device_type, "LogicalAnd" if (
                number == types_pb2.DT_BOOL) else "Maximum", number)]


def units(device_type, seed, ops=(), wanted_types=""):
    """Returns the Units of a device, in a fixed order, and the ops that no program
    can use: TensorFlow has no definition of them, or has removed them."""
    found, unknown = {}, set()
    for kernel in kernels.get_all_registered_kernels().kernel:
        if (kernel.device_type != device_type or kernel.label or
                ops and kernel.op not in ops or _NEW_VALUES.fullmatch(kernel.op)):
            continue
        definition = op_def_registry.get(kernel.op)
        if definition is None or 0 < definition.deprecation.version <= (
                versions.GRAPH_DEF_VERSION):
            unknown.add(kernel.op)
            continue
        lists = {attr.name for attr in definition.attr if attr.type == "list(type)"}
        # A node cannot have a type that the op does not permit, whatever the kernel says.
        constraints = [(each.name, [
            number for number in each.allowed_values.list.type
            if number in allowed_types(kernel.op, each.name)])
            for each in kernel.constraint if each.name not in lists
            and each.allowed_values.list.type]
        if FUSED.fullmatch(kernel.op):
            constraints = [("T", _fused_types(device_type, kernel.op))]
        choices = list(itertools.product(*(values for _, values in constraints)))
        if len(choices) > _MOST_PAIRS:
            choices = choices[::-(-len(choices) // _MOST_PAIRS)]
        for choice in choices:
            types = tuple(sorted(zip((name for name, _ in constraints), choice)))
            earlier = found.get((kernel.op, types))
            if earlier is None or earlier.priority < kernel.priority:
                found[kernel.op, types] = Unit(
                    kernel.op, types, frozenset(kernel.host_memory_arg),
                    has_cpu_kernel(kernel.op, dict(types)), kernel.priority)
    return in_order((unit for unit in found.values()
                     if wanted_types in ("", unit.type_text)), seed), sorted(unknown)


def in_order(found, seed):
    """Returns the Units in the order in which they are swept: first those of an author's
    classes; of each half, one choice of types of each op, then another one, so that a
    short run covers all ops."""
    halves = {}, {}
    for unit in sorted(found, key=lambda unit: (
            unit.op, zlib.crc32(f"{seed} {unit.type_text}".encode()))):
        halves[not unit.is_authors].setdefault(unit.op, []).append(unit)
    return [unit for by_op in halves for rank in itertools.zip_longest(*by_op.values())
            for unit in rank if unit]
