# SPDX-License-Identifier: Apache-2.0
"""Compares a plug-in's kernels with TensorFlow's CPU kernels: see tools/op-sweep."""

import argparse
import difflib
import itertools
import json
import os
import pathlib
import resource
import sys
import time
import traceback

# For the modules of this package.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import installed_plugins

PROGRAM = os.environ.get("TFPLUG_PROGRAM", "tools/op-sweep")
DEFAULT = "; default: examples/cpu_sim" * PROGRAM.startswith("tools/")

FAILURE = 125
MOST_MISMATCHES = 100
_MORE_BYTES = 8 << 30  # of addresses that hostile cases may use in a process
_PLACE = "/job:localhost/replica:0/task:0/device:{}:0"
_CASES_PER_TASK = 4  # of which the last has a mistake


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(FAILURE, f"{PROGRAM}: {message}\n")


def parse(arguments):
    parser = _Parser(
        prog=PROGRAM, description="Runs each op and type for which a plug-in "
        "registers a kernel with random arguments, and compares results and errors "
        "with those of TensorFlow's CPU kernel.",
        epilog=f"Exit status: the number of mismatches, at most {MOST_MISMATCHES}; "
        f"{FAILURE} for any other failure. The page \"Judge the kernels of a device\" of "
        "tfplug's documentation explains the report.")
    parser.add_argument("--plugin", type=pathlib.Path, metavar="FILE.so",
                        help="the plug-in" + DEFAULT)
    parser.add_argument("--device", metavar="TYPE", help="the device type, such as "
                        "SIM; default: that of the plug-in")
    parser.add_argument("--op", action="append", default=[], metavar="OP[,OP...]",
                        help="only these ops")
    parser.add_argument("--types", default="", metavar="ATTR=TYPE,...",
                        help="only these types, as in a report")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="draw other arguments; default: 1")
    parser.add_argument("--seconds", type=float, default=60, metavar="N",
                        help="begin no case after this time (default 60), which does not "
                        "include the start, and end all after a fifth more")
    parser.add_argument("--cases", type=int, default=None, metavar="N",
                        help="run at most N cases of each op and type")
    parser.add_argument("--case", metavar="N", help="run only this case, as in a report")
    parser.add_argument("--continue", type=pathlib.Path, metavar="FILE", dest="earlier",
                        help="run only the types that this report of --json did not "
                        "reach in time")
    parser.add_argument("--hostile", action="store_true", help="run arguments that no "
                        "program should have; report only crashes, hangs and writes "
                        "outside of tensors")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1),
                        metavar="N", help="processes that run cases; 0: this one does, which "
                        "ends if one crashes, as a debugger needs it")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="also write the report to FILE; - writes it to standard "
                        "output instead of the text")
    options = parser.parse_args(arguments)
    options.op = [op for text in options.op for op in text.split(",")]
    if options.plugin is None:
        parser.error("name a plug-in: --plugin FILE.so")
    if not options.plugin.is_file():
        parser.error(f"there is no file {options.plugin}")
    if options.earlier:
        try:
            report = json.loads(options.earlier.read_text(encoding="utf-8"))
            options.earlier = frozenset(report["not_reached"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            parser.error(f"--continue: {options.earlier} is not a report that --json "
                         f"wrote: {type(error).__name__}: {error}")
        if not options.earlier:
            parser.error("--continue: the earlier run reached all types")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    return options


def _open(options):
    """Loads the plug-in; returns the device type, the Units, the ops that TensorFlow lacks,
    and the types of kernels that have no device."""
    if options.hostile:
        # Memory is checked for writes outside of tensors (cpu_sim, and cuda_like on its
        # emulated driver), and kernels that ask for too much of it get none. (PoCL would
        # abort in a kernel that uses memory which it could not allocate.)
        os.environ.update(CPU_SIM_CANARIES="1", CPU_SIM_MEMORY="256M", CUDA_LIKE_BFC="0",
                          CUDA_LIKE_CANARIES="1", CUDA_LIKE_MEMORY="256M",
                          POCL_MEMORY_LIMIT="1")
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(str(options.plugin.resolve()))
    tf.config.set_soft_device_placement(False)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    from op_sweep import plan
    all_types = plan.device_types()
    present = {each.device_type for each in tf.config.list_physical_devices()}
    types = [each for each in all_types if each in present] or all_types
    device = options.device or (types[0] if len(types) == 1 else None)
    if types and device in set(all_types) - set(types):
        raise ValueError(f"There is no device of the type {device}, only of {', '.join(types)}.")
    if device not in types:
        raise ValueError(f"Select a device type with --device: {', '.join(types)}."
                         if types else "The plug-in registers no kernel for a device type of "
                         "its own: CPU and GPU are TensorFlow's.")
    units, unknown = plan.units(device, options.seed, options.op, options.types)
    if options.earlier:
        units = [unit for unit in units if unit.name in options.earlier]
    return device, units, unknown, sorted(set(all_types) - set(types))


def _limit_addresses(place):
    """Lets what asks for too much memory fail. A driver with many threads has 10 GiB of
    addresses before the first case."""
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    with tf.device(place):
        tf.constant([0.0]).numpy()  # The device starts; this needs no kernel.
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + _MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def judge_case(options, unit, number, place, report, wanted):
    """Returns the Verdict of a case, also of one for which there are no arguments."""
    # Imported when TensorFlow has loaded the plug-in.
    from op_sweep import draw, fused, hostile, judge, plan, table  # noqa: F401
    try:
        if options.hostile:
            return hostile.judge(unit, options.seed, number, place, report,
                                 on_cpu=wanted == "crash")
        module = fused if plan.FUSED.fullmatch(unit.op) else judge
        return module.judge(unit, options.seed, number, place, report)
    except draw.Undrawable as error:
        text = str(error)
    except Exception:  # pylint: disable=broad-except
        text = " ".join(traceback.format_exc().splitlines()[-3:])
    return judge.Verdict(judge.BAD_ARGUMENTS, number=str(number), text=text)


def serve(pipe, options):
    """Answers tasks: "plan", or (unit's index, case numbers, kind of mismatch after which
    to stop) with verdicts."""
    from op_sweep import workers  # pylint: disable=import-outside-toplevel
    try:
        answer = device, units, *_ = _open(options)
    except ValueError as error:
        pipe.send(("answer", str(error)))
        return
    except Exception as error:  # pylint: disable=broad-except
        pipe.send(("answer", f"{type(error).__name__}: {error}"))
        return
    place = _PLACE.format(device)
    if options.hostile:
        _limit_addresses(place)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        if task == "plan":
            pipe.send(("answer", answer))
            continue
        at, numbers, wanted = task
        verdicts = []
        for number in numbers:
            if wanted and any(each.kind == wanted for each in verdicts):
                break
            report = lambda phase, case: workers.begin(  # pylint: disable=C3001
                pipe, phase, number, case)  # pylint: disable=W0640
            verdicts.append(judge_case(options, units[at], number, place, report, wanted))
        pipe.send(("answer", verdicts))


def _run_here(options, units, clock, found):
    """Runs the cases in this process, which loads the plug-in."""
    device, *_ = _open(options)
    place = _PLACE.format(device)
    clock.start()
    for task in _tasks(options, units, clock):
        found.add(task, [judge_case(options, units[task[0]], number, place, lambda *_: None,
                                    "") for number in task[1]])


def _tasks(options, units, clock):
    """Generates (unit's index, case numbers), all units before the next numbers. The clock
    counts those of this round, or up to --cases, for which there is no time."""
    if options.case:
        yield from ((at, [options.case], "") for at in range(len(units)))
        return
    for start in itertools.count(0, _CASES_PER_TASK):
        end = start + _CASES_PER_TASK
        for at in range(len(units)):
            numbers = [n for n in range(start, end)
                       if options.cases is None or n < options.cases]
            if not numbers:
                return
            if clock.is_over():
                clock.left_out += len(numbers) * (len(units) - at)
                if options.cases is not None:
                    clock.left_out += max(0, options.cases - end) * len(units)
                return
            yield at, numbers, ""


def main(arguments=None):
    options = parse(arguments)
    # TensorFlow loads no plug-in by itself.
    installed_plugins.hide()
    os.environ.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    begin = time.monotonic()
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    from op_sweep import report, workers

    plans = []
    workers.run_all(iter(["plan"]), serve, options, 1,
                    lambda _, answer: plans.append(answer))
    if not isinstance(plans[0], tuple):
        failure = plans[0] if isinstance(plans[0], str) else (
            f"the plug-in aborts ({plans[0].how}):\n{plans[0].log}")
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILURE
    device, units, unknown, types_without_device = plans[0]
    if not units:
        ops = dir(tf.raw_ops)
        near = [f"did you mean {other}?" for op in options.op if op not in ops
                for other in difflib.get_close_matches(op, ops, 1)]
        print(f"{PROGRAM}: no registered kernel has these ops and types"
              + "; ".join(["", *near]), file=sys.stderr)
        return FAILURE
    found = report.Report(options, device, units, unknown)
    clock = workers.Clock(options.seconds)

    def on_answer(task, answer):
        clock.start()
        return found.add(task, answer)
    if options.jobs:
        workers.run_all(_tasks(options, units, clock), serve, options,
                        min(options.jobs, len(units)), on_answer, clock, found.add_cut)
    else:
        _run_here(options, units, clock, found)
    document = found.document(tensorflow=tf.__version__,
                              seconds=round(time.monotonic() - begin, 1),
                              seconds_of_cases=round(clock.seconds(), 1),
                              left_out=clock.left_out,
                              types_without_device=types_without_device)
    if options.json:
        text = json.dumps(document, indent=1) + "\n"
        if str(options.json) == "-":
            sys.stdout.write(text)
        else:
            options.json.write_text(text, encoding="utf-8")
    if str(options.json) != "-":
        print(report.text(document))
    return min(len(document["mismatches"]), MOST_MISMATCHES)


if __name__ == "__main__":
    sys.exit(main())
