# SPDX-License-Identifier: Apache-2.0
"""tools/peer-tests with a small suite: what it counts, reports and survives."""

import datetime
import os
import subprocess
import sys
import types

import harness
import pytest
from peer_tests import child

TESTS = '''
import logging
import os
import tensorflow as tf
from tensorflow.python.framework import test_util


ran = []


class DeviceTest(tf.test.TestCase):
    def setUp(self):
        super().setUp()
        ran.append(self)

    def test_passes(self):
        self.assertEqual(len(tf.config.list_physical_devices("GPU")) > 0,
                         "GPU" in (tf.constant(1.0) + 1.0).device)

    def test_crashes_on_the_device(self):
        if tf.config.list_physical_devices("GPU"):
            os.abort()

    def test_a_part_fails(self):
        with self.subTest("device"):
            self.assertEmpty(tf.config.list_physical_devices("GPU"))
        with self.subTest("passes"):
            self.assertEqual(1, 1)

    def test_a_part_crashes(self):
        with self.subTest("passes"):
            self.assertEqual(1, 1)
        with self.subTest("crashes"):
            if tf.config.list_physical_devices("GPU"):
                os.abort()

    @test_util.assert_no_new_pyobjects_executing_eagerly()
    def test_leaves_no_objects(self):
        logging.warning("%s", tf.constant(1.0) + 1.0)

    def test_fails_on_both(self):
        self.fail("always")

    def test_is_skipped(self):
        self.skipTest("always")


class AlphabetTest(tf.test.TestCase):
    def test_runs_before_device_test(self):
        self.assertEmpty(ran)


def test_after_a_crash():
    assert not tf.config.list_physical_devices("GPU"), "it has a device"


def test_has_no_kernel():
    assert tf.strings.upper("a").numpy() == b"A"


def test_has_a_kernel_for_gpus():
    tf.raw_ops.GRUBlockCell(x=[[1.0]], h_prev=[[1.0]], w_ru=[[0.0] * 2] * 2,
                            w_c=[[0.0]] * 2, b_ru=[0.0] * 2, b_c=[0.0])


if __name__ == "__main__":
    DeviceTest.test_is_added = DeviceTest.test_passes
    tf.test.main()
'''


@pytest.fixture(scope="module", name="sources")
def _sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources") / "tensorflow/python/kernel_tests"
    folder.mkdir(parents=True)
    (folder / "device_test.py").write_text(TESTS)
    return folder.parents[2]


def _run(sources, *options, expected="", suite="tensorflow"):
    (sources / "expected.txt").write_text(expected)
    return subprocess.run(
        [sys.executable, "-B", harness.ROOT / "tools/lib/peer_tests/main.py",
         suite, sources, "--plugin", harness.plugin_path(), "--jobs", "1",
         "--expected", sources / "expected.txt", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def test_failures_on_the_device_only_are_reported(sources):
    page = sources / "page.md"
    result = _run(sources, "--write", page, expected=(
        "# a comment\n*::test_after_*  A reason.\npinned:*::test_*  No.\n"
        "*::DeviceTest::test_passes  Wrong.\n"))
    out = result.stdout
    assert result.returncode == 3, out
    assert ("of 10 tests, 6 pass, 4 fail although they pass on the CPU, 3 of them "
            "unexpectedly" in out), out
    name = "tensorflow/python/kernel_tests/device_test.py::"
    assert (f"FAILED: {name}DeviceTest::test_crashes_on_the_device: crashed: SIGABRT"
            in out), out
    assert f"FAILED: {name}DeviceTest::test_a_part_crashes: crashed: SIGABRT" in out
    assert f"FAILED: {name}DeviceTest::test_a_part_fails: AssertionError" in out, out
    assert f"expected: {name}test_after_a_crash: A reason." in out, out
    assert "passes, although a failure is expected: *::DeviceTest::test_passes" in out
    assert "6 passed, 5 failed (4 of them pass on the CPU), 3 skipped" in out, out
    assert "fails_on_both" not in out
    assert "| tensorflow/python/kernel_tests | 10 | 6 | 2 | 2 |" in page.read_text()


def test_pinned_tests_fail_without_a_kernel(sources):
    result = _run(sources, "--pinned", "--only", "device_test.py::test_has_")
    assert result.returncode == 1, result.stdout
    assert ("test_has_no_kernel: A GPU has no other kernels of StringUpper."
            in result.stdout), result.stdout
    assert "FAILED" in result.stdout and "[Op:GRUBlockCell]" in result.stdout, result.stdout
    assert "of 2 tests, 0 pass, 2 fail" in result.stdout, result.stdout
    result = _run(sources, "--pinned", "--only", "device_test.py::test_has_a_kernel",
                  expected="pinned:*test_has_a_kernel*  A reason.\n")
    assert result.returncode == 0 and "A reason." in result.stdout, result.stdout


def test_the_reason_of_a_graphs_error_is_reported():
    stack = "Detected at node 'A' defined at\n" + "  File x\n" * 200 + "Node: 'A'\n"
    for text, expected in (("Graph execution error:\n" + 2 * stack + "too bad", "too bad"),
                           ("No kernel. " * 90 + "[Op:A]", "[Op:A]"), ("short", "short")):
        found = child._first_error(types.SimpleNamespace(longrepr=text))
        assert found.startswith(text[:5]) and found.endswith(expected), found
        assert len(found) < 500


def test_kept_results_are_not_computed_again(sources):
    kept = sources / "results.jsonl"
    first = _run(sources, "--results", kept)
    page = sources / "pages.md"
    page.write_text("# Another run\n")
    again = _run(sources, "--results", kept, "--add", page)
    assert first.returncode == again.returncode == 4, first.stdout
    assert "6 passed, 5 failed" in first.stdout
    assert "6 passed, 5 failed" not in again.stdout
    assert first.stdout.endswith(again.stdout), again.stdout
    title, _, section = page.read_text().partition("\n\n")
    assert title == "# Another run"
    assert section.startswith("## SIM, 2"), page.read_text()
    assert "the tests in 1 of 1 files" in " ".join(section.split())
    assert "| tensorflow/python/kernel_tests | 10 | 6 | 2 | 2 |" in section


def test_invalid_arguments(sources):
    result = _run(sources, expected="*::test\n")
    assert "a reason must follow *::test" in result.stdout, result.stdout
    for suite in ("tensorflow", "tf_keras"):
        result = _run(sources / "tensorflow", suite=suite)
        assert result.returncode == 125
        assert "checkout" in result.stdout and "Traceback" not in result.stdout


def test_a_sample_of_the_tests_of_keras():
    """Runs other tests each day; TFPLUG_PEER_SEED repeats those of a seed."""
    version = harness.keras_version()
    if version.startswith("2.") or "dev" in version:
        pytest.skip("Keras 2 and keras-nightly do not distribute their tests")
    seed = os.environ.get("TFPLUG_PEER_SEED") or str(datetime.date.today().toordinal())
    result = subprocess.run(
        [sys.executable, "-B", harness.ROOT / "tools/lib/peer_tests/main.py", "keras",
         "--plugin", harness.plugin_path(), "--jobs", "2", "--sample", "4", "--seed",
         seed], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"Keras {version}: {result.stdout}")
    assert result.returncode == 0, result.stdout
    assert f"seed {seed}: keras/src/" in result.stdout
