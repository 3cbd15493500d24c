# SPDX-License-Identifier: Apache-2.0
"""Compares a plug-in's kernels with the definitions of TensorFlow's ops."""

import functools
import json
import pathlib
import re

_HERE = pathlib.Path(__file__).resolve().parent
_REGISTRY = next(path for path in (_HERE / "op_registry.json",
                                   _HERE / "../../codegen/op_registry.json")
                 if path.exists())


_FLOATS = {19: "half", 14: "bfloat16", 1: "float", 2: "double"}
# (ops that have kernels, ops that need some, the rewriter that makes it so, why):
# for each type of floats in which one of the first has a kernel, all of the second.
_SETS = (
    (("AddV2", "Add"), ("AddN",), "arithmetic_optimization",
     "grappler turns sums of three terms into AddN"),
    (("AddN",), ("Assign", "AssignAdd"), "memory_optimization",
     "grappler splits AddN into these on a device of any size once a graph needs about "
     "200 MB"),
    (("AddV2",), ("Add",), "", "collective sums (MirroredStrategy) add with Add"),
)
# Ops without a kernel of which TensorFlow uses the one for any device, which writes
# into the variable on the host.
_UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")
_TRAINS = re.compile("ResourceApply|.*Grad$|.*Backprop")
# Ops whose gradient has an op of its own.
_GRADIENTS = {
    "BiasAdd": ("BiasAddGrad",), "Relu": ("ReluGrad",), "Tanh": ("TanhGrad",),
    "Sigmoid": ("SigmoidGrad",), "MaxPool": ("MaxPoolGrad",),
    "AvgPool": ("AvgPoolGrad",), "FusedBatchNormV3": ("FusedBatchNormGradV3",),
    "Conv2D": ("Conv2DBackpropInput", "Conv2DBackpropFilter")}


def _names(parts):
    return {part.split(":")[0] for part in parts}


def _attributes(text):
    """Returns the names, with the numbers of the types, of "T=1,2 U"."""
    pairs = [word.partition("=") for word in text.split()]
    return {name: {int(number) for number in types.split(",") if number}
            for name, _, types in pairs}


@functools.lru_cache
def _registry():
    return json.loads(_REGISTRY.read_text())


def release():
    """Returns the release whose ops are known without TensorFlow."""
    return _registry()["tensorflow"]


def check_ops(findings):
    """Replaces the data among (level, text) pairs, a line for each kernel."""
    ops = {op["name"]: op for op in _registry()["ops"]}
    unknown, seen = set(), set()
    for level, text in findings:
        if level != "data":
            yield level, text
            continue
        name, _, host_memory, attrs, is_defined = text.split(";")
        if not is_defined:
            unknown.add(name)
        if name not in ops:
            continue
        arguments = _names(ops[name].get("inputs", [])) | _names(
            ops[name].get("outputs", []))
        known = {attr["name"] for attr in ops[name].get("attrs", [])}
        problems = [("HostMemory of", argument, "argument")
                    for argument in host_memory.split() if argument not in arguments]
        problems += [("a constraint on", attr, "attribute")
                     for attr in _attributes(attrs) if attr not in known]
        for what, which, kind in problems:
            if (name, which) not in seen:
                yield "error", (f"a kernel of {name} has {what} '{which}', which is no "
                                f"{kind} of the op in TensorFlow {release()}: every node "
                                "of the op on this device fails")
            seen.add((name, which))
    # Of these, tfplug logs a line, which is one of the findings.
    unknown -= {name for _, text in findings for name in re.findall('no op "(\\w+)"', text)}
    for level, names, why in (
            ("note", unknown & set(ops), "of another release"),
            ("warning", unknown - set(ops), "the names may be misspelt")):
        if names:
            yield level, ("no op uses the kernels of ops that neither this TensorFlow nor "
                          f"the plug-in defines ({why}): {', '.join(sorted(names))}")


def _types_by_op(lines, device_type):
    """Returns the float types of each op's kernels."""
    found = {}
    for line in lines:
        name, device, _, attrs, _ = line.split(";")
        if device != device_type:
            continue
        attributes = _attributes(attrs)
        # Other attributes are types of indices.
        main = [attributes[attr] for attr in ("T", "dtype") if attr in attributes]
        found.setdefault(name, set()).update(
            set(_FLOATS) & main[0] if main and main[0] else _FLOATS)
    return found


def check_sets(findings):
    """Replaces the data among (level, text) pairs by what is missing."""
    lines = [text for level, text in findings if level == "data"]
    yield from ((level, text) for level, text in findings if level != "data")
    off = {word for line in lines if line.startswith("off;") for word in line[4:].split()}
    lines = [line for line in lines if not line.startswith("off;")]
    for device_type in sorted({line.split(";")[1] for line in lines} - {"CPU", "DEFAULT"}):
        types = _types_by_op(lines, device_type)
        for present, needed, rewriter, why in _SETS:
            if rewriter in off:
                continue
            found = {}  # names of types by what is missing
            for number, name in _FLOATS.items():
                lacks = tuple(op for op in needed if number not in types.get(op, ()))
                has = next((op for op in present if number in types.get(op, ())), "")
                if has and lacks:
                    found.setdefault((has, lacks), []).append(name)
            for (has, lacks), names in found.items():
                yield "warning", (
                    f"{device_type} has {has} of {', '.join(names)}, but not "
                    f"{', '.join(lacks)}: {why}" +
                    (f", unless a plug-in turns {rewriter} off" if rewriter else ""))
        lacks = [op for op in _UPDATES if op not in types]
        trains = sorted(op for op in types if _TRAINS.match(op))
        if lacks and trains:
            yield "warning", (
                f"{device_type} has kernels for training, such as {trains[0]}, but not "
                f"{', '.join(lacks)}: TensorFlow's own write into the device's memory on "
                "the host")
        backward = {op: needed for op, needed in _GRADIENTS.items() if op in types and
                    not all(each in types for each in needed)}
        if backward:
            yield "note", (f"{device_type} has no kernel for the gradient of " +
                           ", ".join(sorted(backward)))
