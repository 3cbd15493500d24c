# SPDX-License-Identifier: Apache-2.0
"""Compares a device's outcome of a case with TensorFlow's CPU."""

import copy
import dataclasses
import re

import numpy as np
from tensorflow.python.framework import dtypes

from op_sweep import draw, plan, rows, run, tolerances

OK, EXPLAINED, NO_REFERENCE, BAD_ARGUMENTS, MISMATCH = (
    "ok", "explained", "no reference", "bad arguments", "mismatch")
_DIGITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
_LOWEST = {"float64": -1022, "float32": -126, "float16": -14, "bfloat16": -126}


@dataclasses.dataclass
class Verdict:
    """What one case showed."""

    status: str
    kind: str = ""  # of a mismatch: value, shape, type, error, input, gradient
    text: str = ""
    case: str = ""  # the arguments
    number: str = ""
    valid: bool = False  # whether TensorFlow's CPU accepted the arguments


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


def absolute(case):
    """Returns the case with the absolute values of all numbers."""
    def positive(value):
        if isinstance(value, list):
            return [positive(each) for each in value]
        if isinstance(value, draw.Variable):
            return draw.Variable(positive(value.value))
        return np.abs(value) if value.dtype.kind in "fcV" else value
    result = copy.copy(case)
    result.args = {name: positive(value) for name, value in case.args.items()}
    return result


def _all_types(case):
    return {attr.name: case.attrs[attr.name] for attr in case.definition.attr
            if attr.type in ("type", "list(type)")}


def _ulp(x, name):
    """Returns the unit in the last place of each number, in the type of this name."""
    _, exponent = np.frexp(np.abs(x))
    exponent = np.where(x == 0, _LOWEST[name], exponent - 1)
    return 2.0**(np.maximum(exponent, _LOWEST[name]) - _DIGITS[name])


class References:
    """TensorFlow's results for a case, each computed when it is needed first."""

    def __init__(self, case, cpu):
        self._case, self._cpu = case, cpu
        wide = (None if re.fullmatch(tolerances.NO_WIDER, case.op) else
                plan.wider(case.op, _all_types(case)))
        self._wide = widen(case, wide) if wide else None
        self._cache = {}

    def arrays(self):
        """Generates the results with which a device may agree, as Outcomes."""
        if self._cpu.error != "none":
            yield self._cpu
        if self._wide is not None:
            yield self._get("wide", lambda: self._wide)
        yield self._get("flushed", lambda: _flush(self._case))

    def is_wide(self, outcome):
        return outcome is self._cache.get("wide")

    def _get(self, name, make):
        if name not in self._cache:
            case = make()
            self._cache[name] = (run.run(case, run.CPU) if case is not None
                                 else run.Outcome(error="none"))
        return self._cache[name]

    def terms(self, i):
        """Returns the sums of the absolute values of the terms of output i."""
        found = self._get("terms", lambda: absolute(self._wide or self._case))
        return None if found.error else np.abs(found.arrays[i])


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


def _tolerance(op, name, want, terms):
    """Returns the allowed absolute difference of each element."""
    units = tolerances.ULPS[name]
    if op in tolerances.TENSOR:
        units = tolerances.TENSOR_ULPS
    if name in ("float32", "float64"):
        units = tolerances.OP_ULPS.get(op, units)
    base = np.where(np.isfinite(want), want, 0)
    if op in tolerances.ONE:
        base = np.maximum(np.abs(base), 1)
    elif op in tolerances.TENSOR and base.size:
        base = np.full_like(base, np.abs(base).max())
    allowed = units * _ulp(base, name)
    if terms is not None and terms.shape == want.shape:
        terms = np.where(np.isfinite(terms), terms, 0).astype("float64")
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
    """Returns (kind, text) of the worst difference of output i, or None."""
    best = None
    for reference in references.arrays():
        if reference.error or i >= len(reference.arrays):
            continue
        want = reference.arrays[i]
        if references.is_wide(reference) and want.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                want = want.astype(got.dtype)
        found = _compare_one(case, got, want, references, i)
        if found is None:
            return None
        best = best or found
    return best


def _compare_one(case, got, want, references, i):
    if got.shape != want.shape:
        return "shape", f"got {list(got.shape)}, want {list(want.shape)}"
    if got.dtype.name not in _DIGITS and got.dtype.kind != "c":
        if got.dtype != want.dtype:
            return "type", f"got {got.dtype}, want {want.dtype}"
        different = got != want
        if not np.any(different):
            return None
        return _worst(got, want, different, None)
    if got.tobytes() == want.tobytes() and got.dtype == want.dtype:
        return None
    with np.errstate(all="ignore"):
        want = want.astype(got.dtype)
        x, name = _parts(got)
        y, _ = _parts(want)
        small = 2.0**_LOWEST[name]
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | (
            (np.abs(x) <= small) & (np.abs(y) <= small))
        if same.all():
            return None
        terms = references.terms(i) if case.op in tolerances.LINEAR else None
        name = _computed_in(case, name)
        if terms is not None and got.dtype.kind == "c":
            terms = np.stack([terms, terms], -1)
        allowed = _tolerance(case.op, name, y, terms)
        apart = np.abs(x - y)
        different = ~same & ~(apart <= allowed)
        if not different.any():
            return None
        ulps = np.where(different, apart / _ulp(np.where(np.isfinite(y), y, 0), name), 0)
    if got.dtype.kind == "c":
        different, ulps = different.any(-1), ulps.max(-1)
    return _worst(got, want, different, ulps)


def _worst(got, want, different, ulps):
    order = (different if ulps is None else np.nan_to_num(ulps, nan=np.inf)).astype(float)
    at = np.unravel_index(int(np.argmax(np.where(different, order, -1))), got.shape)
    apart = "" if ulps is None else f", {ulps[at]:.3g} ulps"
    return "value", (f"{int(np.sum(different))} of {got.size} elements differ; at "
                     f"{[int(a) for a in at]} got {got[at]}, want {want[at]}{apart}")


def _moments(got, want):
    """Compares random numbers with the CPU's by their mean and deviation."""
    if got.shape != want.shape:
        return "shape", f"got {list(got.shape)}, want {list(want.shape)}"
    if got.size < 200:
        return None
    x, y = got.astype("float64").ravel(), want.astype("float64").ravel()
    spread = max(y.std(), 1e-6)
    if (abs(x.mean() - y.mean()) > 9 * spread / np.sqrt(x.size) or
            abs(x.std() - y.std()) > 9 * spread / np.sqrt(x.size)):
        return "value", (f"mean {x.mean():.4g}, deviation {x.std():.4g}; "
                         f"want {y.mean():.4g}, {y.std():.4g}")
    return None


def judge(unit, seed, number, device, report):
    """Runs a case on both devices. Calls report(phase, arguments) before each run, so
    that the case is known if the process does not survive it."""
    try:
        case = rows.draw_arguments(draw.Draw(unit, seed, number))
    except draw.Undrawable as error:
        return Verdict(BAD_ARGUMENTS, text=str(error))
    text = describe(case)
    verdict = (_judge_gradient if case.kind == draw.GRADIENT else _judge_results)(
        case, unit, device, lambda phase: report(phase, text))
    verdict.case, verdict.number = text, str(number)
    return verdict


def _judge_results(case, unit, device, report):
    report("CPU")
    on_cpu = plan.has_cpu_kernel(case.op, _all_types(case))
    cpu = run.run(case, run.CPU) if on_cpu else run.Outcome(error="none")
    references = References(case, cpu)
    if not on_cpu:
        cpu = next(references.arrays())
        if cpu.error:
            return Verdict(NO_REFERENCE)
    report("the device")
    got = run.run(case, device, unit.host)
    if cpu.error:
        return _judge_error(case, cpu, got)
    if got.error:
        reason = tolerances.explanation(case.op, got.message)
        if reason:
            return Verdict(EXPLAINED, text=reason, valid=True)
        return Verdict(MISMATCH, "error", f"got {got.error}: {_short(got.message)}; want "
                       "a result", valid=True)
    if got.changed:
        return Verdict(MISMATCH, "input", f"the kernel overwrites {got.changed}",
                       valid=True)
    for i, array in enumerate(got.arrays):
        if i >= tolerances.PUBLIC_OUTPUTS.get(case.op, 99):
            continue
        if case.op in tolerances.MOMENTS:
            found = _moments(array, cpu.arrays[i])
        else:
            found = compare(case, array, references, i)
        if found:
            kind, text = found
            reason = tolerances.wrong_on_the_cpu(case.op, array.dtype.name)
            if reason:
                return Verdict(EXPLAINED, text=reason, valid=True)
            return Verdict(MISMATCH, kind, f"output {i}: {text}", valid=True)
    return Verdict(OK, valid=True)


def _judge_error(case, cpu, got):
    if got.error == cpu.error:
        return Verdict(OK)
    if cpu.error == "UnimplementedError":
        return Verdict(NO_REFERENCE)
    reason = tolerances.explanation(case.op, got.message if got.error else cpu.message)
    if reason:
        return Verdict(EXPLAINED, text=reason)
    return Verdict(MISMATCH, "error", f"got {got.error or 'a result'}"
                   f"{got.error and ': ' + _short(got.message)}; want {cpu.error}: "
                   f"{_short(cpu.message)}")


def _short(message):
    """Returns an error's message without TensorFlow's name of the node."""
    return re.sub(r"\{\{.*?\}\} | \[Op:.*", "", message)[:300]


def _judge_gradient(case, unit, device, report):
    types = _all_types(case)
    if not (unit.on_cpu and _differentiable(case)):
        return Verdict(OK)
    report("CPU")
    wide = plan.wider(case.op, types)
    try:
        want = run.jacobians(widen(case, wide) if wide else case, run.CPU)
    except Exception:  # pylint: disable=broad-except
        return Verdict(NO_REFERENCE)
    report("the device")
    try:
        got = run.jacobians(case, device)
    except run.tf.errors.NotFoundError:
        return Verdict(OK)  # the gradient has ops without a kernel
    except Exception as error:  # pylint: disable=broad-except
        return Verdict(MISMATCH, "gradient", f"{type(error).__name__}: {error}"[:300])
    for i, (x, y) in enumerate(zip(got, want)):
        limit = 2e-3 * max(1, np.nan_to_num(np.abs(y)).max(initial=0))
        if x.shape != y.shape or not np.allclose(
                x, y, rtol=0, atol=limit, equal_nan=True):
            return Verdict(MISMATCH, "gradient", f"by floating-point input {i}: got "
                           f"{x.ravel()[:4]}, want {y.ravel()[:4]}")
    return Verdict(OK)


def _differentiable(case):
    kinds = {dtypes.as_dtype(value.dtype).name for value in case.args.values()
             if isinstance(value, np.ndarray)}
    return (not kinds & {"half", "float16", "bfloat16"} and
            bool(kinds & {"float32", "float64"}) and
            hasattr(run.tf.raw_ops, case.op) and run.has_gradient(case.op))


def describe(case):
    """Returns the arguments of a case as text."""
    def shown(value):
        if isinstance(value, list):
            return "[" + ", ".join(shown(each) for each in value) + "]"
        if isinstance(value, (draw.Variable, draw.TensorList)):
            return f"{type(value).__name__}({shown(value.value)})"
        if value.dtype.kind in "iub" and value.size <= 8:
            return f"{value.dtype} {value.tolist()}"
        if value.size <= 2:
            return f"{value.dtype.name}{list(map(str, value.ravel()))}{list(value.shape)}"
        return f"{value.dtype.name}{list(value.shape)}"
    defaults = {attr.name: attr.default_value for attr in case.definition.attr}
    plain = [f"{name}={value!r}" for name, value in case.attrs.items()
             if name in defaults and name not in case.types]
    return " ".join([f"{name}={shown(value)}" for name, value in case.args.items()] +
                    plain)
