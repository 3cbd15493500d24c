# SPDX-License-Identifier: Apache-2.0
"""Compares a result with TensorFlow's, within the tolerances of the op."""

import copy
import re

import numpy as np
from tensorflow.python.framework import dtypes

from op_sweep import draw, plan, run, tolerances

# The kind of a difference whose reason is known.
EXPLAINED = "explained"
_DIGITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
_LOWEST = {"float64": -1022, "float32": -126, "float16": -14, "bfloat16": -126}


def all_types(case):
    return {attr.name: case.attrs[attr.name] for attr in case.definition.attr
            if attr.type in ("type", "list(type)")}


def widen(case, types):
    """Returns the case in wider types."""
    def wide(array, number):
        target = draw.numpy_type(number)
        return array.astype(target) if array.dtype != target else array

    result = copy.copy(case)
    result.types = {name: value for name, value in types.items()
                    if not isinstance(value, list)}
    result.attrs = {**case.attrs, **types}
    result.args = {}
    for arg in case.definition.input_arg:
        value = case.args[arg.name]
        number = types.get(arg.type_attr) or arg.type
        if isinstance(value, (draw.Variable, draw.TensorList)):
            number = types.get("dtype", types.get("T", types.get("element_dtype")))
            value = type(value)(wide(value.value, number))
        elif arg.type_list_attr:
            value = [wide(x, n) for x, n in zip(value, types[arg.type_list_attr])]
        elif isinstance(value, list):
            value = [wide(x, number) for x in value]
        else:
            value = wide(value, number)
        result.args[arg.name] = value
    return result


def absolute(case, finite=False):
    """Returns the case with the absolute values of all numbers in which the op is linear;
    if finite, with 0 for others."""
    names = tolerances.LINEAR_IN.get(case.op, case.args)
    def positive(value):
        if isinstance(value, list):
            return [positive(each) for each in value]
        if isinstance(value, draw.Variable):
            return draw.Variable(positive(value.value))
        if value.dtype.kind not in "fcV":
            return value
        value = np.abs(value).astype(value.dtype)
        return np.where(np.isfinite(value), value, value.dtype.type(0)) if finite else value
    result = copy.copy(case)
    result.args = {name: positive(value) if name in names else value
                   for name, value in case.args.items()}
    if "fused_ops" in case.attrs:  # The activation would hide the size of the terms.
        result.attrs = {**case.attrs, "fused_ops": case.attrs["fused_ops"][:1]}
    return result


def _ulp(x, name):
    """Returns the unit in the last place of each number, in the type of this name."""
    _, exponent = np.frexp(np.abs(x))
    exponent = np.where(x == 0, _LOWEST[name], exponent - 1)
    return 2.0**(np.maximum(exponent, _LOWEST[name]) - _DIGITS[name])


class References:
    """TensorFlow's results for a case, each computed when it is needed first."""

    def __init__(self, case, cpu):
        self._case, self._cpu = case, cpu
        self._wide = [] if re.fullmatch(tolerances.NO_WIDER, case.op) else [
            widen(case, types) for types in plan.all_wider(case.op, all_types(case))]
        self._cache = {}

    def arrays(self):
        """Generates the results with which a device may agree, as Outcomes."""
        if self._cpu.error != "none":
            yield self._cpu
        for i, wide in enumerate(self._wide):
            yield self._get(("wide", i), lambda wide=wide: wide)
        yield self._get("flushed", lambda: _flush(self._case))

    def is_wide(self, outcome):
        return any(outcome is self._cache.get(("wide", i))
                   for i in range(len(self._wide)))

    def _get(self, name, make):
        if name not in self._cache:
            case = make()
            self._cache[name] = (run.run(case, run.CPU) if case is not None
                                 else run.Outcome(error="none"))
        return self._cache[name]

    def terms(self, i):
        """Returns the sums of the absolute values of the terms of output i."""
        found = self._get("terms", lambda: absolute((self._wide or [self._case])[-1]))
        return None if found.error else np.abs(found.arrays[i])

    def overflows(self, i, dtype):
        """Returns for which elements of output i the sum of the absolute values of the
        finite terms is infinite in the type, so that the order of additions decides."""
        found = self._get("finite terms", lambda: absolute(
            (self._wide or [self._case])[-1], finite=True))
        if found.error:
            return False
        case = self._case.args.values()
        size = max((x.size for x in case if isinstance(x, np.ndarray)), default=1)
        with np.errstate(all="ignore"):
            sums = np.abs(found.arrays[i]).astype("float64")
            if "Mean" in self._case.op or "Avg" in self._case.op:
                sums = sums * (size / max(sums.size, 1))
            return ~(sums <= float(dtypes.as_dtype(dtype).max))


def _flush(case):
    """Returns the case with zeros for denormal numbers; None if it has none."""
    result, any_denormal = copy.copy(case), False
    result.args = dict(case.args)
    for name, x in case.args.items():
        kind = getattr(getattr(x, "dtype", None), "name", "")
        if kind in _LOWEST:
            with np.errstate(all="ignore"):
                small = (x != 0) & (np.abs(x.astype("float64")) < 2.0**_LOWEST[kind])
            if small.any():
                any_denormal = True
                result.args[name] = np.where(small, x * 0, x).astype(x.dtype)
    return result if any_denormal else None


def _tolerance(op, name, want, terms, is_complex):
    """Returns the allowed absolute difference of each element."""
    if is_complex:  # The error is one of the number, not of its parts.
        want = np.repeat(np.abs(want).max(-1, keepdims=True), 2, axis=-1)
    units = tolerances.ULPS[name]
    if op in tolerances.TENSOR:
        units = tolerances.TENSOR_OP_ULPS.get(op, tolerances.TENSOR_ULPS)
    if name in ("float32", "float64"):
        units = tolerances.OP_ULPS.get(op, units)
    if is_complex:
        units = max(units, tolerances.COMPLEX_OP_ULPS.get(op, tolerances.COMPLEX_ULPS))
    base = np.where(np.isfinite(want), want, 0)
    if op in tolerances.ONE or is_complex and op in tolerances.COMPLEX_ONE or re.fullmatch(tolerances.ONE_TOO, op):
        base = np.maximum(np.abs(base), 1)
    elif op in tolerances.TENSOR and base.size:
        base = np.full_like(base, np.abs(base).max())
    allowed = units * _ulp(base, name)
    if terms is not None and terms.shape == want.shape:
        most = float(dtypes.as_dtype(name).max)
        terms = np.where(np.isfinite(terms), terms, most).astype("float64")
        compute = "float64" if name == "float64" else "float32"
        allowed = allowed + tolerances.TERMS_ULPS * _ulp(terms, compute)
    return allowed


def _parts(x):
    """Returns an array as real numbers, with the name of their type."""
    if x.dtype.kind == "c":
        name = {"complex64": "float32", "complex128": "float64"}[x.dtype.name]
        return np.stack([x.real, x.imag], -1).astype("float64"), name
    return x.astype("float64"), x.dtype.name


def _computed_in(case, name):
    """Returns the type in which an output of float64 has been computed."""
    narrow = any(getattr(getattr(x, "dtype", None), "name", "") == "float32"
                 for x in case.args.values())
    return "float32" if name == "float64" and narrow else name


def compare(case, got, references, i):
    """Returns (kind, text) of the worst difference of output i, (EXPLAINED, reason), or
    None. Each element may agree with another one of the references."""
    best, different = None, True
    for reference in references.arrays():
        if reference.error or i >= len(reference.arrays):
            continue
        want = reference.arrays[i]
        if references.is_wide(reference) and want.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                want = want.astype(got.dtype)
        if got.shape != want.shape:
            best = best or _shapes(got, want)
            continue
        if got.dtype.name not in _DIGITS and got.dtype.kind != "c":
            if got.dtype != want.dtype:
                return "type", f"got {got.dtype}, want {want.dtype}"
            found, ulps = got != want, None
        else:
            found, ulps = _compare_floats(case, got, want, references, i)
        different = found & different
        if case.op in tolerances.LINEAR and np.any(different):
            infinite = ~(np.isfinite(got) & np.isfinite(want))
            if np.any(infinite):
                different &= ~(references.overflows(i, got.dtype) & infinite)
        if not np.any(different):
            return None
        reason = tolerances.odd_values(case.op, got, want, different)
        if reason:
            return EXPLAINED, reason
        best = best or _worst(got, want, found, ulps)
    return best


def _compare_floats(case, got, want, references, i):
    """Returns which elements differ, and how many ulps they are apart."""
    if got.tobytes() == want.tobytes() and got.dtype == want.dtype:
        return np.zeros(got.shape, bool), None
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        x, name = _parts(got)
        y, _ = _parts(want)
        small = 2.0**_LOWEST[name]
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | (
            (np.abs(x) <= small) & (np.abs(y) <= small))
        terms = references.terms(i) if (
            case.op in tolerances.LINEAR or case.op in tolerances.FOURIER) else None
        if terms is not None and case.op in tolerances.FOURIER:
            terms = np.full_like(np.abs(terms), np.abs(terms).max(initial=0))
        name = _computed_in(case, name)
        if terms is not None and got.dtype.kind == "c":
            terms = np.stack([terms, terms], -1)
        allowed = _tolerance(case.op, name, y, terms, got.dtype.kind == "c")
        # TensorFlow's CPU flushes denormal terms to 0 in some kernels; it computes bfloat16
        # in float32, whose exponents it has, and of float16 none is denormal there.
        if got.dtype.name != "float16":
            allowed = np.maximum(allowed, tolerances.FLUSHED_TERMS * small)
        apart = np.abs(x - y)
        different = ~same & ~(apart <= allowed)
        ulps = np.where(different, apart / _ulp(np.where(np.isfinite(y), y, 0), name), 0)
    if got.dtype.kind == "c":
        # Which part of an infinite complex number is infinite is defined nowhere.
        different = different.any(-1) & (np.isfinite(got) | np.isfinite(want))
        ulps = ulps.max(-1)
    return different, ulps


def _shapes(got, want):
    return "shape", (f"got the shape {list(got.shape)}, want {list(want.shape)}: the kernel "
                     "must allocate the output with the shape that the op defines")


def _worst(got, want, different, ulps):
    order = (different if ulps is None else np.nan_to_num(ulps, nan=np.inf)).astype(float)
    at = np.unravel_index(int(np.argmax(np.where(different, order, -1))), got.shape)
    apart = "" if ulps is None else f", {ulps[at]:.3g} ulps"
    return "value", (f"{int(np.sum(different))} of {got.size} elements differ; at "
                     f"{[int(a) for a in at]} got {got[at]}, want {want[at]}{apart}")


def moments(got, want):
    """Compares random numbers with the CPU's by their mean and deviation."""
    if got.shape != want.shape:
        return _shapes(got, want)
    if got.size < 200:
        return None
    x, y = got.astype("float64").ravel(), want.astype("float64").ravel()
    # The standard errors of mean and variance, of both samples together: of rare numbers,
    # one sample may have none.
    both = np.concatenate([x, y])
    apart = (both - both.mean())**2
    of_mean = np.sqrt(apart.mean() / x.size)
    of_variance = np.sqrt(apart.var() / x.size)
    if (abs(x.mean() - y.mean()) > 9 * of_mean + 1e-7 or
            abs(x.var() - y.var()) > 9 * of_variance + 1e-7):
        return "value", (f"mean {x.mean():.4g}, deviation {x.std():.4g}; "
                         f"want {y.mean():.4g}, {y.std():.4g}")
    return None
