# SPDX-License-Identifier: Apache-2.0
"""Checks that only kept builds are used whose files are unchanged, and that
tools/lib/setup.sh installs only packages with known checksums.

  setup_test.py PROJECT_ROOT
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
SETUP = ROOT / "tools/lib/setup.sh"


class HelpTest(unittest.TestCase):
    def test_help_sets_nothing_up(self):
        for argument, status in (("--help", 0), ("--no-such-option", 1)):
            with tempfile.TemporaryDirectory() as cache:
                run = subprocess.run(
                    [ROOT / "tools/setup", argument], text=True,
                    stdout=subprocess.PIPE, env={**os.environ, "XDG_CACHE_HOME": cache})
                self.assertEqual((run.returncode, os.listdir(cache)), (status, []))
                self.assertIn("Prepares a Debian or Ubuntu machine", run.stdout)
                self.assertNotIn("set -uo", run.stdout)


class KeptBuildTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.prefix = self.root / "tfplug/abseil-1"
        self.library = self.prefix / "lib/libabsl.a"
        self.keep("code")

    def keep(self, code, recipe="recipe"):
        """Builds and keeps a library."""
        stage = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        library = pathlib.Path(f"{stage}{self.library}")
        library.parent.mkdir(parents=True)
        library.write_text(code)
        self.kept_build("keep", stage, self.prefix, recipe)

    def kept_build(self, *arguments):
        return subprocess.run(
            [sys.executable, ROOT / "packaging/python/kept_build.py", *arguments],
            text=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def find(self, recipe="recipe"):
        return self.kept_build("find", self.prefix.parent, "abseil", recipe)

    def found(self):
        return self.find().stdout.strip()

    def test_an_intact_build_is_used(self):
        self.assertEqual(self.found(), str(self.prefix))

    def test_an_intact_build_stays_where_a_compiler_reads_it(self):
        self.keep("code of another process")
        self.assertEqual(self.library.read_text(), "code")
        self.library.write_text("evil")
        self.keep("new")
        self.assertEqual((self.library.read_text(), self.found()), ("new", str(self.prefix)))
        self.keep("other", "another recipe")
        self.assertEqual(self.library.read_text(), "other")
        self.assertEqual([each.name for each in self.prefix.parent.iterdir()], ["abseil-1"])

    def test_two_processes_build_once(self):
        source = self.root / "source"
        (source / "absl/base").mkdir(parents=True)
        (source / "absl/status/internal").mkdir(parents=True)
        for header in ("base/options.h", "status/internal/statusor_internal.h"):
            (source / "absl" / header).write_text("")
        (source / "absl/base/one.cc").write_text("int one;")
        compiler = self.root / "c++"
        compiler.write_text("#!/bin/sh\ncase $* in *-c*) echo >> $0.calls; sleep 1;; esac\n"
                            'exec c++ "$@"\n')
        compiler.chmod(0o755)
        running = [subprocess.Popen(
            [sys.executable, ROOT / "packaging/python/abseil.py", "--source", source],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": str(self.root / "cache"),
                 "CXX": str(compiler)}) for _ in range(2)]
        first, second = (each.communicate()[0] for each in running)
        self.assertTrue(first)
        self.assertEqual(first, second)
        self.assertTrue(pathlib.Path(first.strip(), "lib/libabsl.a").is_file())
        calls = pathlib.Path(f"{compiler}.calls").read_text().count("\n")
        self.assertEqual(calls, 1)

    def test_another_recipe_is_not_used(self):
        run = self.find("other")
        self.assertEqual((run.stdout, run.stderr), ("", ""))

    def test_altered_contents(self):
        self.library.write_text("evil")
        self.assertEqual(self.found(), "")

    def test_added_file(self):
        (self.prefix / "lib/libmore.a").write_text("code")
        self.assertEqual(self.found(), "")

    def test_removed_file(self):
        self.library.unlink()
        self.assertEqual(self.found(), "")

    def test_missing_checksums(self):
        (self.prefix / "manifest").unlink()
        self.assertEqual(self.found(), "")

    def test_writable_by_others(self):
        self.library.chmod(0o666)
        self.assertEqual(self.found(), "")
        self.assertIn("is not used", self.find().stderr)

    @unittest.skipUnless(os.getuid() == 0, "only root can change an owner")
    def test_owned_by_another_user(self):
        os.chown(self.library, 1, 1)
        self.assertEqual(self.found(), "")


class PackagesTest(unittest.TestCase):
    def test_each_locked_package_has_a_version_and_checksums(self):
        for path in (ROOT / "tools/lib").rglob("requirements.txt"):
            lock = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE)
            packages = lock.replace("\\\n", " ").strip().splitlines()
            self.assertGreater(len(packages), 10)
            for package in packages:
                if not package.lstrip().startswith("#"):
                    self.assertRegex(package, r"^[\w.-]+==\S+ .*--hash=sha256:\w{64}")

    def test_apt_keeps_its_sandbox(self):
        self.assertNotIn("Sandbox", SETUP.read_text())


if __name__ == "__main__":
    unittest.main()
