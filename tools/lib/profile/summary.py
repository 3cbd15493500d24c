# SPDX-License-Identifier: Apache-2.0
"""The most important lines of a profile, as text."""

import analysis


def time(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def size(count):
    for unit, unit_size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= unit_size:
            return f"{count / unit_size:.3g} {unit}"
    return f"{count} bytes"


def times(count):
    return "once" if count == 1 else f"{count:,} times"


def _device(report, trace):
    if trace.steps:
        total = sum(step.duration for step in trace.steps)
        noun = "step" if len(trace.steps) == 1 else "steps"
        steps = f", {len(trace.steps):,} {noun} of {time(total / len(trace.steps))}"
    else:
        steps = ""
    yield (f"{report.device} ran kernels for {time(report.busy)}, "
           f"{report.share(report.busy):.0f} % of the {time(report.span)} from the "
           f"first to the last{steps}")
    idle = sorted(report.idle.items(), key=lambda part: -part[1])
    parts = [f"{report.share(part):.0f} % {analysis.REASONS[reason].partition(':')[0]}"
             for reason, part in idle if report.share(part) >= 0.5]
    if parts:
        yield "it was idle " + ", ".join(parts)
    for name, number, total in analysis.gaps_by_node(report.gaps, "host")[:1]:
        yield (f"it waited longest for the host before {name}: {times(number)}, "
               f"{time(total)} in total")
    for op in report.ops[:4]:
        share = 100 * op.total / max(1, sum(op.total for op in report.ops))
        node, longest = op.nodes.most_common(1)[0]
        yield (f"{op.name} took {share:.0f} % of the kernels' time: "
               f"{times(op.runs)}, {time(op.total / op.runs)} each, most of it "
               f"({time(longest)}) in {node or 'nodes without a name'}")
    for name, (number, total, duration) in sorted(
            report.copies.items(), key=lambda copy: -copy[1][2])[:2]:
        rate = total / max(1, duration)  # bytes per nanosecond = GB/s
        yield (f"{name} ran {times(number)}: {size(total)} in {time(duration)} "
               f"({rate:.2g} GB/s)")


def _memory(trace):
    allocators = sorted(trace.memory.items(), key=lambda use: -max(
        row[1] for row in use[1]))
    for name, uses in allocators[:1]:
        at, most, _, free = max(uses, key=lambda use: use[1])
        if most:
            yield (f"the allocator {name} had at most {size(most)} in use, "
                   f"{time(at)} after the start; {size(free)} were free")


def _regions(regions):
    sizes = [region["nodes"] for region in regions["regions"]]
    outside = sum(kind["nodes"] for kind in regions["outside"])
    noun = "node is" if outside == 1 else "nodes are"
    yield (f"{len(sizes)} regions run {sum(sizes):,} nodes, and {outside:,} {noun} in "
           "none: see the page. While a profile is recorded, regions run kernel by "
           "kernel")


def lines(reports, trace, regions=None):
    """Returns at most eleven lines, of the busiest device. `regions`: of
    region_log.read()."""
    if trace.dropped:
        yield (f"WARNING: {trace.dropped:,} events are missing; record a shorter "
               "time with --seconds")
    if not reports:
        yield ("no device ran a kernel: the plug-in was not loaded before the profile "
               "started (--plugin FILE.so loads it), has no profiler, or nothing was placed on it")
    for report in reports[:1]:
        yield from _device(report, trace)
    yield from _memory(trace)
    if regions:
        yield from _regions(regions)
    others = [report.device for report in reports[1:]]
    if others:
        yield f"{', '.join(others)}: see the page"
