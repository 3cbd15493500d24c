# SPDX-License-Identifier: Apache-2.0
"""The Python code in README and docs/ runs; what is marked as `py`, a fragment, is valid
Python."""

import re

import harness

BLOCK = re.compile(r"^```(python|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def execute(blocks):
    """Returns what each block defines, with the results of functions without
    parameters."""
    import inspect
    import tensorflow as tf
    found = {}
    for place, text in blocks.items():
        names = {"tf": tf}
        exec(compile(text, place, "exec"), names)
        for name, value in names.items():
            if inspect.isfunction(value) and not inspect.signature(value).parameters:
                found[name] = type(value()).__name__
            elif isinstance(value, tf.types.experimental.PolymorphicFunction):
                found[name] = "tf.function"
    return found


def test_python_code():
    blocks = {}
    for page in [harness.ROOT / "README.md", *harness.ROOT.glob("docs/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            place = f"{page}:{text.count(chr(10), 0, block.start())}"
            if block[1] == "py":
                compile(block[2], place, "exec")
            else:
                blocks[place] = block[2]
    result = harness.run(execute, blocks, plugin=False)
    assert result.ok, result
    assert result.value == {"model": "Sequential", "my_pad": "tf.function"}
