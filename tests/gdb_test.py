# SPDX-License-Identifier: Apache-2.0
"""gdb loads the printers from a program's section, and prints values with them.

  gdb_test.py PROGRAM        tests/gdb/values.cc, compiled with -g
"""

import re
import subprocess
import sys

EXPECTED = {
    "ok": "OK",
    "failed": "INVALID_ARGUMENT: node 'a': no",
    "code": "NOT_FOUND",
    "small": "[2,3]",
    "scalar": "[]",
    "large": "[1,2,3,4,5,6,7,8]",
    "memory": "half[2,3] strides [3,1] at 0x0",
    "index": "int64[] strides [] index 0x5",
    "tensor": r"float[2] at 0x",
    "none": "no tensor",
    "expression": "v0 = float input(x0); v1 = float tanh(v0); v2 = float add(v1, v0); "
                  "y0 = half v2",
    "node": "y = Tanh",
    "removed": "z (removed)",
    "no_node": "no node",
}


def main():
    out = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", f"add-auto-load-safe-path {sys.argv[1]}", "-ex", "break Stop", "-ex", "run", "-ex", "up",
         "-ex", "info locals", sys.argv[1]],
        capture_output=True, text=True, check=True)
    printed = dict(re.findall(r"^(\w+) = (.*)$", out.stdout, re.M))
    wrong = {name: printed.get(name) for name, text in EXPECTED.items()
             if not (printed.get(name) or "").startswith(text)}
    print(f"{len(EXPECTED) - len(wrong)} of {len(EXPECTED)} values are printed well")
    if wrong:
        print(f"wrong: {wrong}\n{out.stderr}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
