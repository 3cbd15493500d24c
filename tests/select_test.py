# SPDX-License-Identifier: Apache-2.0
"""Checks which tests tools/test --changed runs after a change of each file."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools/lib/test"))
import main  # noqa: E402  (which finds the next)
import included  # noqa: E402

FILES = {
    "include/tfplug/umbrella.h": '#include "tfplug/leaf.h"\n',
    "include/tfplug/leaf.h": "",
    "include/tfplug/sub/other.h": "",
    "docs/page.md": '```cpp\n#include "tfplug/umbrella.h"\n```\n',
    "tests/a/fails.cc": '#include "tfplug/sub/other.h"\n',
    "tests/script.py": "",
    "tools/tool": "",
    "build/program": "",
    "build/plugin.so": "",
}
# The words of a command, and the files after whose change it runs. "/" begins a folder,
# "+" a file that it depends on without naming it.
TESTS = {
    "a program": (["build/program", "--source-file=*/tests/a_test.cc"], {"build/program"}),
    "a script with a plug-in": (["tests/script.py", "+build/plugin.so"], {
        "tests/script.py", "build/plugin.so", *filter(lambda f: f.startswith("include"), FILES)}),
    "a folder of tests": (["tests/script.py", "/tests/a"], {
        "tests/script.py", "tests/a/fails.cc", "include/tfplug/sub/other.h"}),
    "a folder of pages": (["tests/script.py", "/docs"], {
        "tests/script.py", "docs/page.md", "include/tfplug/umbrella.h",
        "include/tfplug/leaf.h"}),
    "a pattern": (["tests/script.py", "/include", "tfplug/*.h"], {
        "tests/script.py", "include/tfplug/umbrella.h", "include/tfplug/leaf.h"}),
    "a pattern of some": (["tests/script.py", "/include", "tfplug/sub/*.h"], {
        "tests/script.py", "include/tfplug/sub/other.h"}),
    "the project": (["tests/script.py", "/"], set(FILES) - {"build/program",
                                                            "build/plugin.so"}),
    "nothing but itself": (["tests/script.py"], set(FILES) - {"build/program",
                                                              "build/plugin.so"}),
}

PYTHON_FILES = {
    "tests/tensorflow/harness.py": "ROOT = 'docs'\n",
    "tests/tensorflow/cases.py": "import more\n",
    "tests/tensorflow/more.py": "",
    "tests/tensorflow/test_alone.py": "import harness\n",
    "tests/tensorflow/test_cases.py": "from cases import all\n",
    "tests/tensorflow/test_pages.py": "import harness\nharness.ROOT\n",
    "tools/lib/helper.py": "",
    "examples/example.cc": "",
    "packaging/package.py": "",
}
WIDE = {"docs/page.md", "examples/example.cc", "packaging/package.py", "tools/tool"}
PYTHON_TESTS = {
    "test_alone": {"harness"}, "test_cases": {"cases", "more"}, "test_pages": {"harness"},
}


class SelectTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        for name, text in {**FILES, **PYTHON_FILES, ".gitignore": "/build\n"}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        for patch in (mock.patch.object(main, "ROOT", self.root),
                      mock.patch.object(included, "FOLDERS",
                                        (self.root / "tests", self.root / "include"))):
            patch.start()
            self.addCleanup(patch.stop)

    def key(self, words):
        main.content.cache_clear()
        included._direct.cache_clear()
        depends = [word for word in words if word.startswith("+")]
        command = [str(self.root / word.strip("/"))
                   if word.startswith("/") or word in FILES else word
                   for word in words if word not in depends]
        return main.key({"cmd": command, "env": {}, "depends": depends}, self.root / "build",
                        {word: [self.root / word[1:]] for word in depends})

    def test_a_change_of_a_file_selects_the_tests_that_read_it(self):
        for test, (words, expected) in TESTS.items():
            before = self.key(words)
            self.assertEqual(before, self.key(words))
            changed = set()
            for name, text in FILES.items():
                (self.root / name).write_text(f"{text}// changed\n")
                if self.key(words) != before:
                    changed.add(name)
                (self.root / name).write_text(text)
            self.assertEqual(changed, expected, test)

    def test_a_change_of_a_file_selects_the_files_of_pytest_that_read_it(self):
        def keys():
            main.content.cache_clear()
            return {path.stem: key for path, key in main.pytest_keys(
                self.root / "tests/tensorflow", self.root / "build/plugin.so").items()}

        before = keys()
        self.assertEqual(set(before), set(PYTHON_TESTS))
        changed = {name: set() for name in before}
        for name, text in {**FILES, **PYTHON_FILES}.items():
            (self.root / name).write_text(f"{text}# changed\n")
            for test, key in keys().items():
                if key != before[test]:
                    changed[test].add(name)
            (self.root / name).write_text(text)
        for test, modules in PYTHON_TESTS.items():
            expected = {"build/plugin.so", "tools/lib/helper.py",
                        *(f"tests/tensorflow/{name}.py" for name in [*modules, test])}
            self.assertEqual(changed[test],
                             expected | (WIDE if test == "test_pages" else set()), test)

    def test_another_argument_is_another_test(self):
        self.assertNotEqual(self.key(["build/program", "--a"]),
                            self.key(["build/program", "--b"]))


if __name__ == "__main__":
    unittest.main()
