# SPDX-License-Identifier: Apache-2.0
"""Checks that tfplug check finds each known fault, by the check named for it and by no
other, and finds nothing in correct plug-ins.

  check_test.py FILE_OR_DIRECTORY... [PLUGIN.so]...        (environment: CXX)

The files and directories before the plug-ins are what the test reads.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLUGINS = [pathlib.Path(path).resolve() for path in sys.argv[1:] if path.endswith(".so")]
SOURCE = ROOT / "tests/check"
sys.path.insert(0, str(ROOT / "packaging/python"))
import abseil  # noqa: E402
import check  # noqa: E402
import check_host  # noqa: E402
import check_list  # noqa: E402
import check_report  # noqa: E402
import check_sweep  # noqa: E402

# Faults of shipped plug-ins, and others like them.
FAULTS = {
    "add_missing": "kernel-sets",
    "aligned_alloc_misfit": "aligned-alloc",
    "attribute_unknown": "kernel-ops",
    "buffer_shared": "graph-small",
    "callback_null": "registration",
    "constant_folded": "graph-results",
    "copy_rounds_down": "copies",
    "dependency_ignored": "order",
    "destroy_missing": "registration",
    "device_fails": "devices",
    "empty_graph_fails": "graph-empty",
    "empty_output_unset": "kernel-empty",
    "event_complete": "events",
    "fill_swapped": "fills",
    "foreign_device_aborts": "graph-foreign-device",
    "fusion_without_kernel": "graph-results",
    "fusion_wrong": "graph-results",
    "handle_unset": "handles",
    "host_callback_dropped": "host-callback",
    "host_callback_lost": "host-callback",
    "host_memory_unknown": "kernel-ops",
    "host_misaligned": "alignment",
    "huge_overflow": "huge-allocation",
    "huge_throws": "huge-allocation",
    "input_unchecked": "kernel-faults",
    "kernel_refused": "kernel-ops",
    "kernel_twice": "kernels",
    "kernel_wrong": "kernel-results",
    "kernels_of_other_type": "kernels",
    "large_graph_hangs": "graph-large",
    "list_attribute": "kernel-results",
    "loop_fails": "graph-cyclic",
    "malformed_crashes": "graph-malformed",
    "misaligned": "alignment",
    "name_dangling": "names",
    "name_lower_case": "registration",
    "op_unknown": "kernel-ops",
    "passes_of_other_type": "graph-type",
    "plane_unseen": "profiler",
    "preserved_removed": "graph-small",
    "profile_overrun": "profiler",
    "profile_size_unset": "profiler",
    "profiler_frees_twice": "profiler",
    "properties_leak": "graph-leaks",
    "reads_environment": "environment",
    "shape_wrong": "kernel-results",
    "statistics_invented": "statistics",
    "status_leak": "kernel-faults",
    "stream_unset": "handles",
    "struct_size_ignored": "layouts",
    "struct_size_zero": "struct-sizes",
    "sums_split": "kernel-sets",
    "task_error_throws": "host-callback",
    "task_refers_to_stack": "late-reads",
    "tensor_leak": "kernel-faults",
    "threads_race": "threads",
    "timer_in_picoseconds": "timers",
    "type_gpu": "type-name",
    "type_with_cpu": "type-name",
    "updates_missing": "kernel-sets",
}
# What working plug-ins do, and no fault: there must be no finding.
ACCEPTED = ("no_device", "no_statistics", "pass_unchanged", "synchronous")
# Every fault's plug-in must pass these, unless the fault is theirs.
LOADING = ("load", "struct-sizes", "names", "registration", "devices", "handles",
           "allocation")
# Faults of the file, each with a macro.
BUILDS = {
    "EXPORTS_PROTOBUF": "exports",
    "NAMED_AS_IN_THE_RFC": "entry-points",
    "NEEDS_LLVM": "libraries",
    "UNIQUE_SYMBOL": "exports",
}


def c_compiler():
    return os.environ.get("CC", "cc").split()


def compile_plugins(directory):
    """Returns the one in plain C, the other correct plug-in and those of BUILDS."""
    compiler = [*os.environ.get("CXX", "c++").split(), "-pthread"]

    def compile_one(job):
        source, macro = job
        result = directory / f"{source}_{macro}.o"
        subprocess.run([*compiler, "-std=c++17", "-O0", "-fPIC", "-fvisibility=hidden",
                        "-w", f"-I{ROOT}/include", f"-I{abseil.find()}/include",
                        f"-D{macro}", "-c", SOURCE / source, "-o", result], check=True)
        return result

    def link(macro, *objects):
        library = directory / f"{macro}.so"
        if macro == "NEEDS_LLVM":  # its own copy, beside it
            llvm = directory / "libLLVM-15.so"
            subprocess.run([*c_compiler(), "-shared", "-x", "c", os.devnull, "-o", llvm,
                            "-Wl,-soname,libLLVM-15.so"], check=True)
            objects = [*objects, "-Wl,--no-as-needed", llvm, "-Wl,-rpath,$ORIGIN"]
        subprocess.run([*compiler, "-shared", *objects, "-o", library,
                        f"-Wl,--version-script={SOURCE}/exports.map"], check=True)
        return library

    plain = directory / "plain.so"
    subprocess.run([*c_compiler(), "-std=gnu11", "-fPIC", "-shared", "-w",
                    SOURCE / "plain.c", "-o", plain,
                    f"-Wl,--version-script={SOURCE}/exports.map"], check=True)
    macros = ["CORRECT", *BUILDS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        device, *others = pool.map(compile_one, [
            ("plugin.cc", "CORRECT"), *(("others.cc", macro) for macro in macros)])
    return [plain, *(link(macro, device, other) for macro, other in zip(macros, others))]


def several_at_once(function, cases):
    """Yields each case with its result. Some checks wait: one thread more than there are
    processors."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        yield from zip(cases, pool.map(function, cases))


def run(*plugins, fault="", only=(), without=(), seconds=20, release=""):
    """Returns the results by check."""
    checks = [each for name, each in check_list.CHECKS.items()
              if (not only or name in only) and
              name not in ("tensorflow", "op-sweep", *without)]
    checker = check.Checker(plugins, seconds, variables={"TFPLUG_TEST_FAULT": fault},
                            release=release)
    return {each.check.name: each for each in checker.run(checks, follow=not only)}


def caught_by(results):
    return {name: each.findings for name, each in results.items()
            if each.status in ("failed", "warning")}


def command(*arguments, fault="", directory=None):
    return subprocess.run(
        # Without site-packages, in which TensorFlow may be.
        [sys.executable, "-B", "-S", ROOT / "packaging/python/check.py", *arguments],
        text=True,
        check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory,
        env={**os.environ, "TFPLUG_TEST_FAULT": fault})


class CheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not abseil.find():
            raise unittest.SkipTest("packaging/python/abseil.py has not been run")
        cls.directory = tempfile.TemporaryDirectory()
        directory = pathlib.Path(cls.directory.name)
        # Without the TensorFlow of this Python, if it has one.
        installed = mock.patch("check_host.installed_ops", return_value=("", None))
        installed.start()
        cls.addClassCleanup(installed.stop)
        cls.plain, cls.good, *cls.builds = compile_plugins(directory)
        check_host.build(print)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_a_correct_plugin_passes(self):
        def run_slowly(plugin):
            return run(plugin, seconds=60)  # a busy machine compiles kernels slowly

        plugins = [*PLUGINS, self.good, self.plain]
        for plugin, results in several_at_once(run_slowly, plugins):
            with self.subTest(plugin=plugin):
                self.assertEqual(caught_by(results), {})
                for name in ("threads", "layouts", "kernel-faults", "graph-leaks",
                             "graph-results"):
                    self.assertEqual(results[name].status, "passed", results[name])
                if plugin in PLUGINS:
                    self.assertIn("2.5, 2.6, 2.7,", str(results["layouts"].findings))
                    changed = re.search(r"changed (\d+)",
                                        str(results["graph-results"].findings))
                    self.assertGreater(int(changed[1]), 10)

    def test_what_working_plugins_do_is_accepted(self):
        for behaviour, results in several_at_once(lambda each: run(self.good, fault=each), ACCEPTED):
            with self.subTest(behaviour=behaviour):
                self.assertEqual(caught_by(results), {})

    def test_a_profile_without_a_device_is_accepted(self):
        for behaviour in ("plane_custom", "plane_of_host"):
            with self.subTest(behaviour=behaviour):
                found = run(self.good, fault=behaviour, only=["profiler"])["profiler"]
                self.assertEqual(found.status, "passed", found)

    def test_a_correct_plugin_passes_as_in_2_5(self):
        for plugin in PLUGINS:  # Its kernels have labels and read nodes, which 2.11 brought.
            results = run(plugin, release="2.5", seconds=60, without=(
                "layouts", "threads", "kernel-ops", "kernel-results", "kernel-empty",
                "kernel-faults"))
            self.assertEqual(caught_by(results), {})
            for name in ("random-programs", "kernel-sets", "graph-small", "graph-leaks"):
                self.assertEqual(results[name].status, "passed", results[name])
            found = run(plugin, release="2.5", only=["kernel-results"])["kernel-results"]
            self.assertIn("this TensorFlow (2.5.0) lacks TF_", str(found.findings))

    def test_each_fault_is_caught_by_its_check_and_no_other(self):
        cases = [(self.good, fault, name) for fault, name in FAULTS.items()]
        cases += [(build, "", name) for build, name in zip(self.builds, BUILDS.values())]

        def kind(name):
            return re.match("kernel|graph|profiler|", name)[0]  # empty: the device

        def run_case(case):
            plugin, fault, name = case
            # A fault of one kind does not reach the code that other kinds' checks call;
            # "layouts" repeats the others for each release.
            others = [each for each in check_list.CHECKS if kind(each) != kind(name)
                      and each not in check_list.ON_FILES and each not in LOADING]
            if name != "layouts":
                others.append("layouts")
            return run(plugin, fault=fault, seconds=8 if "hangs" in fault else 20,
                       without=others)
        for case, results in several_at_once(run_case, cases):
            with self.subTest(case=case):
                caught = caught_by(results)
                self.assertEqual(set(caught), {case[2]}, caught)

    def test_several_plugins(self):
        copy, other = (pathlib.Path(self.directory.name, name)
                       for name in ("copy.so", "other.so"))
        for path in (copy, other):
            path.write_bytes(self.good.read_bytes())
        for plugin, fault, text in (
                (copy, "", "both register the device type HAND"),
                (other, "setting_off", "differ in remapping"), (other, "", "")):
            with self.subTest(plugin=plugin, fault=fault):
                found = run(self.good, plugin, fault=fault, only=["together"])["together"]
                self.assertEqual(found.status, "failed" if text else "passed", found)
                self.assertIn(text, str(found.findings))
        done = command("--only", "together", "copy.so", f"./{self.good.name}",
                       directory=self.directory.name)  # as they are given
        self.assertIn(f"copy.so and ./{self.good.name} both register", done.stdout)

    def test_the_sweep_needs_a_device(self):
        with (mock.patch("check_symbols.tensorflow_directory", return_value=ROOT),
              mock.patch("check_sweep.check", return_value=[("error", "each case")])):
            for fault, status, text in (("no_device", "skipped", "reports no device"),
                                        ("", "failed", "each case")):
                with self.subTest(fault=fault):
                    checker = check.Checker([self.good],
                                            variables={"TFPLUG_TEST_FAULT": fault})
                    found, = checker.run([check_list.CHECKS["op-sweep"]], follow=False)
                    self.assertEqual(found.status, status, found)
                    self.assertIn(text, str(found.findings))

    def test_the_end_of_a_sweep(self):
        main = pathlib.Path(self.directory.name, "sweep.py")
        with (mock.patch("check_sweep._MAIN", main),
              mock.patch("check_sweep._SECONDS_OF_START", 2)):
            for text, level in (("no registered kernel has these ops and types", "skipped"),
                                ("Select a device type with --device: A, B.", "skipped"),
                                ("no driver", "error")):
                main.write_text(f"import sys\nsys.exit({text!r})\n")
                self.assertEqual(list(check_sweep.check(self.good, 1, 1, {})),
                                 [(level, text)])
            report = {"mismatches": [], "cut_off": [], "cases": 9, "ops": 2, "units": 3,
                      "not_reached": ["Elu T=half"], "authors_units": ["Elu T=half", "Selu"],
                      "tensorflow": "2.21.0", "left_out": 4, "seconds_of_cases": 1.2,
                      "no_reference": ["Mine T=half", "Mine T=float"]}
            for units, missed, status, share in (
                    (3, 1, "partly passed", "66 % reached: 2 of the 3 combinations of ops and "
                     "types, 1 of the 2 of the plug-in's own classes"),
                    (3, 0, "passed", ""),
                    (1000, 990, "partly passed", "1 % reached: 10 of the 1000 "),
                    (1000, 991, "skipped", "less than 1 % reached: 9 of the 1000 "),
                    (1000, 1, "partly passed", "99 % reached: 999 of the 1000 ")):
                left = ["Elu T=half", *map(str, range(missed))][:missed]
                report |= {"units": units, "not_reached": left}
                main.write_text("import sys\n"
                                f"open(sys.argv[-1], 'w').write({json.dumps(report)!r})")
                unjudged, (level, text), *more = check_sweep.check(self.good, 1, 1, {})
                self.assertEqual(unjudged, ("note", "the values of ops without a CPU kernel "
                                            "are not judged: Mine"))
                self.assertEqual(level, "note")
                self.assertIn("9 cases with seed 1 in TensorFlow 2.21.0, in 1.2 s without", text)
                self.assertEqual(check._status([(level, text), *more]), status)
                self.assertEqual(bool(share), bool(more))
                self.assertIn(share, str(more))
            results = [check.Result(check_list.CHECKS["op-sweep"], status, [
                ("partly", "14 % reached: few")]) for status in ("partly passed", "failed")]
            text = check_report.as_text(results, in_colour=False)
            self.assertIn("partly passed (14 % reached)  op-sweep\n", text)
            self.assertIn(" failed  op-sweep\n", text)
            self.assertIn("1 partly passed, 1 failed", text)
            self.assertIn("<summary>1 partly passed</summary>", check_report.as_html([], results))
            # A worker that outlives its parent would keep the pipe open.
            main.write_text("import subprocess\n"
                            "subprocess.run(['sleep', '60'], check=True)\n")
            begin = time.monotonic()
            (level, text), = check_sweep.check(self.good, 1, 1, {})
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(level, "error")
            self.assertIn("hangs", text)

    def test_releases(self):
        found = run(self.good, only=["releases"])["releases"]
        lines = [text for _, text in found.findings]
        self.assertIn("2.21.0: loads", lines)
        self.assertTrue(any(line.startswith("2.15.1: does not load: TF_") and
                            "cannot be seen" in line for line in lines), lines)

    def test_text_has_a_line_for_releases_with_one_verdict(self):
        done = command("--only", "releases", self.plain)
        self.assertRegex(done.stdout, r"2\.5\.3 to 2\.18\.1: does not load: TF_")
        self.assertIn("2.19.1 to 2.22", done.stdout)

    def test_all_entry_points_are_listed(self):
        done = command("--only", "entry-points", PLUGINS[0])
        self.assertIn(" TF_InitKernel, TF_InitGraph, TF_InitGraphPlugin,", done.stdout)

    def test_what_the_plugin_logs_and_ops_that_are_unknown(self):
        for fault, level, text in (
                ("kernel_refused", "error", "TF_InitKernel: Elu: no. Do so."),
                ("op_unknown", "warning", "the names may be misspelt): Rellu")):
            found = run(self.good, fault=fault, only=["kernel-ops"])["kernel-ops"]
            self.assertEqual(found.findings[0][0], level, found)
            self.assertIn(text, found.findings[0][1])
        found = run(self.good, fault="op_unknown", only=["kernels"])["kernels"]
        self.assertIn("4 kernels of 4 ops in TensorFlow 2.", found.findings[0][1])

    def test_a_wrong_shape(self):
        found = run(self.good, fault="shape_wrong", only=["kernel-results"])
        self.assertIn(("error", "the kernel of Relu returns the shape [5,1] instead of [5]: "
                       "allocate the output with the shape that the op defines"),
                      found["kernel-results"].findings)

    def test_a_library_for_macos(self):
        path = pathlib.Path(self.directory.name, "plugin.dylib")
        path.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(28))
        results = run(path)
        self.assertEqual(results["file"].status, "failed")
        self.assertIn("library for macOS", results["file"].findings[0][1])
        self.assertEqual(results["load"].status, "skipped")

    def test_the_list_is_what_the_program_has(self):
        source = (ROOT / "packaging/check_host/main.cc").read_text()
        for name in check_list.CHECKS:
            if name not in check_list.ON_FILES and name not in (
                    "together", "tensorflow", "op-sweep"):
                self.assertRegex(source, rf'{{"{name}", (Check|WriteKernels)')
        self.assertIn("late-reads", command("--list").stdout)

    def test_the_lists_of_kernels(self):
        listed = run(PLUGINS[0], only=["kernels"])["kernels"].findings[0][1]
        self.assertIn(" Fill(dims) ", listed)
        self.assertIn(" Relu ", listed)

    def test_a_release_and_a_seed(self):
        done = command("--release", "2.6", "--only", "fills", self.good)
        self.assertIn("mem_zero, memset or memset32 is null", done.stdout)
        done = command("--seed", "7", "--only", "graph_results", self.good)
        self.assertIn("of seed 7", done.stdout)
        done = command("--seed", "7", "--only", "op_sweep", self.good)
        self.assertIn("TensorFlow is not installed", done.stdout)

    def test_reports(self):
        page = pathlib.Path(self.directory.name, "report.html")
        some = ["--only", "entry-points", "--only", "huge-allocation", self.good]
        done = command("--html", page, *some, fault="huge_throws")
        self.assertEqual(done.returncode, 1)
        self.assertIn(" failed  huge-allocation", done.stdout)
        self.assertIn("crashes with SIGABRT in allocate(4611686018427387904 bytes)",
                      done.stdout)
        self.assertIn("-> Set opaque to null", done.stdout)
        text = page.read_text()
        self.assertIn("&#x27;std::bad_alloc&#x27;", text)
        # What failed comes first; what passed is behind a click.
        self.assertLess(text.index("huge-allocation"), text.index("<details>"))
        self.assertGreater(text.index("entry-points"), text.index("<details>"))
        done = command("--json", *some)
        self.assertEqual(done.returncode, 0)
        self.assertEqual([each["status"] for each in json.loads(done.stdout)["checks"]],
                         ["passed", "passed"])

    def test_the_guide(self):
        directory = pathlib.Path(self.directory.name, "guide")
        directory.mkdir()
        for name in ("libplugin.so", "libother.so"):
            (directory / name).write_bytes(self.good.read_bytes())
        text = (ROOT / "docs/guide/check.md").read_text()
        examples = re.findall(r"^    tfplug check (.*)$", text, re.MULTILINE)
        self.assertGreater(len(examples), 5)

        def run_in_directory(example):
            return command(*example.split(), directory=directory)

        for example, done in several_at_once(run_in_directory, examples):
            with self.subTest(example=example):
                self.assertEqual(done.returncode, 0, done.stdout)
                progress = re.findall(r"^\[\d+/\d+\] .+$", done.stderr, re.MULTILINE)
                self.assertEqual(done.stderr.splitlines(), progress)
                self.assertEqual(bool(progress),
                                 "--json" not in example and "--list" not in example)
        self.assertTrue((directory / "report.html").is_file())

    def test_wrong_arguments(self):
        for arguments in (["--only", "nothing", self.good], ["/nowhere.so"], [],
                          ["--release", "2.4", self.good],
                          ["--html", "/nowhere/report.html", self.good]):
            done = command(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("tfplug check: ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
