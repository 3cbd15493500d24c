# SPDX-License-Identifier: Apache-2.0
"""Checks that symbols_test.py detects each kind of problem.

  symbols_checker_test.py PROJECT_ROOT        (environment: CXX)
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
CXX = os.environ.get("CXX", "c++")
ENTRY = 'extern "C" void SE_InitPlugin() {}\n'


def check(source, *flags):
    """Returns the exit status and output of symbols_test.py for a library."""
    with tempfile.TemporaryDirectory() as directory:
        library = pathlib.Path(directory, "plugin.so")
        command = [CXX, "-shared", "-fPIC", "-x", "c++", "-", "-o", library]
        subprocess.run(command + list(flags), input=source, text=True, check=True)
        result = subprocess.run(
            [sys.executable, ROOT / "tests/symbols_test.py", library],
            stdout=subprocess.PIPE,
            text=True,
        )
        return result.returncode, result.stdout


class SymbolsTest(unittest.TestCase):
    def refuses(self, message, source, *flags):
        status, out = check(source, *flags)
        self.assertEqual(status, 1, out)
        self.assertIn(message, out)

    def test_a_good_plugin_passes(self):
        self.assertEqual(check(ENTRY), (0, ""))

    def test_other_exports(self):
        self.refuses("exports Helper", ENTRY + 'extern "C" void Helper() {}')

    def test_no_entry_point(self):
        self.refuses("no entry point", "static int i;")

    def test_undefined_c_api(self):
        self.refuses(
            "leaves TF_NewStatus undefined",
            'extern "C" void* TF_NewStatus();'
            'extern "C" void SE_InitPlugin() { TF_NewStatus(); }',
        )

    def test_undefined_abseil(self):
        self.refuses(
            "undefined",
            "namespace absl { void Log(); }"
            'extern "C" void SE_InitPlugin() { absl::Log(); }',
        )

    def test_foreign_library(self):
        self.refuses(
            "needs libresolv", ENTRY, "-Wl,--no-as-needed", "-lresolv"
        )

    def test_library_path(self):
        self.refuses("library search path", ENTRY, "-Wl,-rpath,/somewhere")

    def test_version_script_hides_the_rest(self):
        script = ROOT / "include/tfplug/plugin.map"
        status, out = check(
            ENTRY + 'extern "C" void Helper() {}',
            f"-Wl,--version-script={script}",
        )
        self.assertEqual((status, out), (0, ""))


if __name__ == "__main__":
    unittest.main()
