# SPDX-License-Identifier: Apache-2.0
"""What a profile means: ops by time, idle time by reason, copies, memory."""

import bisect
import collections
import dataclasses

# Why a device has nothing to do.
REASONS = {
    "trace": "waiting for Python to trace: a tf.function was called for the first time, or "
             "with other shapes",
    "host": "waiting for the host: the next kernel was not launched yet",
    "copy": "waiting for a copy or a fill",
    "dependency": "waiting for another stream or an event",
    "start": "launched, but not started yet",
}


@dataclasses.dataclass
class Op:
    """All runs of the kernels of one op."""
    name: str
    runs: int = 0
    total: int = 0  # nanoseconds
    longest: int = 0
    nodes: dict = dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass
class Gap:
    """A time in which no kernel ran."""
    begin: int
    end: int
    next: object  # the kernel that ended it
    reasons: dict  # nanoseconds by reason

    @property
    def duration(self):
        return self.end - self.begin


@dataclasses.dataclass
class Report:
    """The analysis of one device."""
    device: str
    begin: int
    end: int
    busy: int  # nanoseconds with a kernel
    ops: list
    gaps: list
    idle: dict  # nanoseconds by reason
    copies: dict  # name: (number, bytes, nanoseconds)

    @property
    def span(self):
        return self.end - self.begin

    def share(self, part):
        return 100 * part / max(1, self.span)


def union(events):
    """Returns the times that events cover, as disjoint [begin, end] in order."""
    merged = []
    for event in sorted(events, key=lambda event: event.begin):
        if merged and event.begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], event.end)
        else:
            merged.append([event.begin, event.end])
    return merged


def covered(intervals, begin, end):
    """Returns the part of `intervals`, which are disjoint, in [begin, end]."""
    at = max(0, bisect.bisect_left(intervals, [begin, begin]) - 1)
    total = 0
    while at < len(intervals) and intervals[at][0] < end:
        total += max(0, min(end, intervals[at][1]) - max(begin, intervals[at][0]))
        at += 1
    return total


def op_of(event):
    """Returns the op of a kernel: the second part of name:Op."""
    return event.stats.get("tf_op", "").rpartition(":")[2] or event.name


def _ops(kernels):
    ops = {}
    for kernel in kernels:
        name = op_of(kernel)
        op = ops.setdefault(name, Op(name))
        op.runs += 1
        op.total += kernel.duration
        op.longest = max(op.longest, kernel.duration)
        op.nodes[kernel.node] += kernel.duration
    return sorted(ops.values(), key=lambda op: -op.total)


def _traces(threads):
    """Returns the calls in which Python traced a tf.function, as far as the graph's run,
    their last one."""
    found = []
    for thread in threads:
        runs = [event for event in thread.events if event.name == "EagerExecute"]
        begins = [run.begin for run in runs]
        for call in thread.events:
            if not str(call.stats.get("tf_function_call", "")).startswith("traced"):
                continue
            at = bisect.bisect_right(begins, call.end) - 1
            traced = dataclasses.replace(call)
            if at >= 0 and runs[at].begin >= call.begin:
                traced.end = runs[at].begin
            found.append(traced)
    return union(found)


def _gaps(kernels, moves, waits, launches, traces):
    """Returns the gaps between kernels. A part with a copy or a fill counts as such;
    of the rest, the part before the launch of the next kernel is the host's, which may
    have been tracing."""
    gaps = []
    busy_until = kernels[0].end
    for kernel in kernels[1:]:
        begin, end = busy_until, kernel.begin
        busy_until = max(busy_until, kernel.end)
        if end <= begin:
            continue
        launch = launches.get(kernel.correlation)
        launched = min(max(launch.end if launch else begin, begin), end)
        copying = covered(moves, begin, end)
        copying_late = covered(moves, launched, end)
        waiting = min(covered(waits, launched, end), end - launched - copying_late)
        host = launched - begin - (copying - copying_late)
        tracing = min(covered(traces, begin, launched), host)
        reasons = {
            "trace": tracing,
            "host": host - tracing,
            "copy": copying,
            "dependency": waiting,
            "start": end - launched - copying_late - waiting,
        }
        gaps.append(Gap(begin, end, kernel, reasons))
    return gaps


def _copies(events):
    found = {}
    for event in events:
        number, size, time = found.get(event.name, (0, 0, 0))
        found[event.name] = (number + 1, size + int(event.stats.get("bytes") or 0),
                             time + event.duration)
    return found


def analyze(device, trace):
    """Returns the Report of a device, or None if it ran no kernel."""
    kernels = device.events("kernel")
    if not kernels:
        return None
    moves = device.events("copy", "fill")
    gaps = _gaps(kernels, union(moves), union(device.events("wait")), trace.launches,
                 _traces(trace.threads))
    idle = {reason: sum(gap.reasons[reason] for gap in gaps) for reason in REASONS}
    return Report(
        device.name, kernels[0].begin, max(kernel.end for kernel in kernels),
        sum(end - begin for begin, end in union(kernels)), _ops(kernels),
        sorted(gaps, key=lambda gap: -gap.duration), idle, _copies(moves))


def gaps_by_node(gaps, reason):
    """Returns [(node or op of the next kernel, gaps, nanoseconds)], longest first."""
    found = {}
    for gap in gaps:
        if gap.reasons[reason] > 0:
            name = gap.next.node or gap.next.name
            number, total = found.get(name, (0, 0))
            found[name] = (number + 1, total + gap.reasons[reason])
    return sorted(((name, *sums) for name, sums in found.items()),
                  key=lambda row: -row[2])
