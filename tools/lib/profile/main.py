# SPDX-License-Identifier: Apache-2.0
"""Records and explains a profile: see tools/profile."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
REGIONS = "regions.log"
PROGRAM = os.environ.get("TFPLUG_PROGRAM", "tools/profile")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog=PROGRAM, usage="%(prog)s [OPTION]... SCRIPT.py [ARGUMENT]...\n"
        "       %(prog)s [OPTION]... -- -m MODULE [ARGUMENT]...\n"
        "       %(prog)s --read FILE.xplane.pb",
        description="Runs a Python command under TensorFlow's profiler, "
        "without changes to it, and writes OUT/profile.html, OUT/perfetto.json "
        "(for ui.perfetto.dev) and TensorFlow's own files (for TensorBoard).",
        epilog="Exit status: that of the command; 125 if there is no profile.")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    parser.add_argument("--out", type=pathlib.Path, default="profile",
                        help="the directory to write to; default: profile")
    parser.add_argument("--plugin", type=pathlib.Path, metavar="FILE.so",
                        help="load this plug-in")
    parser.add_argument("--installed", action="store_true",
                        help="load no plug-in but those that are installed: the "
                        "default without --plugin")
    parser.add_argument("--after", type=float, default=0, metavar="SECONDS",
                        help="start this long after the import of TensorFlow")
    parser.add_argument("--seconds", type=float, default=0,
                        help="stop after this time; default: at the end")
    parser.add_argument("--read", type=pathlib.Path, metavar="FILE",
                        help="explain an existing .xplane.pb file instead")
    options = parser.parse_args(arguments)
    if options.command[:1] == ["--"]:
        options.command.pop(0)
    if options.command and pathlib.Path(options.command[0]).name in (
            "python", "python3"):
        options.command.pop(0)
    if bool(options.command) == bool(options.read):
        parser.error("name a command, or a file with --read")
    script = (options.command and not options.command[0].startswith("-") and
              pathlib.Path(options.command[0]))
    for file in filter(None, (script, options.read, options.plugin)):
        if not file.is_file():
            parser.error(f"there is no file {file}")
    return options


def record(options):
    """Runs the command; returns its exit status. Regions are logged in OUT, unless they
    are logged elsewhere."""
    log = options.out.resolve() / REGIONS
    log.unlink(missing_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TFPLUG_LOG_REGIONS", str(log))
    settings = {"folder": str(options.out.resolve()), "after": options.after,
                "seconds": options.seconds, "plugin":
                str(options.plugin.resolve()) if options.plugin else ""}
    return subprocess.run([sys.executable, str(HERE / "child.py"),
                           json.dumps(settings), *options.command],
                          check=False).returncode


def explain(file, options):
    """Writes the page and the trace, and prints the most important lines."""
    import analysis
    import page
    import perfetto
    import region_log
    import summary
    import xspace
    try:
        trace = xspace.read(file)
    except ValueError as error:
        sys.exit(f"{PROGRAM}: {error}")
    reports = [analysis.analyze(device, trace) for device in trace.devices]
    reports = sorted((report for report in reports if report),
                     key=lambda report: -report.busy)
    title = " ".join(options.command) if options.command else str(file)
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / REGIONS
    regions = None
    if not options.read and log.exists():
        regions = region_log.read(log)
    page.write(trace, reports, f"Profile of {title}", options.out / "profile.html",
               regions)
    perfetto.write(trace, options.out / "perfetto.json")
    print(f"\n{PROGRAM}: {options.out}/profile.html and {options.out}/perfetto.json")
    for line in summary.lines(reports, trace, regions):
        print(f"  {line}")


def main():
    options = parse(sys.argv[1:])
    status = 0
    file = options.read
    if not file:
        before = set(options.out.rglob("*.xplane.pb"))
        status = record(options)
        new = set(options.out.rglob("*.xplane.pb")) - before
        if not new:
            print(f"{PROGRAM}: the command wrote no profile: it did not import "
                  "TensorFlow, or ended too early", file=sys.stderr)
            return status or 125
        file = max(new, key=lambda path: path.stat().st_mtime)
    explain(file, options)
    return status


if __name__ == "__main__":
    sys.exit(main())
