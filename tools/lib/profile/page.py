# SPDX-License-Identifier: Apache-2.0
"""Writes a profile as one self-contained HTML page."""

import html
import json
import pathlib

import analysis
import region_log
import summary

HERE = pathlib.Path(__file__).resolve().parent
MOST_EVENTS = 200000  # in the page's timeline
MOST_THREADS = 12
MOST_USES = 4000  # of one allocator


def _row(line, shortest, names):
    """Returns a row of the timeline: flat lists of begins, durations (ns) and names."""
    begins, durations, ids, details = [], [], [], []
    for event in line.events:
        if event.duration <= shortest:
            continue
        begins.append(event.begin)
        durations.append(event.duration)
        ids.append(names.setdefault(event.name, len(names)))
        details.append(names.setdefault(_detail(event), len(names)))
    return {"name": line.name, "begin": begins, "duration": durations,
            "label": ids, "detail": details}


def _detail(event):
    parts = [event.node] if event.node else []
    if event.stats.get("bytes"):
        parts.append(summary.size(int(event.stats["bytes"])))
    if event.stats.get("step") is not None:
        parts.append(f"step {event.stats['step']}")
    return " · ".join(parts)


def _is_launching(line):
    return sum(event.correlation is not None for event in line.events)


def _timeline(trace):
    """Returns the rows, without the shortest events if there are too many."""
    threads = sorted(trace.threads, key=_is_launching, reverse=True)[:MOST_THREADS]
    groups = [(device.name, device.streams) for device in trace.devices]
    groups.append(("host", [line for line in threads if _is_launching(line)] or threads))
    durations = sorted((event.duration for _, lines in groups for line in lines
                        for event in line.events), reverse=True)
    shortest = durations[MOST_EVENTS] if len(durations) > MOST_EVENTS else -1
    names = {}
    rows = [{"group": name, **_row(line, shortest, names)}
            for name, lines in groups for line in lines]
    return {"rows": rows, "names": list(names), "duration": trace.duration,
            "left_out": sum(duration <= shortest for duration in durations)}


def _memory(trace):
    """Returns the bytes in use of each allocator, thinned out to the peaks."""
    charts = []
    for name, uses in trace.memory.items():
        every = -(-len(uses) // MOST_USES)
        points = [max(uses[i:i + every], key=lambda use: use[1])
                  for i in range(0, len(uses), every)]
        if max(point[1] for point in points):
            charts.append({"name": name, "points": [point[:2] for point in points]})
    return sorted(charts, key=lambda chart: -max(point[1] for point in chart["points"]))


def _cell(text, kind="td"):
    is_number = isinstance(text, tuple)
    text = text[0] if is_number else text
    return f"<{kind}{' class=n' if is_number else ''}>{html.escape(str(text))}</{kind}>"


def _table(head, rows):
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>"
                   for row in rows)
    return (f"<table><tr>{''.join(_cell(cell, 'th') for cell in head)}</tr>"
            f"{body}</table>")


def _bar(parts):
    """Returns a bar of (class, percent, text)."""
    pieces = "".join(
        f'<i class="{kind}" style="width:{share:.2f}%" title="{html.escape(text)}"></i>'
        for kind, share, text in parts if share >= 0.05)
    return f'<div class="bar">{pieces}</div>'


def _ops(report):
    total = sum(op.total for op in report.ops)
    rows = []
    for op in report.ops[:30]:
        node, longest = op.nodes.most_common(1)[0]
        rows.append((op.name, (f"{100 * op.total / max(1, total):.1f} %",),
                     (summary.time(op.total),), (f"{op.runs:,}",),
                     (summary.time(op.total / op.runs),), (summary.time(op.longest),),
                     f"{node} ({summary.time(longest)})" if node else ""))
    return _table(("op", ("share",), ("total",), ("runs",), ("average",), ("longest",),
                   "node with most time"), rows)


def _idle(report):
    parts = [("busy", report.share(report.busy), "kernels")]
    parts += [(reason, report.share(time), text)
              for (reason, text), time in zip(analysis.REASONS.items(),
                                              report.idle.values())]
    legend = "".join(
        f'<span><b class="{kind}"></b>{share:.1f} % {html.escape(text)}</span>'
        for kind, share, text in parts)
    rows = [(summary.time(gap.begin), (summary.time(gap.duration),),
             gap.next.node or gap.next.name,
             ", ".join(f"{summary.time(time)} {reason}" for reason, time in sorted(
                 gap.reasons.items(), key=lambda part: -part[1]) if time))
            for gap in report.gaps[:10]]
    by_host = analysis.gaps_by_node(report.gaps, "host")[:10]
    return (_bar(parts) + f'<p class="legend">{legend}</p>' +
            "<h3>Longest times without a kernel</h3>" +
            _table(("at", ("duration",), "until", "reasons"), rows) +
            "<h3>Most time waiting for the host</h3>" +
            _table(("before", ("times",), ("total",)), [
                (name, (f"{number:,}",), (summary.time(time),))
                for name, number, time in by_host]))


def _copies(report):
    return _table(("kind", ("number",), ("bytes",), ("time",), ("GB/s",)), [
        (name, (f"{number:,}",), (summary.size(size),), (summary.time(time),),
         (f"{size / max(1, time):.2f}",))
        for name, (number, size, time) in report.copies.items()])


def _sections(report):
    name = html.escape(report.device)
    yield f"<h2>{name}: busy and idle</h2>{_idle(report)}"
    yield f"<h2>{name}: ops by time</h2>{_ops(report)}"
    if report.copies:
        yield f"<h2>{name}: copies and fills</h2>{_copies(report)}"


def _regions(regions):
    head = ["region", ("nodes",), ("inputs",), "ends at"]
    rows = [[region["name"], (region["nodes"],), (region["inputs"],),
             region_log.ends_text(region)] for region in regions["regions"]]
    if any(region["not_recorded"] for region in regions["regions"]):
        head.append("not recorded")
        for row, region in zip(rows, regions["regions"]):
            row.append(region["not_recorded"])
    outside = [(kind["op"], (kind["nodes"],), kind["why"], kind["example"])
               for kind in regions["outside"]]
    return ("<h2>Regions</h2>" + _table(head, rows) +
            "<h3>Nodes in no region</h3>" +
            _table(("op", ("nodes",), "why", "for example"), outside))


def write(trace, reports, title, path, regions=None):
    """`regions`: of region_log.read(), or None."""
    lines = "".join(f"<li>{html.escape(line)}</li>"
                    for line in summary.lines(reports, trace, regions))
    data = json.dumps({"timeline": _timeline(trace), "memory": _memory(trace)},
                      separators=(",", ":")).replace("</", "<\\/")
    text = (HERE / "page.html").read_text(encoding="utf-8")
    for hole, value in (
            ("TITLE", html.escape(title)), ("LINES", lines),
            ("SECTIONS", "".join(section for report in reports
                                 for section in _sections(report))
                     + (_regions(regions) if regions else "")),
            ("SCRIPT", (HERE / "page.js").read_text(encoding="utf-8")),
            ("DATA", data)):
        text = text.replace(f"@{hole}@", value)
    pathlib.Path(path).write_text(text, encoding="utf-8")
