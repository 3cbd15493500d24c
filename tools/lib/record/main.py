# SPDX-License-Identifier: Apache-2.0
"""Records how stock TensorFlow calls a plug-in: see tools/record."""

import argparse
import ast
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import environments  # noqa: E402

ROOT = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("TFPLUG_BUILD") or ROOT / "build/gcc")
LOGS = ROOT / "tests/testing/record/logs"
RELEASES = ("2.12.1", "2.15.1", "2.18.1", "2.21.0", "2.22.0rc0")
RUNS = 3
REGISTRATION = (r" (SE_InitPlugin|TF_Init\w+|create_(device_fns|stream_executor|timer_fns)"
                r"\(\)|destroy_profiler(_fns)?\(\))$")
WITH_REGISTRATION = ("start", "loaded_twice", "same_type", "two_paths")


def normalized(text, name, pattern):
    """Returns the lines of a script's log that do not depend on the speed of threads, if
    they match the pattern.

    * Threads are left out.
    * Events have no names, because TensorFlow reuses those that were polled. Their
      creation and the polls are left out; every event must have been polled to its
      end.
    * get_device_count is left out: Python calls it whenever it lists devices.
    * The registration, which is always the same, is only in some logs."""
    lines, recorded, polled = [], 0, 0
    for line in text.splitlines():
        line = line.partition(" ")[2]
        recorded += " record_event(" in line
        if " get_event_status(" in line:
            polled += line.endswith("= complete")
        elif not re.search(" create_event\\(| get_device_count\\(", line):
            lines.append(re.sub(r"(record_event\(.*), \S*\)", r"\1)", line))
    if recorded != polled and lines[-1].endswith("exit status 0"):
        raise ValueError(f"{recorded} events were recorded, but {polled} polled")
    if name not in WITH_REGISTRATION:
        lines = [line for line in lines if not re.search(REGISTRATION, line)]
    return [line for line in lines if re.search(pattern, line)]


def record(release, python, names, known):
    """Returns the normalized log of each script in one release."""
    interpreter = environments.make(f"tf-matrix/{release}", release, python)
    plugins = ",".join(f"{each}={BUILD}/tests/testing/libprobe_{each}.so"
                       for each in ("ALPHA", "BETA"))
    logs = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([interpreter, "-B", HERE / "scripts.py", folder, plugins, *names],
                       check=True, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3"))
        for name in names:
            try:
                runs = [normalized(pathlib.Path(folder, f"{name}.{i}").read_text(),
                                   name, known[name][1])
                        for i in range(RUNS)]
            except ValueError as error:
                raise ValueError(f"{release}: {name}: {error}") from error
            for run in runs[1:]:
                if run != runs[0]:
                    lines = "\n".join(difflib.unified_diff(runs[0], run, lineterm=""))
                    raise ValueError(f"{release}: the runs of {name} differ:\n{lines}")
            logs[name] = runs[0]
    return logs


def as_text(purpose, logs):
    """Returns the text of a file: logs that are equal once, each after the line with
    its releases. `logs` is {release: lines}."""
    groups = {}
    for release, lines in logs.items():
        groups.setdefault("\n".join(lines), []).append(release)
    text = f"# {purpose}\n"
    for lines, releases in groups.items():
        text += f"== {' '.join(releases)}\n{lines}\n"
    return text


def scripts():
    """Returns {script: (what it does, the pattern of the lines to keep)}."""
    tree = ast.parse((HERE / "scripts.py").read_text())
    docs = {node.name: ast.get_docstring(node) for node in tree.body
            if isinstance(node, ast.FunctionDef)}
    assigned = {node.targets[0].id: node.value for node in tree.body
                if isinstance(node, ast.Assign)}
    constants = {name: node.value for name, node in assigned.items()
                 if isinstance(node, ast.Constant)}
    table = assigned["SCRIPTS"]
    found = {}
    for key, value in zip(table.keys, table.values):
        function, types, settings = value.elts[:3]
        text = " ".join(filter(None, (types.value, settings.value)))
        pattern = constants[value.elts[3].id] if value.elts[3:] else ""
        purpose = " ".join(docs[function.id].split())
        found[key.value] = f"{purpose} [{text}]", pattern
    return found


def main():
    parser = argparse.ArgumentParser(prog="tools/record", description=__doc__)
    parser.add_argument("--python", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true",
                        help="compare with the logs instead of writing them")
    parser.add_argument("--releases", default=",".join(RELEASES))
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    options = parser.parse_args()
    known = scripts()
    for name in options.scripts:
        if name not in known:
            parser.error(f"there is no script {name}; there are {', '.join(known)}")
    names = options.scripts or list(known)
    logs = {}
    for release in options.releases.split(","):
        print(f"{release} ...", file=sys.stderr, flush=True)
        try:
            for name, lines in record(release, options.python, names, known).items():
                logs.setdefault(name, {})[release] = lines
        except ValueError as error:
            sys.exit(f"tools/record: {error}")
    different = 0
    for name in names:
        text, path = as_text(known[name][0], logs[name]), LOGS / f"{name}.log"
        if not options.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(ROOT)} differs", file=sys.stderr)
            different = 1
    return different


if __name__ == "__main__":
    sys.exit(main())
