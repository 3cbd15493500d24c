# SPDX-License-Identifier: Apache-2.0
"""Writes every generated file; with --check, only compares.

Needs nothing but Python 3.10 or newer.
"""

import argparse
import difflib
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

from description import read_description  # noqa: E402
import emit_docs  # noqa: E402
from emit_abi import AbiEmitter  # noqa: E402
from emit_filled_fields import filled_fields  # noqa: E402
from emit_errors import errors  # noqa: E402
from emit_gdb import gdb_script  # noqa: E402
from emit_kernel_api import kernel_api  # noqa: E402
from emit_opcodes import opcodes  # noqa: E402
from emit_ops import OpsEmitter  # noqa: E402
from emit_version import version  # noqa: E402
from model import Model  # noqa: E402


def read_parameters(path):
    """Reads lines such as 'name: a, b'; returns {name: ['a', 'b']}."""
    out = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, names = line.partition(":")
            out[name] = [n.strip() for n in names.split(",") if n.strip()]
    return out


def generate():
    """Returns {path relative to the project: text} of every generated file."""
    model = Model(HERE / "abi_history.json")
    device = read_description(HERE / "device_api.ini", model)
    graph = read_description(HERE / "graph_api.ini", model)
    parameters = read_parameters(HERE / "parameters.txt")
    described = device.merged_with(graph)
    files = AbiEmitter(model, described, parameters).files()
    files["include/tfplug/base/version.h"] = version(ROOT / "meson.build")
    files["include/tfplug/base/internal/gdb_script.h"] = gdb_script()
    files["tests/abi/filled_fields.h"] = filled_fields(model, described)
    files |= OpsEmitter(HERE / "op_registry.json").files()
    files["docs/reference/device_abi.md"] = emit_docs.field_tables(
        "device_abi.md.in", model, device)
    files["docs/reference/graph_abi.md"] = emit_docs.field_tables(
        "graph_abi.md.in", model, graph)
    files["docs/reference/capi.md"] = emit_docs.capi(model)
    files["docs/reference/kernel_api.md"] = kernel_api(model)
    files["docs/reference/errors.md"] = errors(ROOT / "include")
    files["docs/reference/opcodes.md"] = opcodes(
        ROOT / "include/tfplug/ir/opcodes.def")
    return files


def check(files):
    """Prints how the committed files differ; returns how many do."""
    stale = 0
    for name, text in files.items():
        path = ROOT / name
        have = path.read_text(encoding="utf-8") if path.exists() else ""
        if have != text:
            stale += 1
            sys.stdout.writelines(difflib.unified_diff(
                have.splitlines(True), text.splitlines(True),
                f"{name} (committed)", f"{name} (generated)", n=1))
    folders = [ROOT / "include/tfplug/abi", ROOT / "include/tfplug/ops"]
    for path in sorted(p for folder in folders for p in folder.glob("*")):
        name = path.relative_to(ROOT).as_posix()
        if name not in files:
            stale += 1
            print(f"{name}: nothing generates this file; delete it")
    return stale


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true",
                        help="compare with the committed files, write nothing")
    args = parser.parse_args()
    files = generate()
    if args.check:
        stale = check(files)
        if stale:
            print(f"\n{stale} generated file(s) are stale. To update them: "
                  "python3 codegen/generate.py")
            return 1
        print(f"{len(files)} generated files are up to date.")
        return 0
    for name, text in files.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
