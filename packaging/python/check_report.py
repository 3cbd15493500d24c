# SPDX-License-Identifier: Apache-2.0
"""The reports of tfplug check: text, JSON and one file of HTML."""

import collections
import html
import pathlib
import sys
import textwrap

_COLOURS = {"passed": "32", "partly passed": "32", "warning": "33", "failed": "31",
            "skipped": "2"}
_WITHOUT_MARK = ("note", "partly", "skipped")  # levels of findings
_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #59626c; --line: #d5dae0;
  --page: #fff; --card: #f6f8fa; --passed: #1a7f37; --warning: #8a5a00; --failed: #c02020;
  --skipped: #59626c; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --soft: #9aa4ae;
  --line: #3a424b; --page: #15191e; --card: #1e242b; --passed: #56c271;
  --warning: #e0a83c; --failed: #ff7b72; --skipped: #9aa4ae; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1rem; margin: 0; }
p { margin: .25rem 0; } ul { margin: .25rem 0; padding-left: 1.2rem; }
section { background: var(--card); border-left: .25rem solid var(--line); margin: .75rem 0;
  padding: .6rem .9rem; border-radius: .25rem; }
summary { cursor: pointer; } details section { background: none; }
.soft, .note { color: var(--soft); }
"""
# A section has the class "partly passed", which are two.
_STYLE += "".join(f".{status} {{ border-color: var(--{status}); }} "
                  f".{status} b {{ color: var(--{status}); }}\n" for status in _COLOURS
                  if " " not in status)


class Progress:
    """Shows which check runs: in one line of a terminal, in a line each of a log."""

    def __init__(self, count, is_wanted):
        self._count, self._done = count, 0
        self._is_shown = is_wanted
        self._is_terminal = sys.stderr.isatty()

    def say(self, text):
        if self._is_shown:
            begin, end = ("\r\033[K", "") if self._is_terminal else ("", "\n")
            print(f"{begin}[{self._done}/{self._count}] {text}", end=end,
                  file=sys.stderr, flush=True)

    def done(self, _):
        self._done += 1

    def clear(self):
        if self._is_shown and self._is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _summary(results):
    counts = {}
    for result in results:
        counts[result.status] = counts.get(result.status, 0) + 1
    return ", ".join(f"{counts[status]} {status}" for status in _COLOURS
                     if status in counts)


def _merge(findings):
    """Makes one line of equal findings, and of neighbours that differ in a number before
    ": " only."""
    merged = []
    for (level, text), count in collections.Counter(findings).items():
        text += f" ({count} times)" if count > 1 else ""
        start, _, rest = text.partition(": ")
        is_release = rest and start[:1].isdigit() and " " not in start
        if is_release and merged and merged[-1][::2] == [level, rest]:
            merged[-1][1] = f"{merged[-1][1].split()[0]} to {start}"
        else:
            merged.append([level, start if is_release else text, rest if is_release else ""])
    return [(level, f"{start}: {rest}" if rest else start)
            for level, start, rest in merged]


def _remedy(result):
    """Returns what to do about a check that did not pass, or ""."""
    if result.status not in ("failed", "warning"):
        return ""
    thrown = ["C++ exception" in text for level, text in result.findings
              if level not in _WITHOUT_MARK]
    if thrown and all(thrown):
        return "The function that is named throws: mend that, or return an error from it."
    return result.check.remedy


def as_text(results, in_colour):
    def paint(status, text):
        return f"\033[{_COLOURS[status]}m{text}\033[0m" if in_colour else text

    lines, skipped = [], {}
    for result in results:
        if result.status == "skipped":
            skipped.setdefault(result.findings[-1][1], []).append(result.check.name)
            continue
        # "partly passed (14 % reached)"
        share = [f" ({text.partition(':')[0]})" for level, text in result.findings
                 if level == "partly" and result.status == "partly passed"]
        status = paint(result.status, f"{result.status + ''.join(share):>7}")
        lines.append(f"{status}  {result.check.name}")
        for level, text in _merge(result.findings):
            mark = "" if level in _WITHOUT_MARK else f"{level}: "
            lines += textwrap.wrap(mark + text, 96, initial_indent=" " * 11,
                                   subsequent_indent=" " * 13, break_long_words=False,
                                   max_lines=12 if mark else 3,
                                   placeholder=" ... (see --json)")
        if remedy := _remedy(result):
            lines += textwrap.wrap("-> " + remedy, 96,
                                   initial_indent=" " * 11, subsequent_indent=" " * 14)
    for reason, names in skipped.items():
        lines += textwrap.wrap(f"{paint('skipped', 'skipped')}  {', '.join(names)}: "
                               f"{reason}", 96, subsequent_indent=" " * 11)
    return "\n".join([*lines, _summary(results)])


def as_json(plugins, results):
    return {"plugins": list(map(str, plugins)), "checks": [
        {"name": result.check.name, "status": result.status,
         "findings": [{"level": level, "text": text} for level, text in result.findings],
         "remedy": _remedy(result)}
        for result in results]}


def _section(result):
    """Returns the HTML of one check."""
    escape = html.escape
    lines = "".join(
        f'<li class="{escape(level)}">'
        f"{'' if level in _WITHOUT_MARK else f'<b>{escape(level)}:</b> '}"
        f"{escape(text)}</li>" for level, text in _merge(result.findings))
    remedy = _remedy(result)
    remedy = f"<p><strong>Remedy:</strong> {escape(remedy)}</p>" if remedy else ""
    return (f'<section class="{result.status}"><h2><b>{result.status}</b> '
            f"{escape(result.check.name)}</h2>"
            f'<p class="soft">{escape(result.check.text)}</p>'
            f"{f'<ul>{lines}</ul>' if lines else ''}{remedy}</section>")


def as_html(plugins, results):
    """Returns one page: what failed, and the rest behind a click."""
    names = html.escape(", ".join(pathlib.Path(path).name for path in plugins))
    paths = html.escape(" ".join(map(str, plugins)))
    parts = ["".join(map(_section, (result for result in results
                                    if result.status == status)))
             for status in ("failed", "warning")]
    for status in ("passed", "partly passed", "skipped"):
        found = [_section(result) for result in results if result.status == status]
        if found:
            parts.append(f"<details><summary>{len(found)} {status}</summary>"
                         f"{''.join(found)}</details>")
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta '
            f'name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>tfplug check {names}</title><style>{_STYLE}</style></head><body>"
            f'<h1>tfplug check {names}</h1><p class="soft">{paths}</p>'
            f"<p><strong>{_summary(results)}</strong></p>{''.join(parts)}</body></html>\n")
