# SPDX-License-Identifier: Apache-2.0
"""Judges the ops that only the pass FuseElementwise creates: random expressions run as
graphs with and without the pass, and must have the same results, bit by bit. Those of
exact ops must also have the CPU's."""

import dataclasses
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes

from op_sweep import draw, plan, run
from op_sweep.judge import MISMATCH, OK, Verdict
from op_sweep.values import NORMAL_SIZE, VALID, Numbers

# What the rules of a device's author may make of a product before the pass runs.
_BY_AUTHOR = "_FusedMatMul"
_TYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int8", "int16", "uint8",
          "uint16", "uint32", "uint64")
_COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_EXACT = {1: ("Neg", "Abs", "Square", "Sign", "Relu", "Floor", "LogicalNot"),
          2: ("AddV2", "Sub", "Mul", "Maximum", "Minimum", "LogicalAnd", "LogicalOr",
              "BitwiseAnd", "BitwiseOr", "BitwiseXor")}
_OTHERS = {1: ("Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Tanh",
               "Sigmoid", "Softplus", "Softsign", "Elu", "Selu", "Relu6", "LeakyRelu",
               "Erf", "Erfc", "Lgamma", "Sin", "Cos", "Atan", "Sinh", "Ceil", "Rint",
               "Round"),
           2: ("RealDiv", "DivNoNan", "Pow", "FloorDiv", "FloorMod", "Atan2", "Xlogy",
               "TanhGrad", "SigmoidGrad", "ReluGrad", "EluGrad", "SoftplusGrad",
               "BiasAdd", "AddN", "SquaredDifference")}
_NEED_EQUAL_SHAPES = ("TanhGrad", "SigmoidGrad", "ReluGrad", "EluGrad", "SoftplusGrad")
# Of integers, the device cannot raise the CPU's error.
_NOT_OF_INTEGERS = ("FloorDiv", "FloorMod", "Pow", "RealDiv", "DivNoNan")


@dataclasses.dataclass
class _Value:
    """An input or the result of a step."""

    dtype: str
    is_whole: bool  # whether it has the shape of the others, or is broadcast to it
    array: np.ndarray = None  # of an input
    op: str = ""
    args: tuple = ()  # indices of values
    attrs: dict = dataclasses.field(default_factory=dict)


class Expression(Numbers):
    """A random graph: steps, a reduction or a product, and more steps."""

    def __init__(self, unit, seed, number, device_type):
        index, _, size = str(number).partition(".")
        size = int(size) if size else NORMAL_SIZE
        super().__init__([seed, unit.id, int(index), size], VALID, size)
        self.device_type = device_type
        self.values_, self.outputs = [], []
        self.has_double = False  # no denormal numbers, which the CPU flushes to 0
        self.is_exact = self.chance(.4)
        self.is_dynamic = self.chance(.3)  # whether TensorFlow knows no shape
        if self.is_exact:
            self.profile = "ties"
        self.compares_with_cpu = self.is_exact
        dtype = dtypes.as_dtype(unit.types[0][1]).name
        self._whole_only = False
        {"Map": self._draw_map, "Reduce": self._draw_reduction,
         "MatMul": self._draw_product}[plan.FUSED.fullmatch(unit.op)[1]](dtype)

    # ---- Parts -------------------------------------------------------------------

    def _draw_map(self, dtype):
        shape = self.shape(high=6)
        self._add_steps(self._leaf(dtype, shape), shape, self.integer(
            2, 2 + 2 * self.size))

    def _draw_reduction(self, dtype):
        shape = self.shape(low=1, high=6)
        sums = dtype != "bool" and self.chance(.5)
        # The order of other sums differs if an input is broadcast.
        self._whole_only = sums and not self.is_exact
        after = self.integer(0, 2 + self.size)
        last = self._leaf(dtype, shape)
        # Sums of so small numbers are exact.
        last = self._add_steps(last, shape, self.integer(0 if after else 1, 2), cast=False)
        self._whole_only = False
        axes = {len(shape) - 1} if not after or self.chance(.7) else set()
        axes |= {axis for axis in range(len(shape)) if self.chance(.3)}
        if dtype == "bool":
            op = self.choice(("All", "Any"))
        else:
            op = self.choice(("Sum", "Mean", "Prod") if sums else ("Max", "Min"))
        is_integer = np.dtype(draw.numpy_type(dtype)).kind in "iu"
        if op != "Sum" and sums and (self.is_exact or is_integer):
            op = "Sum"
        # TensorFlow's CPU adds these in their own type.
        self.compares_with_cpu &= not (sums and dtype in ("float16", "bfloat16"))
        keep = self.chance(.4)
        self.outputs.clear()
        axes = sorted(axis - len(shape) for axis in axes)
        last = self._step(op, dtype, (last,), {"axis": axes, "keep_dims": keep})
        shape = [1 if axis - len(shape) in axes else size for axis, size in enumerate(
            shape) if keep or axis - len(shape) not in axes]
        self._add_steps(last, shape, after)

    def _draw_product(self, dtype):
        rows, inner, columns = (self.integer(1, 30) for _ in range(3))
        is_batch = self.chance(.4)
        batch = self.shape(low=1, high=2, most=4) if is_batch else []
        names = ("adj_x", "adj_y") if is_batch else ("transpose_a", "transpose_b")
        first, second = self.chance(.3), self.chance(.3)
        a = [inner, rows] if first else [rows, inner]
        b = [columns, inner] if second else [inner, columns]
        more = self.broadcast(batch) if is_batch else []
        if not self.is_exact:
            self.finite()
        left = self._leaf(dtype, batch + a)
        right = self._leaf(dtype, more + b)
        last = self._step("BatchMatMulV2" if is_batch else "MatMul", dtype, (left, right),
                          dict(zip(names, (first, second))))
        self.compares_with_cpu &= dtype not in ("float16", "bfloat16")
        self._add_steps(last, batch + [rows, columns], self.integer(1, 2 + self.size))

    # ---- Steps -------------------------------------------------------------------

    def _add_steps(self, last, shape, count, cast=True):
        """Adds steps, each of which uses the one before; returns the last one."""
        start = last
        for _ in range(count):
            last = self._add_step(start, last, shape, cast)
        self.outputs = [last] + [
            i for i in range(start + 1, last)
            if self.values_[i].op and cast and self.chance(.15)]
        return last

    def _add_step(self, start, last, shape, cast):
        dtype = self.values_[last].dtype
        dice = self.random.random()
        if cast and dice < .12 and self.values_[last].op != "Cast":
            to = self.choice([each for each in _TYPES if self._can_cast(dtype, each)] or
                             [dtype])
            if to != dtype:
                return self._step("Cast", to, (last,), {"DstT": to})
        if dice < .2 and dtype == "bool":
            to = self.choice(("float32", "float16")) if cast else "bool"
            if self._has_kernel("SelectV2", to):
                args = (last, self._other(start, to, shape), self._other(start, to, shape))
                return self._step("SelectV2", to, args)
        if cast and dice < .28 and dtype != "bool":
            op = self.choice(_COMPARISONS)
            if self._has_kernel(op, dtype):
                return self._step(op, "bool", self._ordered(
                    last, self._other(start, dtype, shape)))
        arity = 1 if self.chance(.5) else 2
        names = [op for op in _EXACT[arity] + (() if self.is_exact else _OTHERS[arity])
                 if self._fits(op, dtype, shape)]
        if not names:
            arity = 2
            names = [op for op in _EXACT[2] if self._fits(op, dtype, shape)]
        if not names:
            raise draw.Undrawable(f"{self.device_type} has no element-wise kernel for {dtype} "
                                  "that the CPU has too, so nothing is fused")
        op = self.choice(names)
        if arity == 1:
            return self._step(op, dtype, (last,))
        if op == "BiasAdd":
            return self._step(op, dtype, (last, self._leaf(dtype, shape[-1:], False)))
        other = self._other(start, dtype, shape, op in _NEED_EQUAL_SHAPES + ("AddN",))
        return self._step(op, dtype, self._ordered(last, other))

    def _ordered(self, a, b):
        return (a, b) if self.chance(.6) else (b, a)

    def _fits(self, op, dtype, shape):
        if dtype == "bool" or op.startswith("Logical"):
            return dtype == "bool" and op.startswith("Logical")
        if np.dtype(draw.numpy_type(dtype)).kind in "iu" and op in _NOT_OF_INTEGERS:
            return False
        if op == "BiasAdd" and (len(shape) < 2 or len(shape) > 5):
            return False
        return (self._has_kernel(op, dtype) and
                plan.has_cpu_kernel(op, {"T": dtypes.as_dtype(dtype).as_datatype_enum}))

    def _has_kernel(self, op, dtype, attr="T"):
        return plan.has_device_kernel(
            self.device_type, op, dtypes.as_dtype(dtype).as_datatype_enum, attr)

    def _can_cast(self, dtype, to):
        # What a number out of range becomes is undefined.
        kinds = {name: np.dtype(draw.numpy_type(name)).kind for name in (dtype, to)}
        return self._has_kernel("Cast", to, "DstT") and self._has_kernel(
            "Maximum", to) and (
            kinds[dtype] in "iub" or kinds[to] not in "iu")

    def _other(self, start, dtype, shape, whole=False):
        """Returns another operand: an input, or a value of this part."""
        old = [i for i in range(start, len(self.values_))
               if self.values_[i].dtype == dtype and (self.values_[i].is_whole or not whole)
               and (self.values_[i].is_whole or not self._whole_only)
               and self.values_[i].op not in ("Sum", "Mean", "Prod")]
        if old and self.chance(.5):
            return self.choice(old)
        whole = whole or self._whole_only or self.chance(.6)
        return self._leaf(dtype, shape if whole else self.broadcast(shape), whole)

    def _leaf(self, dtype, shape, is_whole=True):
        self.values_.append(_Value(dtype, is_whole, self.values(
            draw.numpy_type(dtype), shape)))
        return len(self.values_) - 1

    def _step(self, op, dtype, args, attrs=None):
        self.values_.append(_Value(dtype, True, op=op, args=args, attrs=attrs or {}))
        return len(self.values_) - 1

    # ---- Execution ---------------------------------------------------------------

    def text(self):
        def shown(i, each):
            if each.op:
                attrs = "".join(f", {key}={value}" for key, value in each.attrs.items())
                return f"{i}={each.op}({', '.join(map(str, each.args))}{attrs})"
            return f"{i}={each.dtype}{list(each.array.shape)}"
        return " ".join([*(shown(i, each) for i, each in enumerate(self.values_)),
                         f"-> {self.outputs}", *["unknown shapes"] * self.is_dynamic])

    def inputs(self):
        return [each.array for each in self.values_ if not each.op]

    @property
    def may_stay(self):
        """Whether the pass may leave an op alone because the author has a kernel for it."""
        return any(plan.has_authors_kernel(each.op, self.device_type)
                   for each in self.values_ if each.op)

    def compute(self, *inputs):
        """Returns the outputs of the graph."""
        results, inputs = [], iter(inputs)
        for each in self.values_:
            results.append(_call(each, [results[i] for i in each.args]) if each.op else
                           next(inputs))
        return [results[i] for i in self.outputs]

    def run(self, device, fuse):
        """Returns the arrays, and the nodes that TensorFlow ran for them."""
        # TensorFlow's own optimizers may leave nothing to fuse.
        tf.config.optimizer.set_experimental_options(dict.fromkeys((
            "arithmetic_optimization", "constant_folding", "remapping"), False))
        os.environ["TFPLUG_FUSION"] = "1" if fuse else "0"
        inputs = [tf.constant(each) for each in self.inputs()]
        signature = [tf.TensorSpec(None if self.is_dynamic else each.shape, each.dtype)
                     for each in inputs]
        function = tf.function(self.compute, input_signature=signature, autograph=False,
                               jit_compile=False)
        context.context().enable_run_metadata()
        try:
            with tf.device(device):
                arrays = [each.numpy() for each in function(*inputs)]
            metadata = context.context().export_run_metadata()
        finally:
            context.context().disable_run_metadata()
        return arrays, [node for graphs in metadata.function_graphs
                        for graph in graphs.partition_graphs for node in graph.node]


def _call(step, args):
    attrs = dict(step.attrs)
    names = [arg.name for arg in plan.op_def_registry.get(step.op).input_arg]
    if step.op == "AddN":
        return tf.raw_ops.AddN(inputs=args)
    if step.op in ("Sum", "Mean", "Prod", "Max", "Min", "All", "Any"):
        args = [*args, tf.constant(attrs.pop("axis"), tf.int32)]
        names[1] = "axis"
    return getattr(tf.raw_ops, step.op)(**dict(zip(names, args)), **attrs)


def judge(unit, seed, number, device, report):
    """Runs an expression with and without fusion, and on the CPU."""
    case = Expression(unit, seed, number, device.split(":")[-2])
    text = case.text()

    def verdict(status, kind="", difference=""):
        return Verdict(status, kind, difference, text, str(number), True)
    if case.compares_with_cpu:
        report("CPU", text)
        want, _ = case.run(run.CPU, False)
    report("the device", text)
    try:
        alone, _ = case.run(device, False)
        fused, nodes = case.run(device, True)
    except tf.errors.OpError as error:
        return verdict(MISMATCH, "error", f"{type(error).__name__}: {error.message}"[:300])
    ops = {node.op for node in nodes}
    if unit.op not in ops and not case.may_stay and not (
            "MatMul" in unit.op and _BY_AUTHOR in ops):
        return verdict(MISMATCH, "fusion", f"ran {', '.join(sorted(ops))}")
    found = _difference(fused, alone)
    if found:
        return verdict(MISMATCH, "value", f"fused, {found} without fusion")
    if case.compares_with_cpu:
        found = _difference(fused, want)
        if found:
            return verdict(MISMATCH, "value", f"{found} on the CPU")
    return verdict(OK)


def _difference(got, want):
    """Returns the first difference of two lists of arrays; "" if there is none."""
    for i, (x, y) in enumerate(zip(got, want)):
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"output {i}: got {x.dtype}{list(x.shape)}, {y.dtype}{list(y.shape)}"
        # NaN is equal to NaN; zeros of both signs are equal.
        different = (x != y) & ~((x != x) & (y != y))
        if different.any():
            at = tuple(map(int, np.argwhere(different)[0]))
            return (f"output {i}: {int(different.sum())} of {x.size} elements differ; at "
                    f"{list(at)} got {x[at]}, {y[at]}")
    return ""
