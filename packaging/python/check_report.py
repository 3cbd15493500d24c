# SPDX-License-Identifier: Apache-2.0
"""The reports of tfplug check: text, JSON and one file of HTML."""

import html
import sys
import textwrap

_COLOURS = {"passed": "32", "warning": "33", "failed": "31", "skipped": "2"}
_STYLE = """
body { font-family: sans-serif; max-width: 60em; margin: 2em auto; }
td { vertical-align: top; padding: .3em .8em .3em 0; border-top: 1px solid #ccc; }
.failed { color: #b00; } .warning { color: #a60; } .passed { color: #070; }
.skipped, .note { color: #666; }
"""


class Progress:
    """Shows on a terminal which check runs."""

    def __init__(self, count, is_wanted):
        self._count, self._done = count, 0
        self._is_shown = is_wanted and sys.stderr.isatty()

    def say(self, text):
        if self._is_shown:
            print(f"\r\033[K[{self._done}/{self._count}] {text}", end="",
                  file=sys.stderr, flush=True)

    def done(self, _):
        self._done += 1

    def clear(self):
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _summary(results):
    counts = {}
    for result in results:
        counts[result.status] = counts.get(result.status, 0) + 1
    return ", ".join(f"{counts[status]} {status}" for status in _COLOURS
                     if status in counts)


def _merge(findings):
    """Makes one line of neighbours that differ in a number before ": " only."""
    merged = []
    for level, text in findings:
        start, colon, rest = text.partition(": ")
        is_release = colon and start[0].isdigit() and " " not in start
        if is_release and merged and merged[-1][2] == rest:
            merged[-1][1] = f"{merged[-1][1].split()[0]} to {start}"
        else:
            merged.append([level, start if is_release else text, rest if is_release else ""])
    return [(level, f"{start}: {rest}" if rest else start)
            for level, start, rest in merged]


def as_text(results, in_colour):
    def paint(status, text):
        return f"\033[{_COLOURS[status]}m{text}\033[0m" if in_colour else text

    lines, skipped = [], {}
    for result in results:
        if result.status == "skipped":
            skipped.setdefault(result.findings[-1][1], []).append(result.check.name)
            continue
        lines.append(f"{paint(result.status, f'{result.status:>7}')}  "
                     f"{result.check.name}")
        for level, text in _merge(result.findings):
            mark = "" if level in ("note", "skipped") else f"{level}: "
            lines += textwrap.wrap(mark + text, 96, initial_indent=" " * 11,
                                   subsequent_indent=" " * 13, break_long_words=False,
                                   max_lines=12 if mark else 3,
                                   placeholder=" ... (see --json)")
        if result.status in ("failed", "warning"):
            lines += textwrap.wrap("-> " + result.check.remedy, 96,
                                   initial_indent=" " * 11, subsequent_indent=" " * 14)
    for reason, names in skipped.items():
        lines += textwrap.wrap(f"{paint('skipped', 'skipped')}  {', '.join(names)}: "
                               f"{reason}", 96, subsequent_indent=" " * 11)
    return "\n".join([*lines, _summary(results)])


def as_json(plugins, results):
    return {"plugins": list(map(str, plugins)), "checks": [
        {"name": result.check.name, "status": result.status,
         "findings": [{"level": level, "text": text} for level, text in result.findings],
         "remedy": result.check.remedy if result.status in ("failed", "warning") else ""}
        for result in results]}


def as_html(plugins, results):
    rows = []
    for result in results:
        cells = [f'<p class="{html.escape(level)}">{html.escape(text)}</p>'
                 for level, text in result.findings]
        if result.status in ("failed", "warning"):
            cells.append(f"<p><b>Remedy:</b> {html.escape(result.check.remedy)}</p>")
        rows.append(f'<tr><td class="{result.status}">{result.status}</td>'
                    f"<td><b>{html.escape(result.check.name)}</b><br>"
                    f"{html.escape(result.check.text)}</td><td>{''.join(cells)}</td></tr>")
    title = html.escape("tfplug check " + " ".join(map(str, plugins)))
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>"
            f"<p>{_summary(results)}</p><table>{''.join(rows)}</table></body></html>\n")
