# SPDX-License-Identifier: Apache-2.0
"""Checks that a wrong pattern does not compile, and says why.

  wrong_pattern_test.py COMPILE_COMMANDS COMPILER [FLAG]...

The files are compile_fail/*.cc, written like those of
tests/compile_fail_test.py.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))

import compile_fail_test  # noqa: E402
import headers_test  # noqa: E402


def main():
    include = HERE.parents[1] / "include"
    command = sys.argv[2:] + headers_test.include_flags(sys.argv[1], include)
    cases = sorted((HERE / "compile_fail").glob("*.cc"))
    failed = 0
    for case in cases:
        why = compile_fail_test.check(command, case)
        if why is not None:
            failed += 1
            print(f"---- {case.name} {why}")
    print(f"{len(cases) - failed} of {len(cases)} as they should be")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
