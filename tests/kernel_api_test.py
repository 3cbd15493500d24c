# SPDX-License-Identifier: Apache-2.0
"""Compares docs/reference/kernel_api.md with the headers that it names.

  kernel_api_test.py PROJECT

Checks that the table has every function of the kernel C API, that the headers
of a section contain every C++ name in it, and that some header calls every C
function except those marked as not needed or not used.
"""

import json
import pathlib
import re
import sys

HEADERS = re.compile(r"tensorflow/c/(kernels|kernels_experimental|ops|"
                     r"tf_(buffer|datatype|status|tensor|tstring))\.h$")


def sections(page):
    """Yields (headers, [(C function, text)]) of each section."""
    for part in page.split("\n## ")[1:]:
        headers = re.findall(r"`([\w/]+\.h)`", part.split("|", 1)[0])
        rows = re.findall(r"^\| `(\w+)` \| (.*) \| [^|]* \|$", part, re.M)
        yield headers, rows


def main():
    root = pathlib.Path(sys.argv[1])
    history = json.loads((root / "codegen/abi_history.json").read_text())
    functions = {n for n, r in history["functions"].items()
                 if HEADERS.match(r[-1]["header"]) and n != "TF_InitKernel"}
    include = root / "include/tfplug"
    everything = "".join(
        p.read_text() for p in sorted(include.rglob("*.h"))
        if p.relative_to(include).parts[0] not in ("abi", "testing", "ops"))
    # A macro in attr_reader.h appends "List" to the names of these functions.
    called = set(re.findall(r"\bTF_\w+", everything))
    called |= {n + "List" for n in called if "GetAttr" in n}

    wrong, seen = [], set()
    for headers, rows in sections((root / "docs/reference/kernel_api.md").read_text()):
        code_of_section = "".join((include / h).read_text() for h in headers)
        for function, text in rows:
            seen.add(function)
            not_called = text.startswith(("not needed", "not used"))
            if not not_called and function not in called:
                wrong.append(f"{function}: no header calls it")
            for code in re.findall(r"`([^`]+)`", text):
                for name in re.findall(r"[A-Za-z_]\w+", re.sub(r'"\w+"', "", code)):
                    if not re.search(rf"\b{name}\b",
                                     code_of_section + "std vector string"):
                        wrong.append(f"{function}: '{name}' is not in "
                                     + ", ".join(headers))
    wrong += [f"{n}: not in the table" for n in sorted(functions - seen)]
    wrong += [f"{n}: no such function" for n in sorted(seen - functions)]
    print(f"{len(seen)} functions in the table, {len(wrong)} mistakes")
    print("\n".join(wrong))
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
