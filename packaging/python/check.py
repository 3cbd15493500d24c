# SPDX-License-Identifier: Apache-2.0
"""tfplug check: whether a plug-in, of whatever origin, does what TensorFlow relies on.

Each check is tried in a process of its own, which it may crash. TensorFlow need not be
installed: the process contains a fake of it.
"""

import argparse
import dataclasses
import json
import pathlib
import sys

try:
    from tfplug import (check_host, check_kernels, check_list, check_report,
                        check_sweep, check_symbols, doctor, run_graph)
except ImportError:  # Run from the source tree.
    import check_host
    import check_kernels
    import check_list
    import check_report
    import check_sweep
    import check_symbols
    import doctor
    import run_graph


# What a plug-in logs in these functions is a finding of these checks.
_LOGS = {"registration": ["SE_InitPlugin"], "kernel-ops": ["TF_InitKernel"],
         "graph-registration": ["TF_InitGraph"], "profiler": ["TF_InitProfiler"]}


@dataclasses.dataclass
class Result:
    check: check_list.Check
    status: str  # passed, partly passed, warning, failed, skipped
    findings: list  # (level, text)


def add_parser(commands):
    parser = commands.add_parser(
        "check", help="check whether a plug-in does what TensorFlow relies on",
        description=__doc__.split("\n", maxsplit=1)[1],
        epilog="Exit status: 0 without errors, 1 with errors, 2 if nothing could be "
        "checked.")
    _add_arguments(parser)
    parser.set_defaults(run=run)


def _add_arguments(parser):
    parser.add_argument("plugins", nargs="*", metavar="PLUGIN.so",
                        help="the plug-in; of several, also whether they agree")
    parser.add_argument("--list", action="store_true", help="list the checks")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="run this check only; may be repeated")
    parser.add_argument("--seconds", type=float, default=60,
                        help="the time limit of one check; default: %(default)s")
    parser.add_argument("--release", default="", metavar="2.15",
                        help="check as this release of TensorFlow, which has other "
                        "structs and functions; default: that of the TensorFlow that "
                        "is installed, or else the newest")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of random graphs and arguments; default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--html", type=pathlib.Path, metavar="FILE",
                        help="also write the report to this file")


def _status(findings):
    levels = {level for level, _ in findings}
    if "error" in levels:
        return "failed"
    if "warning" in levels:
        return "warning"
    if "skipped" in levels:
        return "skipped"
    return "partly passed" if "partly" in levels else "passed"


class Checker:
    """Runs checks of one plug-in."""

    def __init__(self, plugins, seconds=60, say=lambda _: None, variables=None,
                 release="", seed=1):
        self._plugins = [pathlib.Path(path).resolve() for path in plugins]
        self._given = dict(zip(map(str, self._plugins), map(str, plugins)))
        self._library = check_symbols.Library(self._plugins[0])
        self._seconds = seconds
        self._say = say
        self._variables = variables or {}  # of the environment, for the plug-in
        self._program = None
        self._seed = seed
        self._options, self._release = ["--seed", str(seed)], release
        self._why_not, self._whose_ops = "", ""
        self._logged = set()  # the findings that the plug-in logs itself

    def _prepare(self):
        """Compiles what the checks in processes need, once."""
        if self._program or self._why_not:
            return
        try:
            self._program = check_host.build(self._say)
            installed, ops = check_host.installed_ops()
            release = self._release or installed
            if release != installed or ops is None:
                ops = run_graph.op_list()
                self._whose_ops = check_kernels.release()
            self._options += ["--ops", ops] + (["--release", release] if release else [])
            for plugin in self._plugins:
                self._options += check_host.loading(check_symbols.Library(plugin))
        except check_host.Error as error:
            self._why_not = str(error)

    def _findings(self, check):
        if check.name in check_list.ON_FILES:
            return list(check_list.ON_FILES[check.name](self._library))
        if self._library.is_macho:
            return [("skipped", "the plug-in is for macOS")]
        if check.name in ("tensorflow", "op-sweep"):
            if check_symbols.tensorflow_directory() is None:
                return [("skipped", "TensorFlow is not installed")]
        if check.name == "op-sweep":
            # Without a device, each case would fail.
            devices = self._findings(check_list.CHECKS["devices"])
            if not self._why_not and _status(devices) == "skipped":
                return devices
            return list(check_sweep.check(self._plugins[0], self._seconds / 2,
                                          self._seed, self._variables))
        if check.name == "tensorflow":
            found, _ = doctor.check_library(str(self._plugins[0]))
            findings = [("note" if each.level == "ok" else each.level,
                         f"{each.text.rstrip('.')}. {each.remedy}" if each.remedy else
                         each.text) for each in found]
            # The plug-in logs the same in TensorFlow as in the fake.
            return [(level, text) for level, text in findings
                    if text.removeprefix(f"{self._plugins[0]}: ") not in self._logged]
        self._prepare()
        if self._why_not:
            return [("skipped", self._why_not)]
        plugins = self._plugins if check.name == "together" else self._plugins[:1]
        command = [self._program, check.name, *plugins, *self._options]
        if check.name == "layouts":
            return self._layouts(command)
        places = _LOGS.get(check.name, ())
        findings = check_host.run(command, self._seconds, self._variables, places)
        self._logged.update(text for _, text in findings
                            if text.partition(": ")[0] in places)
        if check.name == "kernels" and self._whose_ops:
            findings.append(("note", "counted with the ops of TensorFlow "
                             f"{self._whose_ops}: this release is not installed"))
        if check.name == "kernel-ops":
            return list(check_kernels.check_ops(findings))
        if check.name == "kernel-sets":
            return list(check_kernels.check_sets(findings))
        if check.name == "load" and "--lazy" in command:
            findings.append(("note", "C++ symbols of TensorFlow were left unbound: they "
                             "are not here"))
        return findings

    def _layouts(self, command):
        """Runs the check once for each release, in processes of their own: a driver may
        lend a device to one user at a time."""
        releases = {}  # by finding
        for release in check_symbols.loading(self._library):
            for finding in check_host.run([*command, "--layout", release], self._seconds,
                                          self._variables):
                releases.setdefault(finding, []).append(release)
            if any(text.startswith("hangs") for _, text in releases):
                break
        if not releases:
            return [("skipped", "no release can load the plug-in")]
        return [(level, text if level == "skipped" else
                 f"with the structs of {', '.join(names)}: {text}")
                for (level, text), names in releases.items()]

    def run(self, checks, follow=True):
        """Yields a Result for each check. With `follow`, those that need one that
        failed are skipped."""
        failed = set()
        for check in checks:
            reason = next((name for name in check.needs if name in failed), "")
            if check.name == "together" and len(self._plugins) < 2:
                findings = [("skipped", "there is only one plug-in")]
            elif follow and reason:
                findings = [("skipped", f"{reason} failed")]
                failed.add(check.name)
            else:
                self._say(check.name)
                findings = self._findings(check)
            if check.crash == "warning":
                findings = [("warning" if level == "error" else level, text)
                            for level, text in findings]
            for path, given in self._given.items():
                findings = [(level, text.replace(path, given)) for level, text in findings]
            status = _status(findings)
            if status == "failed" or (status == "warning" and check.crash == "warning"):
                failed.add(check.name)
            yield Result(check, status, findings)


def _select(names):
    names = [name.replace("_", "-") for name in names]
    unknown = [name for name in names if name not in check_list.CHECKS]
    if unknown:
        raise check_host.Error(f"there is no check {unknown[0]}: see tfplug check --list")
    return [check for name, check in check_list.CHECKS.items()
            if not names or name in names]


def run(options):
    if options.list:
        for check in check_list.CHECKS.values():
            print(f"{check.name:21} {check.text}")
        return 0
    try:
        checks = _select(options.only)
        known = [".".join(each.split(".")[:2]) for each in check_symbols.releases()]
        if options.release and options.release not in known:
            raise check_host.Error(f"there is no release {options.release} here, only " +
                                   ", ".join(known))
        if not options.plugins:
            raise check_host.Error("name a plug-in, such as libplugin.so")
        for path in options.plugins:
            if not pathlib.Path(path).is_file():
                raise check_host.Error(f"there is no file {path}; name the library that the "
                                       "build wrote, such as build/libmy_device.so")
        if options.html and not options.html.parent.is_dir():
            raise check_host.Error(f"--html: there is no folder {options.html.parent}")
    except check_host.Error as error:
        print(f"tfplug check: {error}", file=sys.stderr)
        return 2
    progress = check_report.Progress(len(checks), not options.json)
    results = []
    for result in Checker(options.plugins, options.seconds, progress.say,
                          release=options.release, seed=options.seed).run(
            checks, follow=not options.only):
        results.append(result)
        progress.done(result)
    progress.clear()
    if options.json:
        print(json.dumps(check_report.as_json(options.plugins, results), indent=2))
    else:
        print(check_report.as_text(results, sys.stdout.isatty()))
    if options.html:
        options.html.write_text(check_report.as_html(options.plugins, results))
    if all(result.status == "skipped" for result in results):
        return 2
    return int(any(result.status == "failed" for result in results))


if __name__ == "__main__":
    own = argparse.ArgumentParser(prog="tfplug check", description=__doc__)
    _add_arguments(own)
    sys.exit(run(own.parse_args()))
