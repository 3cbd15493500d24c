# SPDX-License-Identifier: Apache-2.0
"""Uses tfplug as other projects do: as a Meson subproject and installed.

  consumer_test.py PROJECT_ROOT WORK_DIR
      (environment: CXX, PKG_CONFIG_PATH for Abseil)
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

ROOT, WORK = (pathlib.Path(p) for p in sys.argv[1:3])
del sys.argv[1:]
MESON = os.environ.get("MESON", "meson")
SOURCE = ROOT / "tests/consumer"


def run(*command, **variables):
    words = [str(word) for word in command]
    result = subprocess.run(
        words,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        lines = result.stdout.splitlines()
        raise AssertionError("\n".join([shlex.join(words), *lines[-40:]]))
    return result.stdout


def check_symbols(plugin):
    run(sys.executable, ROOT / "tests/symbols_test.py", plugin,
        "--expect", "SE_InitPlugin")  # fmt: skip


class ConsumerTest(unittest.TestCase):
    def test_subproject(self):
        project = WORK / "project"
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(SOURCE, project)
        (project / "subprojects").mkdir(exist_ok=True)
        (project / "subprojects/tfplug").symlink_to(ROOT)
        build = project / "build"
        run(MESON, "setup", build, project)
        run(MESON, "test", "-C", build)
        check_symbols(build / "libminimal_device.so")
        own_tests = list((build / "subprojects/tfplug").glob("tests/*"))
        self.assertEqual(own_tests, [], "a subproject must not build our tests")

    def test_installed(self):
        prefix = WORK / "prefix"
        shutil.rmtree(prefix, ignore_errors=True)
        build = WORK / "install"
        shutil.rmtree(build, ignore_errors=True)
        run(MESON, "setup", build, ROOT, f"--prefix={prefix}",
            "--libdir=lib", "-Dtests=disabled", "-Dexamples=disabled")  # fmt: skip
        run(MESON, "install", "-C", build)
        path = f"{prefix}/lib/pkgconfig:{os.environ.get('PKG_CONFIG_PATH', '')}"
        flags = run("pkg-config", "--cflags", "--libs", "tfplug-plugin",
                    PKG_CONFIG_PATH=path)  # fmt: skip
        plugin = WORK / "libminimal_device.so"
        compiler = shlex.split(os.environ.get("CXX", "c++"))
        run(*compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-o", plugin,
            SOURCE / "minimal_device.cc", *shlex.split(flags))  # fmt: skip
        check_symbols(plugin)


if __name__ == "__main__":
    unittest.main()
