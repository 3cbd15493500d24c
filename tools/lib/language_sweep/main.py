# SPDX-License-Identifier: Apache-2.0
"""Compiles generated kernels in each language with its compilers: see
tools/language-sweep."""

import argparse
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import traceback

from judges import JUDGES

FAILURE = 125
_SWEEP = pathlib.Path(__file__).resolve().parents[1] / "op_sweep/main.py"
_SHOWN = 5  # sources that a judge refuses, with its messages


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/language-sweep", epilog="Other options are those of tools/op-sweep.",
        description="Compiles the kernels of tools/op-sweep in each language with the "
        "language's compilers. Needs no GPU.")
    parser.add_argument("--plugin", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--sources", type=pathlib.Path, required=True, metavar="FOLDER",
                        help="the sources; if there are none, the op sweep runs and "
                        "stores them there")
    names = ", ".join(judge.name for judge in JUDGES)
    parser.add_argument("--judge", default="", metavar="NAME[,NAME]",
                        help=f"only these compilers: {names}")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="compile N sources with each compiler")
    parser.add_argument("--few", action="store_true",
                        help="compile as many as take a second or two")
    parser.add_argument("--sample-seed", type=int, default=1, metavar="N")
    parser.add_argument("--compilers", type=int, default=os.cpu_count(), metavar="N",
                        help="processes that compile")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE.md",
                        help="write the results to the rows of a table")
    options, others = parser.parse_known_args(arguments)
    wanted = set(filter(None, options.judge.split(",")))
    unknown = wanted - {judge.name for judge in JUDGES}
    if unknown:
        parser.error(f"--judge: there is no {', '.join(sorted(unknown))}; there are {names}")
    if options.sample is not None and options.sample < 1:
        parser.error("--sample: at least 1")
    options.judges = [judge for judge in JUDGES if not wanted or judge.name in wanted]
    options.must_have_all = bool(wanted)
    return options, others


def collect(options, others):
    """Runs the op sweep, which stores the sources. Returns its last line."""
    options.sources.mkdir(parents=True, exist_ok=True)
    sweep = subprocess.run(
        [sys.executable, "-B", str(_SWEEP), "--plugin", str(options.plugin), *others],
        check=False, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "TFPLUG_LANGUAGE_SOURCES": str(options.sources.resolve())})
    if sweep.returncode == FAILURE:
        sys.exit(FAILURE)
    return sweep.stdout


def _judge(task):
    at, path, folder = task
    return path, JUDGES[at].refusals(path, folder)


def judge_all(judge, paths, options):
    """Prints what the compiler refuses. Returns its version and the counts of all
    sources, compiled ones and refused ones; or None if the machine lacks it."""
    version = judge.find_version()
    if version is None:
        print(f"{judge.name}: no compiler for {judge.language}; install {judge.package}")
        return None
    paths = [path for path in paths
             if path.suffix == judge.extension and judge.reads(path.read_bytes())]
    count = judge.few if options.few else options.sample or len(paths)
    chosen = random.Random(options.sample_seed).sample(paths, min(count, len(paths)))
    refused = 0
    with tempfile.TemporaryDirectory() as folder, \
            multiprocessing.Pool(options.compilers) as pool:
        if judge.prepare:
            judge.prepare(pathlib.Path(folder))
        for path, messages in pool.imap_unordered(
                _judge, ((JUDGES.index(judge), path, folder) for path in chosen)):
            refused += bool(messages)
            if messages and refused <= _SHOWN:
                print(f"{judge.name} refuses {path}:", *messages, sep="\n")
    print(f"{judge.name}: {judge.language}, {version}: {len(chosen)} of {len(paths)} "
          f"sources, {refused} refused", flush=True)
    return version, len(paths), len(chosen), refused


def record(file, judge, result):
    """Replaces the judge's row in a table, or adds it to the end of the file."""
    version, total, chosen, refused = result
    row = (f"| {judge.language} | `{judge.name}` | {version} | {total:,} | {chosen:,} | "
           f"{refused} |")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    pattern = re.compile(rf"^\| [^|]* \| `{re.escape(judge.name)}` \|.*$", re.M)
    text, found = pattern.subn(lambda _: row, text)
    file.write_text(text if found else text + row + "\n", encoding="utf-8")


def main(arguments=None):
    options, others = parse(arguments)
    extensions = {judge.extension for judge in JUDGES}
    paths = []
    for attempt in range(2):
        paths = sorted(path for path in options.sources.glob("*")
                       if path.suffix in extensions)
        if paths or attempt or options.plugin is None:
            break
        print(collect(options, others), flush=True)
    if not paths:
        print(f"tools/language-sweep: no sources in {options.sources}", file=sys.stderr)
        return FAILURE
    wrong = 0
    for judge in options.judges:
        result = judge_all(judge, paths, options)
        if result is None:
            if options.must_have_all:
                return FAILURE
            continue
        wrong += result[3]
        if result[2] == 0:
            print(f"tools/language-sweep: no source for {judge.name}", file=sys.stderr)
            return FAILURE
        if options.record:
            record(options.record, judge, result)
    return min(wrong, 100)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        sys.exit(FAILURE)
