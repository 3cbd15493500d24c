# SPDX-License-Identifier: Apache-2.0
"""Compares a plug-in's kernels with the definitions of TensorFlow's ops."""

import json
import pathlib

_HERE = pathlib.Path(__file__).resolve().parent
_REGISTRY = next(path for path in (_HERE / "op_registry.json",
                                   _HERE / "../../codegen/op_registry.json")
                 if path.exists())


def _names(parts):
    return {part.split(":")[0] for part in parts}


def check(findings):
    """Replaces the data among (level, text) pairs, a line for each kernel."""
    registry = json.loads(_REGISTRY.read_text())
    ops = {op["name"]: op for op in registry["ops"]}
    release = registry["tensorflow"]
    unknown, seen = set(), set()
    for level, text in findings:
        if level != "data":
            yield level, text
            continue
        name, _, host_memory, attrs = text.split(";")
        if name not in ops:
            unknown.add(name)
            continue
        arguments = _names(ops[name].get("inputs", [])) | _names(
            ops[name].get("outputs", []))
        known = {attr["name"] for attr in ops[name].get("attrs", [])}
        problems = [("HostMemory of", argument, "argument")
                    for argument in host_memory.split() if argument not in arguments]
        problems += [("a constraint on", attr, "attribute")
                     for attr in attrs.split() if attr not in known]
        for what, which, kind in problems:
            if (name, which) not in seen:
                yield "error", (f"a kernel of {name} has {what} '{which}', which is no "
                                f"{kind} of the op in TensorFlow {release}: every node "
                                "of the op on this device fails")
            seen.add((name, which))
    if unknown:
        yield "note", (f"kernels of ops that TensorFlow {release} does not define: " +
                       ", ".join(sorted(unknown)))
