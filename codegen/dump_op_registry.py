# SPDX-License-Identifier: Apache-2.0
"""Writes codegen/op_registry.json: every op of the installed TensorFlow except
those that exist only for TensorFlow's own tests.

Run it in a virtual environment with the newest tensorflow-cpu, then run
codegen/generate.py. With --check, it only compares; the exit status is 1 if the ops
differ, and 77 if the installed release is not the recorded one.
"""

import argparse
import inspect
import json
import os
import pathlib
import re
import sys

PATH = pathlib.Path(__file__).resolve().parent / "op_registry.json"
sys.path.insert(0, str(PATH.parents[1] / "tools/lib"))
import installed_plugins
SKIPPED = 77


def installed_ops():
    """Returns (release, OpDefs) of the TensorFlow in this environment."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # A plug-in's ops are not TensorFlow's.
    installed_plugins.hide()
    os.environ.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    import tensorflow  # takes seconds; --help should not
    from tensorflow.python.framework import test_ops
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session
    ops = op_def_pb2.OpList()
    ops.ParseFromString(
        pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    tested = set(re.findall(r'_apply_op_helper\(\s*"([^"]+)"',
                            inspect.getsource(test_ops)))
    if not tested:
        raise SystemExit("test_ops.py names no op; update the pattern here")
    return tensorflow.__version__, [o for o in ops.op if o.name not in tested]


def modules():
    """Returns {op: module}: tensorflow/**/gen_MODULE.py has the op's Python wrapper."""
    import tensorflow
    out = {}
    root = pathlib.Path(tensorflow.__file__).parent
    for path in sorted(root.rglob("gen_*.py")):
        for op in re.findall(r'_apply_op_helper\(\s*"([^"]+)"',
                             path.read_text(encoding="utf-8")):
            module = path.stem.removeprefix("gen_")
            if out.setdefault(op, module) != module:
                raise SystemExit(f"{op} is in {out[op]} and in {module}")
    return out


def type_name(number):
    from tensorflow.core.framework import types_pb2
    return types_pb2.DataType.Name(number).removeprefix("DT_").lower()


def type_names(numbers):
    """Returns 'float, double', sorted by number, so that equal sets have equal texts."""
    return ", ".join(type_name(n) for n in sorted(set(numbers)))


def argument(arg):
    """Returns an input or output in the syntax of REGISTER_OP: 'xs: N * T'."""
    kind = arg.type_list_attr or arg.type_attr or type_name(arg.type)
    if arg.number_attr:
        kind = f"{arg.number_attr} * {kind}"
    return f"{arg.name}: Ref({kind})" if arg.is_ref else f"{arg.name}: {kind}"


def number(value):
    """Returns the shortest text of a 32-bit float, as a float."""
    import numpy
    return float(str(numpy.float32(value)))


def one_value(value):
    """Returns the JSON value of an AttrValue that is not a list."""
    kind = value.WhichOneof("value")
    plain = {"s": lambda: value.s.decode("latin-1"), "i": lambda: value.i,
             "f": lambda: number(value.f), "b": lambda: value.b,
             "type": lambda: type_name(value.type),
             "shape": lambda: shape(value.shape),
             "func": lambda: value.func.name}
    return plain[kind]() if kind in plain else f"a {kind}"


def shape(proto):
    if proto.unknown_rank:
        return "unknown"
    return [dim.size for dim in proto.dim]


def default(value):
    if value.WhichOneof("value") != "list":
        return one_value(value)
    items = value.list
    return ([s.decode("latin-1") for s in items.s] + list(items.i)
            + [number(f) for f in items.f] + list(items.b)
            + [type_name(t) for t in items.type]
            + [shape(s) for s in items.shape] + [f.name for f in items.func])


def attribute(attr):
    out = {"name": attr.name, "type": attr.type}
    if attr.HasField("allowed_values"):
        allowed = attr.allowed_values.list
        out["allowed"] = (type_names(allowed.type) if allowed.type else
                          [s.decode("latin-1") for s in allowed.s])
    if attr.HasField("default_value"):
        out["default"] = default(attr.default_value)
    if attr.has_minimum:
        out["minimum"] = attr.minimum
    return out


def record(release, ops):
    """Returns the text of op_registry.json: one line per op."""
    lines, module_of = [], modules()
    for op in sorted(ops, key=lambda op: op.name):
        entry = {"name": op.name}
        if op.name in module_of:
            entry["module"] = module_of[op.name]
        for key, values in (
                ("inputs", [argument(a) for a in op.input_arg]),
                ("outputs", [argument(a) for a in op.output_arg]),
                ("attrs", [attribute(a) for a in op.attr])):
            if values:
                entry[key] = values
        if op.HasField("deprecation"):
            entry["deprecated"] = True
        lines.append(json.dumps(entry, separators=(",", ":")))
    return (f'{{"tensorflow":"{release}","ops":[\n' + ",\n".join(lines)
            + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", type=pathlib.Path, nargs="?", const=PATH,
                        metavar="FILE", help="compare with FILE (default: the "
                        "committed file), write nothing")
    args = parser.parse_args()
    have = (json.loads(args.check.read_text(encoding="utf-8"))
            if args.check else {})
    release, ops = installed_ops()
    if args.check and release != have["tensorflow"]:
        print(f"skipped: TensorFlow {release} is installed, "
              f"{args.check.name} records {have['tensorflow']}")
        return SKIPPED
    text = record(release, ops)
    if not args.check:
        PATH.write_text(text, encoding="utf-8")
        print(f"wrote {len(ops)} ops of TensorFlow {release}")
        return 0
    committed = {op["name"]: op for op in have["ops"]}
    installed = {op["name"]: op for op in json.loads(text)["ops"]}
    names = sorted(n for n in committed.keys() | installed.keys()
                   if committed.get(n) != installed.get(n))
    for name in names:
        print(f"{name}: recorded {committed.get(name)}, "
              f"installed {installed.get(name)}")
    if names:
        print(f"\n{len(names)} ops differ. To update the record: "
              "python3 codegen/dump_op_registry.py, then "
              "python3 codegen/generate.py")
        return 1
    print(f"{len(installed)} ops are as recorded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
