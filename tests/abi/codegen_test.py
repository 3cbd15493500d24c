# SPDX-License-Identifier: Apache-2.0
"""Tests that the committed files are what codegen/ generates, and that generate.py
--check finds differences.

Most tests change one thing in a copy of the project.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
REMEDY = "python3 codegen/generate.py"


def generate(root, *args):
    run = subprocess.run([sys.executable, str(root / "codegen/generate.py"),
                          *args], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    return run.returncode, run.stdout


class CodegenTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        shutil.copytree(ROOT / "codegen", self.root / "codegen")
        shutil.copytree(ROOT / "include", self.root / "include")
        shutil.copy(ROOT / "meson.build", self.root)
        shutil.copytree(ROOT / "docs/reference", self.root / "docs/reference")

    def tearDown(self):
        self.folder.cleanup()

    def edit(self, name, old, new):
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        self.assertTrue(old in text, f"{name} has no {old}")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def test_committed_files_are_up_to_date(self):
        code, output = generate(ROOT, "--check")
        self.assertEqual(code, 0, output)

    def test_edited_header_is_found_and_fixed(self):
        self.edit("include/tfplug/abi/sp_device.h", "int32_t ordinal",
                  "int64_t ordinal")
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("-  int64_t ordinal", output)
        self.assertIn(REMEDY, output)
        self.assertEqual(generate(self.root)[0], 0)
        self.assertEqual(generate(self.root, "--check")[0], 0)

    def test_changed_history_is_found(self):
        self.edit("codegen/abi_history.json", '"TF_TriState_On":2',
                  '"TF_TriState_On":4')
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("TF_TriState_On = 4", output)

    def test_edited_op_is_found_and_fixed(self):
        self.edit("include/tfplug/ops/math.h", "{ adj_x, adj_y,",
                  "{ adj_y, adj_x,")
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("-  enum Bools : int { adj_y, adj_x, grad_x, grad_y };",
                      output)
        self.assertEqual(generate(self.root)[0], 0)
        self.assertEqual(generate(self.root, "--check")[0], 0)

    def test_changed_registry_is_found(self):
        self.edit("codegen/op_registry.json", '"reduction_indices: Tidx"',
                  '"axis: Tidx"')
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("+  enum Inputs : int { input, axis };", output)

    def test_name_without_a_rule_is_refused(self):
        self.edit("codegen/op_registry.json", '"name":"Relu"',
                  '"name":"Space>Relu"')
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("no rule for an op of the name Space>Relu", output)

    def test_op_of_an_unknown_group_is_refused(self):
        self.edit("codegen/op_registry.json",
                  '"name":"Relu","module":"nn_ops"',
                  '"name":"Relu","module":"new_ops"')
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("no group for the op Relu of new_ops", output)

    def test_missing_and_left_over_headers_are_found(self):
        header = self.root / "include/tfplug/abi/sp_timer_fns.h"
        header.rename(header.with_name("sp_clock_fns.h"))
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("sp_timer_fns.h (generated)", output)
        self.assertIn("sp_clock_fns.h: nothing generates this file", output)
        op = self.root / "include/tfplug/ops/audio.h"
        op.rename(op.with_name("relu.h"))
        output = generate(self.root, "--check")[1]
        self.assertIn("ops/audio.h (generated)", output)
        self.assertIn("relu.h: nothing generates this file", output)

    def test_field_without_a_description_is_named(self):
        self.edit("codegen/device_api.ini", "[SP_StreamExecutor.mem_zero]",
                  "[SP_StreamExecutor.mem_one]")
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("[SP_StreamExecutor.mem_zero]: missing", output)
        self.assertIn("[SP_StreamExecutor.mem_one]: the ABI has nothing of that name",
                      output)

    def test_description_without_a_thread_is_named(self):
        self.edit("codegen/device_api.ini", "thread = polling; must not block",
                  "thread =")
        code, output = generate(self.root, "--check")
        self.assertEqual(code, 1)
        self.assertIn("[SP_StreamExecutor.get_event_status]: no `thread`",
                      output)

    def test_every_field_of_the_device_side_has_a_row(self):
        page = (ROOT / "docs/reference/device_abi.md").read_text(encoding="utf-8")
        for header in (ROOT / "include/tfplug/abi").glob("s[ep]_*.h"):
            text = header.read_text(encoding="utf-8")
            name = re.search(r"^struct (\w+) {\n(.*?)^};", text, re.M | re.S)
            body = re.sub(r"//[^\n]*", "", name.group(2))
            fields = re.findall(r"\(\*(\w+)\)\(|(\w+);", body)
            section = page.split(f"\n## {name.group(1)}\n")[1].split("\n## ")[0]
            for field in (a or b for a, b in fields):
                row = re.search(rf"^\| `{field}` \|(.*)\|$", section, re.M)
                self.assertTrue(row, f"{name.group(1)}.{field}")
                cells = [c.strip() for c in row.group(1).split(" | ")]
                self.assertEqual(len(cells), 7)
                self.assertTrue(all(cells), row.group(0))


if __name__ == "__main__":
    unittest.main()
