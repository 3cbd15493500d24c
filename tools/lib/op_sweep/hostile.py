# SPDX-License-Identifier: Apache-2.0
"""Runs ops with hostile arguments: those of a valid case, some of which are replaced by
others of the same kind, such as huge, negative, empty or of another rank. The device may
refuse them. It must neither crash nor hang, nor write outside of its tensors, which
CPU_SIM_CANARIES and CUDA_LIKE_CANARIES detect.

A crash is the device's only if TensorFlow's CPU survives the same arguments."""

import contextlib
import math

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes

from op_sweep import draw, fused, plan, rows, run
from op_sweep.judge import NOT_RUN, OK, Verdict, describe
from op_sweep.values import VALID

_MOST_ELEMENTS = 1 << 20
_INTEGERS = (0, 1, -1, 2, -2, 3, 8, 17, 255, 1 << 15, (1 << 31) - 1, 1 << 31, -(1 << 31),
             (1 << 32) + 1, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63))
_FLOATS = (0., -0., 1., -1., .5, 1e-45, 1e38, -1e38, 3e4, 7e4, 2.**31, 2.**63, -2.**63,
           math.inf, -math.inf, math.nan)
_STRINGS = (b"", b"NCHW", b"NHWC", b"NDHWC", b"SAME", b"VALID", b"EXPLICIT", b"x" * 5000,
            b"\xff\x00\xfe", b"add:float 0 1", b"ij,jk->ik", b"...->", b"-1", b"REFLECT")
_TYPES = plan.ANY + [types_pb2.DT_STRING, types_pb2.DT_VARIANT, types_pb2.DT_RESOURCE, 0, 99]


class _Mutator:
    """Changes parts of a case."""

    def __init__(self, case):
        self.case, self.choice, self.chance = case, case.choice, case.chance
        self.integer = case.integer

    def change(self):
        args = [name for name, value in self.case.args.items()
                if isinstance(value, (np.ndarray, list))]
        # TensorFlow allocates as many outputs as these say.
        counts = {arg.number_attr or arg.type_list_attr
                  for arg in self.case.definition.output_arg}
        attrs = [attr for attr in self.case.definition.attr
                 if attr.name in self.case.attrs and attr.name not in counts]
        # Of an input, it makes a list of as many types before it calls a kernel.
        lengths = {arg.number_attr for arg in self.case.definition.input_arg}
        for _ in range(self.choice((1, 1, 1, 2, 2, 3, 5))):
            if args and (not attrs or self.chance(.65)):
                name = self.choice(args)
                self.case.args[name] = self._argument(self.case.args[name])
            elif attrs:
                attr = self.choice(attrs)
                self.case.attrs[attr.name] = (
                    self.choice([n for n in _INTEGERS if n < _MOST_ELEMENTS])
                    if attr.name in lengths else
                    self._attribute(attr.type, self.case.attrs[attr.name]))

    # ---- Arguments ---------------------------------------------------------------

    def _argument(self, value):
        if isinstance(value, list):
            if not value:
                return value
            at = self.integer(0, len(value) - 1)
            return [self._argument(each) if i == at else each
                    for i, each in enumerate(value)]
        if not isinstance(value, np.ndarray):
            return value
        if self.chance(.5 if value.dtype.kind in "iuf" else .1):
            return self._with_values(value)
        return self._with_shape(value)

    def _with_values(self, value):
        if value.dtype.kind not in "iuf" and value.dtype != dtypes.bfloat16.as_numpy_dtype:
            return value
        value = np.array(value)
        flat = value.reshape(-1)
        if not flat.size:
            return value
        some = range(flat.size) if self.chance(.2) else [
            self.integer(0, flat.size - 1) for _ in range(self.integer(1, 3))]
        same = self.chance(.3)
        number = None
        for at in some:
            if number is None or not same:
                number = self.choice(_INTEGERS if value.dtype.kind in "iu" else _FLOATS)
            with np.errstate(all="ignore"):
                if value.dtype.kind in "iu":
                    info = np.iinfo(value.dtype)
                    number = min(max(number, int(info.min)), int(info.max))
                flat[at] = number
        return value

    def _with_shape(self, value):
        way = self.choice(("scalar", "empty", "more", "ranks", "ones", "vector", "less",
                           "flat", "size"))
        shape = list(value.shape)
        if way == "scalar":
            shape = []
        elif way == "empty":
            shape = shape or [1]
            shape[self.integer(0, len(shape) - 1)] = 0
        elif way == "more":
            shape.insert(self.integer(0, len(shape)), self.integer(1, 3))
        elif way == "ranks":
            shape = [1] * (self.integer(9, 17) - len(shape)) + shape
        elif way == "ones":
            shape = [1] * self.integer(0, 16)
        elif way == "vector":
            shape = [self.choice((0, 1, 2, 3, 5, 16, 17, 100, 1000))]
        elif way == "less":
            shape = shape[1:]
        elif way == "flat":
            shape = [value.size]
        elif shape:
            at = self.integer(0, len(shape) - 1)
            shape[at] = self.choice((0, 1, 2, shape[at] + 1, max(shape[at] - 1, 0), 33))
        if math.prod(shape) > _MOST_ELEMENTS:
            return value
        if not value.size:
            return np.zeros(shape, value.dtype)
        return np.resize(value, shape).astype(value.dtype)

    # ---- Attributes --------------------------------------------------------------

    def _attribute(self, kind, value):
        if kind.startswith("list("):
            return self._list(kind[5:-1], value)
        return {"int": lambda: self.choice(_INTEGERS), "float": lambda: self.choice(_FLOATS),
                "bool": lambda: not value, "string": lambda: self._string(value),
                "type": lambda: self.choice(_TYPES),
                "shape": lambda: self.choice((None, [], [-1], [0], [2, 3], [1 << 40] * 2,
                                              [1] * 17))}.get(kind, lambda: value)()

    def _string(self, value):
        if isinstance(value, str):
            value = value.encode()
        if not value or self.chance(.4):
            return self.choice(_STRINGS)
        # One character or number of the text differs.
        at = self.integer(0, len(value) - 1)
        return value[:at] + self.choice((b"", b"0", b"9", b"-1", b" ", b"99999999999", b":",
                                         b"x")) + value[at + 1:]

    def _list(self, kind, value):
        value = list(value or [])
        way = self.choice(("change", "change", "add", "drop", "none", "many"))
        some = {"int": 1, "float": 1., "bool": True, "string": b"", "type": 1,
                "shape": []}.get(kind)
        if some is None:
            return value
        if way == "none":
            return []
        if way == "many":
            return (value or [some]) * self.choice((2, 9))
        if way == "add" or not value:
            at = self.integer(0, len(value))
            return value[:at] + [self._attribute(kind, some)] + value[at:]
        at = self.integer(0, len(value) - 1)
        if way == "drop":
            return value[:at] + value[at + 1:]
        value[at] = self._attribute(kind, value[at])
        return value


class _FusedCase(draw.Draw):
    """The node that FuseElementwise makes of a random expression."""

    def __init__(self, unit, seed, number, device):
        super().__init__(unit, seed, number)
        expression = fused.Expression(unit, seed, number, device.split(":")[-2])
        node = next((node for node in expression.run(device, True)[1]
                     if node.op == unit.op), None)
        if node is None:
            raise draw.Undrawable("the pass fuses nothing")
        for attr in self.definition.attr:
            self.attrs[attr.name] = _value_of(node.attr[attr.name])
        shape = next((list(each.shape) for each in expression.inputs()), [])
        for arg in self.definition.input_arg:
            if arg.type_list_attr:
                self.args[arg.name] = [self._default(kind, shape)
                                       for kind in self.attrs[arg.type_list_attr]]
            elif arg.name == "axes":
                self.put(arg.name, [-1])
            else:
                self.args[arg.name] = self._default(self.attrs[arg.type_attr], [4, 4])
        self.types["Tidx"] = types_pb2.DT_INT32

    def fill_attrs(self):
        pass


def _value_of(attr):
    """Returns the value of an AttrValue as eager execution takes it."""
    field = attr.WhichOneof("value")
    if field != "list":
        return getattr(attr, field)
    for name in ("s", "i", "f", "b", "type", "shape"):
        if getattr(attr.list, name):
            return list(getattr(attr.list, name))
    return []


def judge(unit, seed, number, device, report, on_cpu):
    """Runs a case on the device, after the CPU if `on_cpu`. Only that the process survives
    matters."""
    if plan.FUSED.fullmatch(unit.op):
        report("start", "")
        case = _FusedCase(unit, seed, number, device)
    else:
        case = draw.Draw(unit, seed, number)
        case.kind = VALID
        rows.draw_arguments(case)
    _Mutator(case).change()
    text = describe(case)
    if on_cpu and unit.on_cpu:
        report("CPU", text)
        with contextlib.suppress(Exception):
            run.run(case, run.CPU)
    report("the device", text)
    try:
        outcome = run.run(case, device, unit.host)
    except Exception as error:  # pylint: disable=broad-except
        # Python cannot convert the arguments.
        outcome = run.Outcome(error=type(error).__name__)
    status = NOT_RUN if outcome.error == run.NO_INPUTS else OK
    return Verdict(status, case=text, number=str(number), valid=not outcome.error)
