# SPDX-License-Identifier: Apache-2.0
"""Generates tests/abi/filled_fields.h, the list of pointers that tfplug fills."""

import pathlib
import string

_TEMPLATE = pathlib.Path(__file__).parent / "templates/filled_fields.h.in"
_CONSTANTS = {"always": "kAlways", "if overridden": "kIfOverridden",
              "never": "kNever"}


def _rows(struct, description):
    rows = []
    for field in struct.newest.fields:
        name = f"{struct.name}.{field.name}"
        is_pointer = field.type.is_function or field.type.text.endswith("*")
        if is_pointer and description.get(name)["by"] == "plug-in":
            expected = _CONSTANTS[description.filled(name)]
            row = (f'      {{"{field.name}", s.{field.name} != nullptr, '
                   f"Filled::{expected}}},")
            if len(row) > 80:
                row = row.replace(", Filled", ",\n       Filled")
            rows.append((field.name, row))
    return rows


def _parameter(struct):
    parameter = f"const capi::{struct}& s"
    line = f"inline std::vector<FilledField> FieldsOf({parameter}) {{"
    return parameter if len(line) <= 80 else f"\n    {parameter}"


def filled_fields(model, description):
    functions, includes = [], []
    for name in description.structs():
        struct = model.structs[name]
        rows = _rows(struct, description)
        # Skip structs that TensorFlow fills: `ext` is their only pointer.
        if all(field == "ext" for field, _ in rows):
            continue
        includes.append(f'#include "tfplug/abi/{struct.header}.h"')
        functions.append(
            "inline std::vector<FilledField> FieldsOf("
            f"{_parameter(name)}) {{\n  return {{\n"
            + "\n".join(row for _, row in rows) + "\n  };\n}")
    text = _TEMPLATE.read_text(encoding="utf-8")
    return string.Template(text).substitute(
        includes="\n".join(sorted(includes)), functions="\n\n".join(functions))
