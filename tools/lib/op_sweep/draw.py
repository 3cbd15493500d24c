# SPDX-License-Identifier: Apache-2.0
"""Draws the arguments of an op: shapes, values, attributes.

A case is a function of the op, its types, the seed and the case's number. Numbers
that end in .0 or .1 are small variants, with which a mismatch is made short."""

import dataclasses
import re

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes, op_def_registry

from op_sweep import plan
from op_sweep.values import GRADIENT, INVALID, NORMAL_SIZE, VALID, Numbers

# Words in the names of arguments that determine how much memory an op needs.
_SIZES = ("shape", "dims", "size", "multiples", "padding", "num", "depth", "limit",
          "stop", "crops", "block", "length", "rows", "cols", "shift")

# Arguments, after their op, for which TensorFlow's CPU does not detect mistakes: it reads or
# writes outside of arrays, or returns what depends on the number of its threads.
_UNSPOILED = (r"AvgPool.*Grad grad|.* sorted_inputs|StatelessMultinomial logits|"
              r"MaxPoolGrad.*V2 (ksize|strides)|ResourceScatterUpdate updates|"
              r"Dilation2DBackprop.* filter")

_DOUBLES = {types_pb2.DT_DOUBLE, types_pb2.DT_COMPLEX128}
# The type of the parts of complex numbers.
_PARTS = {types_pb2.DT_COMPLEX64: types_pb2.DT_FLOAT,
          types_pb2.DT_COMPLEX128: types_pb2.DT_DOUBLE}


class Undrawable(Exception):
    """An argument for which there is no rule."""


@dataclasses.dataclass
class Variable:
    """A resource argument: a variable with this value."""

    value: np.ndarray


@dataclasses.dataclass
class TensorList:
    """A variant argument: a list of the rows of a tensor."""

    value: np.ndarray


def kind_of(number):
    """Returns what the case with this number tests."""
    index = int(str(number).partition(".")[0])
    return GRADIENT if index % 16 == 15 else INVALID if index % 4 == 3 else VALID


def numpy_type(number):
    return dtypes.as_dtype(number).as_numpy_dtype


class Draw(Numbers):
    """The random choices of one case; the rows of the tables call its methods."""

    def __init__(self, unit, seed, number):
        index, _, size = str(number).partition(".")
        self.unit, self.op, self.number = unit, unit.op, number
        size = int(size) if size else NORMAL_SIZE
        super().__init__([seed, unit.id, int(index), size], kind_of(number), size)
        self.definition = op_def_registry.get(unit.op)
        self.args, self.attrs = {}, {}
        self.types = dict(unit.types)
        for attr in self.definition.attr:
            if attr.type == "type" and attr.name not in self.types:
                self.types[attr.name] = self.choice(self._types_for(attr.name))
        self._match_parts()
        self.has_double = any(
            number in _DOUBLES for wide in plan.all_wider(self.op, self.types)
            for number in wide.values())

    def _match_parts(self):
        """Makes the type of complex numbers agree with that of their parts, and the
        two types of MaxPool3DGrad, which are always equal, with each other."""
        if "TInput" in self.types and "T" in self.types:
            self.types["TInput"] = self.types["T"]
        for real, whole in (("Treal", "Tcomplex"), ("Tout", "T"), ("T", "Tout")):
            given, parts = dict(self.unit.types), self.types.get(real)
            if self.types.get(whole) in _PARTS and parts in _PARTS.values():
                if real in given:
                    self.types[whole] = {
                        value: key for key, value in _PARTS.items()}[parts]
                else:
                    self.types[real] = _PARTS[self.types[whole]]

    def _types_for(self, attr):
        fitting = [number for number in plan.allowed_types(self.op, attr)
                   if plan.has_cpu_kernel(self.op, {**self.types, attr: number})]
        # TensorFlow has no kernel of _Arg for the others.
        fitting = [number for number in fitting if number in plan.ANY] or fitting
        # The types that TensorFlow's Python code uses for indices; CPU kernels of some
        # ops read others as one of these.
        indices = {types_pb2.DT_INT32, types_pb2.DT_INT64}
        if indices & set(fitting) and attr != "T" and (
                attr.startswith("T") or attr.startswith("shape_")):
            fitting = [number for number in fitting if number in indices]
        return fitting or plan.allowed_types(self.op, attr)

    # ---- Arguments ---------------------------------------------------------------

    def arg_def(self, name):
        return next(arg for arg in self.definition.input_arg if arg.name == name)

    def dtype(self, name):
        """Returns the NumPy type of an argument."""
        arg = self.arg_def(name)
        return numpy_type(self.types[arg.type_attr] if arg.type_attr else arg.type)

    def tensor(self, name, shape, low=None, high=None, profile=None):
        """Draws the values of an argument."""
        self.args[name] = self.values(self.dtype(name), shape, low, high, profile)
        return self.args[name]

    def put(self, name, value):
        """Sets an argument, in its own type."""
        with np.errstate(all="ignore"):
            self.args[name] = np.asarray(value).astype(self.dtype(name))
        return self.args[name]

    def put_all(self, **values):
        """Sets those of these arguments that the op has."""
        for arg in self.definition.input_arg:
            if arg.name in values:
                self.put(arg.name, values[arg.name])

    def variable(self, name, shape, low=None, high=None, dtype=None):
        """Draws a variable; dtype names an argument of its type, if the attribute
        "dtype" does not state it."""
        kind = self.dtype(dtype) if dtype else numpy_type(
            self.types["dtype" if "dtype" in self.types else "T"])
        self.args[name] = Variable(self.values(kind, shape, low, high))
        return self.args[name].value

    def has(self, attr):
        return any(each.name == attr for each in self.definition.attr)

    def fill_attrs(self):
        """Sets the attributes that the op's row has not set."""
        names = {attr.name for attr in self.definition.attr}
        self.attrs = {name: value for name, value in self.attrs.items()
                      if name in names}
        for attr in self.definition.attr:
            if attr.name in self.attrs:
                continue
            if attr.type == "type":
                self.attrs[attr.name] = self.types[attr.name]
            else:
                self.attrs[attr.name] = self._attribute(attr)

    def _attribute(self, attr):
        default = attr.default_value if attr.HasField("default_value") else None
        allowed = attr.allowed_values.list
        if attr.type == "bool":
            return self.chance(.5)
        if attr.type == "string":
            if allowed.s:
                return self.choice(list(allowed.s))
            return default.s if default else b""
        if attr.type == "int":
            low = attr.minimum if attr.has_minimum else 1
            return default.i if default else self.integer(low, low + 3)
        if attr.type == "float":
            return default.f if default else float(self.random.uniform(.1, 1))
        if attr.type == "shape":
            return [] if default is None or not default.shape.unknown_rank else None
        if attr.type == "list(type)":
            types = plan.allowed_types(self.op, attr.name)
            return [self.choice(types) for _ in range(self.integer(1, 3))]
        if attr.type.startswith("list("):
            field = {"int": "i", "float": "f", "bool": "b", "string": "s",
                     "shape": "shape"}.get(attr.type[5:-1])
            if default and field:
                return list(getattr(default.list, field))
        raise Undrawable(f"attribute {attr.name}: {attr.type}")

    def fill_args(self):
        """Draws the arguments that the op's row has not drawn, all with one shape."""
        common = None
        for arg in self.definition.input_arg:
            if arg.name in self.args:
                continue
            if common is None:
                drawn = [value for value in self.args.values()
                         if isinstance(value, np.ndarray)]
                common = list(drawn[0].shape) if drawn else self.shape()
            if arg.type_list_attr:
                self.args[arg.name] = [self.values(numpy_type(number), common)
                                       for number in self.attrs[arg.type_list_attr]]
                continue
            number = self.types[arg.type_attr] if arg.type_attr else arg.type
            if number == types_pb2.DT_RESOURCE:
                raise Undrawable(f"argument {arg.name}: resource")
            if arg.number_attr:
                self.args[arg.name] = [self._default(number, common)
                                       for _ in range(self.attrs[arg.number_attr])]
            else:
                self.args[arg.name] = self._default(number, common)

    def _default(self, number, shape):
        if number == types_pb2.DT_VARIANT:
            return TensorList(self.values("float32", shape if len(shape) else [2]))
        return self.values(numpy_type(number), shape)

    # ---- Mistakes ----------------------------------------------------------------

    def spoil(self):
        """Makes one mistake: another rank, another size, an index, axis or attribute
        that is out of range. TensorFlow's CPU decides whether it is an error."""
        names = [name for name, value in self.args.items()
                 if isinstance(value, np.ndarray) and not (
                     re.fullmatch(_UNSPOILED, f"{self.op} {name}"))]
        if not names:
            return
        name = self.choice(names)
        value = self.args[name]
        way = self.choice(("rank", "rank", "size", "size", "value"))
        if way == "value" and value.dtype.kind == "i" and value.size:
            value = value.copy()
            info = np.iinfo(value.dtype)
            # TensorFlow's CPU takes the lower half of the k of TopKV2, of the dimension of
            # ArgMax and of the axis of Roll and Transpose.
            extremes = [] if name in ("k", "dimension", "perm", "strides") or (
                self.op == "Roll") or any(word in name for word in _SIZES) else [info.min, info.max]
            value.reshape(-1)[self.integer(0, value.size - 1)] = self.choice(
                [-1, -2, 9, 100, *extremes])
        elif way == "rank" or not value.ndim:
            value = value[None] if self.chance(.5) or not len(value.shape) or (
                not value.size) else value[0]
        else:
            axis = self.integer(0, value.ndim - 1)
            value = np.concatenate([value, value], axis) if self.chance(.5) else (
                np.take(value, range(value.shape[axis] // 2), axis))
        self.args[name] = np.asarray(value)
