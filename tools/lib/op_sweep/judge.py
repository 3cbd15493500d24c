# SPDX-License-Identifier: Apache-2.0
"""Compares a device's outcome of a case with TensorFlow's CPU."""

import dataclasses
import re

import numpy as np
from tensorflow.python.framework import dtypes

from op_sweep import compare, draw, plan, rows, run, tolerances

OK, EXPLAINED, NO_REFERENCE, NOT_RUN, BAD_ARGUMENTS, MISMATCH = (
    "ok", "explained", "no reference", "not run", "bad arguments", "mismatch")
# Statuses of cases that the device did not run.
IDLE = (NOT_RUN, BAD_ARGUMENTS)


@dataclasses.dataclass
class Verdict:
    """What one case showed."""

    status: str
    kind: str = ""  # of a mismatch: value, shape, type, error, input, gradient
    text: str = ""
    case: str = ""  # the arguments
    number: str = ""
    valid: bool = False  # whether TensorFlow's CPU, or the device alone, accepted the arguments


def judge(unit, seed, number, device, report):
    """Runs a case on both devices. Calls report(phase, arguments) before each run, so
    that the case is known if the process does not survive it."""
    case = rows.draw_arguments(draw.Draw(unit, seed, number))
    text = describe(case)
    verdict = (_judge_gradient if case.kind == draw.GRADIENT else _judge_results)(
        case, unit, device, lambda phase: report(phase, text))
    verdict.case, verdict.number = text, str(number)
    return verdict


def _judge_results(case, unit, device, report):
    report("CPU")
    on_cpu = plan.has_cpu_kernel(case.op, compare.all_types(case))
    cpu = run.run(case, run.CPU) if on_cpu else run.Outcome(error="none")
    references = compare.References(case, cpu)
    if not on_cpu:
        cpu = next(references.arrays())
    report("the device")
    got = run.run(case, device, unit.host)
    if got.error == run.NO_INPUTS:
        return Verdict(NOT_RUN)
    if cpu.error and not on_cpu:
        return _judge_alone(case, got)
    if cpu.error:
        return _judge_error(case, cpu, got)
    if got.error:
        reason = tolerances.explanation(case.op, got.message)
        if reason:
            return Verdict(EXPLAINED, text=reason, valid=True)
        return Verdict(MISMATCH, "error", f"got {got.error}: {_short(got.message)}; want "
                       "a result", valid=True)
    if got.changed and case.op not in tolerances.CHANGE_X:
        return Verdict(MISMATCH, "input", f"the kernel overwrites {got.changed}",
                       valid=True)
    for i, array in enumerate(got.arrays):
        if i >= tolerances.PUBLIC_OUTPUTS.get(case.op, 99):
            continue
        if case.op in tolerances.MOMENTS:
            found = compare.moments(array, cpu.arrays[i])
        else:
            found = compare.compare(case, array, references, i)
        if found:
            kind, text = found
            is_empty = any(getattr(x, "size", 1) == 0 for x in case.args.values())
            reason = text if kind == compare.EXPLAINED else tolerances.wrong_on_the_cpu(
                case.op, array.dtype.name, is_empty)
            if reason:
                return Verdict(EXPLAINED, text=reason, valid=True)
            return Verdict(MISMATCH, kind, f"output {i}: {text}", valid=True)
    return Verdict(OK, valid=True)


def _judge_error(case, cpu, got):
    if got.error == cpu.error:
        return Verdict(OK)
    if cpu.error == "UnimplementedError" or "Op does not support" in cpu.message:
        return _judge_alone(case, got)
    reason = tolerances.explanation(case.op, got.message if got.error else cpu.message)
    if reason:
        return Verdict(EXPLAINED, text=reason, valid=True)
    return Verdict(MISMATCH, "error", f"got {got.error or 'a result'}"
                   f"{got.error and ': ' + _short(got.message)}; want {cpu.error}: "
                   f"{_short(cpu.message)}")


def _judge_alone(case, got):
    """Judges an outcome without that of the CPU, by the op's shape function."""
    shapes = run.inferred_shapes(case)
    if got.error:
        reason = tolerances.explanation(case.op, got.message)
        if reason:
            return Verdict(EXPLAINED, text=reason, valid=True)
        # Other errors may be about the arguments.
        if got.error == "InternalError" and shapes is not None:
            return Verdict(MISMATCH, "error", f"got {got.error}: {_short(got.message)}; want "
                           "a result, or an error about the arguments", valid=True)
        return Verdict(NO_REFERENCE)
    if got.changed and case.op not in tolerances.CHANGE_X:
        return Verdict(MISMATCH, "input", f"the kernel overwrites {got.changed}", valid=True)
    for i, (array, shape) in enumerate(zip(got.arrays, shapes or ())):
        if shape is not None and not shape.is_compatible_with(array.shape):
            reason = tolerances.wrong_shape_function(case.op)
            if reason:
                return Verdict(EXPLAINED, text=reason, valid=True)
            return Verdict(MISMATCH, "shape", f"output {i}: got the shape {list(array.shape)}; "
                           f"want {shape.as_list()}, of the op's shape function", valid=True)
    return Verdict(NO_REFERENCE, valid=True)


def _short(message):
    """Returns an error's message without TensorFlow's name of the node."""
    return re.sub(r"\{\{.*?\}\} | \[Op:.*", "", message)[:300]


def _judge_gradient(case, unit, device, report):
    types = compare.all_types(case)
    if not unit.on_cpu:
        return Verdict(NOT_RUN)
    if not _differentiable(case):
        return Verdict(OK)
    report("CPU")
    wide = plan.wider(case.op, types)
    try:
        want = run.jacobians(compare.widen(case, wide) if wide else case, run.CPU)
    except Exception:  # pylint: disable=broad-except
        return Verdict(NOT_RUN)
    report("the device")
    try:
        got = run.jacobians(case, device)
    except run.tf.errors.NotFoundError:
        return Verdict(OK)  # the gradient has ops without a kernel
    except Exception as error:  # pylint: disable=broad-except
        if "Supported device types [CPU]" in str(error):
            return Verdict(OK)
        reason = tolerances.explanation(case.op, str(error))
        if reason:
            return Verdict(EXPLAINED, text=reason, valid=True)
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
