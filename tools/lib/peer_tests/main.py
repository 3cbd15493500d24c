# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of Keras, tf_keras or TensorFlow on a device: see tools/peer-tests."""

import argparse
import datetime
import importlib.metadata
import os
import pathlib
import random
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

from peer_tests import report, runner, suites  # noqa: E402

_HERE = pathlib.Path(__file__).parent
_MOST_FAILURES = 100
_TESTS_OF_SAMPLED_FILE = 40
_TITLES = {"keras": "Keras", "tensorflow": "TensorFlow", "tf_keras": "tf_keras"}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/peer-tests", description="Runs tests that others wrote on a "
        "plug-in's device, and compares with TensorFlow's CPU. Exit status: the number "
        f"of unexpected failures, at most {_MOST_FAILURES}.")
    parser.add_argument("suite", choices=_TITLES)
    parser.add_argument("sources", nargs="?", type=pathlib.Path, metavar="DIR",
                        help="for tensorflow and tf_keras: a checkout of the sources, "
                        "of the installed release")
    parser.add_argument("--plugin", required=True, type=pathlib.Path,
                        metavar="FILE.so", help="the plug-in; tools/peer-tests has a "
                        "default, examples/cpu_sim")
    parser.add_argument("--device", default="SIM", metavar="TYPE",
                        help="the plug-in's device type (default SIM)")
    parser.add_argument("--pinned", action="store_true", help="run each test in "
                        "tf.device without soft placement: an op without a kernel "
                        "fails")
    parser.add_argument("--sample", type=int, default=0, metavar="N",
                        help=f"only N files, and of each at most "
                        f"{_TESTS_OF_SAMPLED_FILE} tests")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the sample")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="only files whose path contains TEXT, or FILE::TEXT, tests "
                        "whose id contains it")
    parser.add_argument("--expected", type=pathlib.Path, metavar="FILE",
                        help="the failures that are expected, with reasons")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1),
                        metavar="N", help="test files that run at the same time")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE.jsonl",
                        help="a file of results: each is added as it comes, and what "
                        "is there is not run again")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE.md",
                        help="also write the tables")
    parser.add_argument("--add", type=pathlib.Path, metavar="FILE.md",
                        help="also add the tables to a page of another run")
    options = parser.parse_args(arguments)
    if (options.suite == "keras") != (options.sources is None):
        parser.error("tensorflow and tf_keras need DIR, a checkout of their sources; keras "
                     "takes none")
    if not options.plugin.is_file():
        parser.error(f"the file {options.plugin} does not exist")
    options.expected = options.expected or _HERE / f"expected_{options.suite}.txt"
    return options


def _select(suite, options):
    """Applies --only and --sample."""
    files = [text.partition("::") for text in options.only]
    if files:
        # In the order of the options, so that a run may begin with what matters.
        suite.files = list(dict.fromkeys(
            f for o in files for f in suite.files if o[0] in f))
        suite.wanted = files[0][2] if len(files) == 1 else ""
    if options.sample:
        chosen = random.Random(options.seed).sample(
            suite.files, min(options.sample, len(suite.files)))
        suite.files = [f for f in suite.files if f in chosen]
        suite.per_file, suite.seed = _TESTS_OF_SAMPLED_FILE, options.seed


def _device(options):
    """Returns where the tests run."""
    plugin, device = str(options.plugin.resolve()), options.device
    # Some tests need more than examples/cpu_sim has by default.
    environment = [("CPU_SIM_MEMORY", os.environ.get("CPU_SIM_MEMORY", "4G"))]
    if options.suite == "tensorflow":  # whose tests ask for GPUs
        environment.append(("TFPLUG_DEVICE_TYPE", f"{device}=GPU"))
        device = "GPU"
    name = f"{options.device}, pinned" if options.pinned else options.device
    return runner.Place(name, plugin, f"/device:{device}:0" if options.pinned else "",
                        tuple(environment))


def _progress(file, on_device, on_cpu, seconds):
    passed, failed, skipped = (
        sum(outcome == wanted for outcome, _ in on_device.values())
        for wanted in (runner.PASSED, runner.FAILED, runner.SKIPPED))
    passed_there = sum(outcome == runner.PASSED for outcome, _ in on_cpu.values())
    print(f"{file}: {passed} passed, {failed} failed ({passed_there} of them pass on the "
          f"CPU), {skipped} skipped in {seconds:.0f} s", flush=True)


def main(arguments=None):
    options = parse(arguments)
    expectations = report.read_expectations(options.expected, options.pinned)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    try:
        suite = (suites.keras(cache / "tfplug") if options.suite == "keras" else
                 getattr(suites, options.suite)(options.sources.resolve()))
    except FileNotFoundError as error:
        print(f"tools/peer-tests: {error}", file=sys.stderr)
        return 125
    all_files = len(suite.files)
    _select(suite, options)
    if options.sample:
        print(f"seed {options.seed}: {' '.join(suite.files)}")
    device = _device(options)
    on_device, on_cpu = runner.run(suite, device, options.jobs, _progress,
                                   options.results)
    result = report.compare(on_device, on_cpu, expectations)
    name = device.name
    print(report.text(name, result))
    run = _describe(options, on_device, all_files)
    if options.write:
        options.write.write_text(_page(options, run, {name: result}), encoding="utf-8")
    if options.add:
        with open(options.add, "a", encoding="utf-8") as page:
            page.write("\n" + report.section(
                f"{name}, {datetime.date.today()}", run, result))
    if not result.tests:
        print("No test passed.")
        return 125
    return min(len(result.unexpected), _MOST_FAILURES)


def _describe(options, on_device, all_files):
    """Returns a sentence: what was run with what."""
    files = {test.partition("::")[0] for test in on_device}
    versions = " and ".join(f"{package} {importlib.metadata.version(package)}"
                            for package in _installed())
    command = f"tools/peer-tests {options.suite}"
    which = "a sample of the tests" if options.sample else "the tests"
    if options.sources:
        command += " DIR"
    return (f"`{command}` on {options.plugin.name}, {versions}, "
            f"{datetime.date.today()}: {which} in {len(files)} of {all_files} files.")


def _page(options, run, results):
    """Returns the page with the tables."""
    return report.markdown(
        f"Tests of {_TITLES[options.suite]}",
        f"{run} A test that fails on TensorFlow's CPU, too, or is skipped does not "
        "count. See [peer_tests.md](../guide/peer_tests.md).", results)


def _installed():
    """Returns the packages whose versions a report names."""
    return [p for p in ("tensorflow-cpu", "tensorflow", "keras", "keras-nightly")
            if any(d.metadata["Name"].replace("_", "-") == p
                   for d in importlib.metadata.distributions() if d.metadata["Name"])]


if __name__ == "__main__":
    sys.exit(main())
