# SPDX-License-Identifier: Apache-2.0
"""A GraphDiff as a picture: Graphviz's language, and its program `dot`."""

import collections
import html
import pathlib
import re
import subprocess

from graphview_diff import (ADDED, CHANGED, KINDS, REMOVED, RENAMED, SAME,
                            summary)
from graphview_load import LoadError
from graphview_words import attr_words, shape_words, tensor_words, type_words

FONT = "DejaVu Sans"
# Line and filling.
COLORS = {ADDED: ("#1a7f37", "#d8f5e0"), REMOVED: ("#cf222e", "#ffe6e3"),
          CHANGED: ("#9a6700", "#fff3c9"), RENAMED: ("#0969da", "#dbeaff"),
          SAME: ("#8c959f", "#ffffff")}
QUIET, TEXT = "#6e7781", "#24292f"
SOURCES = {"Const": "#eef1f4", "VarHandleOp": "#eef1f4", "_Arg": "#dcebfb",
           "argument": "#dcebfb", "Placeholder": "#dcebfb",
           "result": "#dcebfb", "_Retval": "#dcebfb"}
LINES = 5  # Of what has changed, in a node.
WIDEST = 34  # Characters.


class Edge(collections.namedtuple("Edge", "source port target control")):
    """What a node takes from another one; the same in both graphs if equal."""


def edges_of(node):
    for text in node.input:
        parts = text.lstrip("^").split(":")
        port = "" if parts[-1] == "0" or len(parts) == 1 else parts[-1]
        yield Edge(parts[0], port, node.name, text.startswith("^"))


def all_edges(graph):
    """{Edge: kind} of a GraphDiff."""
    old, new = ({edge: True for item in graph.nodes
                 for edge in (edges_of(getattr(item, which))
                              if getattr(item, which) is not None else ())}
                for which in ("before", "after"))
    out = {edge: SAME if edge in old else ADDED for edge in new}
    out |= {edge: REMOVED for edge in old if edge not in new}
    return out


def neighbours(names, edges, distance):
    """Those names, and what is so many edges away: nearest first."""
    near = collections.defaultdict(list)
    for edge in edges:
        near[edge.source].append(edge.target)
        near[edge.target].append(edge.source)
    shown = dict.fromkeys(names)
    ring = list(shown)
    for _ in range(distance):
        ring = [n for name in ring for n in near[name] if n not in shown]
        shown |= dict.fromkeys(ring)
    return list(shown)


def choose(graph, edges, around, distance, limit):
    """The names of the nodes to draw: all of a small graph, else those near
    what has changed, or near names that `around` (a regular expression) finds."""
    names = [item.name for item in graph.nodes]
    if around is not None:
        found = [name for name in names if re.search(around, name)]
        return neighbours(found, edges, distance)[:limit]
    changed = [item.name for item in graph.nodes if item.kind != SAME]
    if not changed or len(names) <= min(limit, 40):
        if len(names) > limit:
            raise LoadError(
                f"{len(names)} nodes are too many for a picture: --around NAME "
                f"draws what is near one, --limit {len(names)} all")
        return names
    return neighbours(changed, edges, distance)[:limit]


# ---- Graphviz ----------------------------------------------------------------


def escape(text):
    return html.escape(str(text), quote=True)


def shorten(text, size=WIDEST):
    """The end of a name says more than its beginning."""
    if len(text) <= size:
        return text
    tail = text[-(size - 1):]
    cut = tail.find("/")
    return "…" + (tail[cut:] if 0 <= cut < size // 2 else tail)


def font(text, size, color, bold=False):
    text = f"<B>{text}</B>" if bold else text
    return f'<FONT POINT-SIZE="{size}" COLOR="{color}">{text}</FONT>'


def detail_lines(item):
    """What a node says below its name."""
    node = item.node
    if item.kind in (CHANGED, RENAMED):
        lines = []
        for what, old, new in item.changes:
            if what == "op" or what.startswith(("input", "control")):
                continue  # The head and the edges say so.
            if what == "name":  # The new one stands above.
                lines.append(f"<S>{escape(shorten(old))}</S>")
                continue
            what = escape(what.removeprefix("attr "))
            old, new = (escape(shorten(text, 28)) for text in (old, new))
            arrow = " → " if old and new else ""
            old = f"<S>{old}</S>" if old else ""
            lines.append(f"{what}: {old}{arrow}{new}")
    elif item.kind == ADDED:
        lines = [f"{escape(name)}: {escape(shorten(attr_words(value), 28))}"
                 for name, value in sorted(node.attr.items())
                 if not name.startswith("_")
                 and value.WhichOneof("value") not in ("type", None)]
    elif "value" in node.attr and node.op == "Const":
        return [escape(tensor_words(node.attr["value"].tensor))]
    elif "shape" in node.attr and "dtype" in node.attr:
        return [escape(f"{type_words(node.attr['dtype'].type)} "
                       f"{shape_words(node.attr['shape'].shape)}")]
    else:
        lines = []
    if len(lines) > LINES:
        lines[LINES - 1:] = [f"and {len(lines) - LINES + 1} more"]
    return lines


def node_label(item):
    op = escape(item.node.op)
    color = COLORS[item.kind][0] if item.kind != SAME else TEXT
    head = font(op, 12, color, bold=True)
    if item.kind == CHANGED and item.before.op != item.after.op:
        head = font(f"<S>{escape(item.before.op)}</S> ", 10, QUIET) + head
    rows = [head, font(escape(shorten(item.name)), 9, QUIET)]
    rows += [font(line, 9, TEXT) for line in detail_lines(item)]
    cells = "".join(f'<TR><TD ALIGN="CENTER">{row}</TD></TR>' for row in rows)
    return ('<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" '
            f'CELLPADDING="1">{cells}</TABLE>>')


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Picture:
    """The text for `dot`."""

    def __init__(self, title, around=None, distance=1, limit=300):
        self.title = title
        self.around, self.distance, self.limit = around, distance, limit
        self.lines = []

    def node(self, key, item):
        line, filling = COLORS[item.kind]
        if item.kind == SAME:
            filling = SOURCES.get(item.node.op, filling)
        dashed = ",dashed" if item.kind == REMOVED else ""
        width = 1 if item.kind == SAME else 1.8
        self.lines.append(
            f'{key} [label={node_label(item)}, style="rounded,filled{dashed}", '
            f'fillcolor="{filling}", color="{line}", penwidth={width}, '
            f"tooltip={quote(item.name)}];")

    def edge(self, source, target, edge, kind):
        color = COLORS[kind][0]
        style = "dotted" if edge.control else (
            "dashed" if kind == REMOVED else "solid")
        width = 1 if kind == SAME else 1.8
        label = f', taillabel=" :{edge.port} "' if edge.port else ""
        self.lines.append(f'{source} -> {target} [color="{color}", '
                          f"style={style}, penwidth={width}{label}];")

    def hidden(self, key, count, incoming):
        """Something small for the neighbours that are not drawn."""
        stub = f"{key}_{'in' if incoming else 'out'}"
        self.lines.append(
            f'{stub} [shape=plaintext, margin=0, width=0, height=0, '
            f'label=<{font(f"… {count} more", 9, QUIET)}>];')
        ends = (stub, key) if incoming else (key, stub)
        self.lines.append(f'{ends[0]} -> {ends[1]} [color="#c4cad0", '
                          "arrowsize=0.5, style=dashed];")

    def graph(self, graph, number):
        edges = all_edges(graph)
        chosen = choose(graph, edges, self.around, self.distance, self.limit)
        keys = {name: f"n{number}_{i}" for i, name in enumerate(chosen)}
        for item in graph.nodes:
            if item.name in keys:
                self.node(keys[item.name], item)
        names = {item.name for item in graph.nodes}
        missing = collections.Counter()
        for edge, kind in edges.items():
            source, target = keys.get(edge.source), keys.get(edge.target)
            if source and target:
                self.edge(source, target, edge, kind)
            elif source:
                missing[source, False] += 1
            elif target and edge.source in names:
                missing[target, True] += 1
        for (key, incoming), count in missing.items():
            self.hidden(key, count, incoming)
        left = sum(graph.count(kind) for kind in KINDS)
        left -= sum(item.kind != SAME and item.name in keys
                    for item in graph.nodes)
        if left > 0 and self.around is None:
            self.lines.append(
                f"more{number} [shape=plaintext, label=<"
                f'{font(f"and {left} changed nodes that are not drawn", 11, QUIET)}'
                ">];")

    def function(self, graph, number):
        line, filling = COLORS[graph.kind]
        filling = "#fafbfc" if graph.kind == SAME else filling + "60"
        words = [font(f"function {escape(shorten(graph.title, 60))}", 12, TEXT,
                      bold=True), font(escape(summary(graph)), 10, QUIET)]
        words += [font(f"{escape(what)}: {escape(old) or 'none'} → "
                       f"{escape(new) or 'none'}", 10, COLORS[CHANGED][0])
                  for what, old, new in graph.changes[:LINES]]
        self.lines += [
            f"subgraph cluster{number} {{",
            f'label=<{"<BR/>".join(words)}>; style="rounded,filled"; '
            f'color="{line}"; fillcolor="{filling}"; margin=14;']
        self.graph(graph, number)
        self.lines.append("}")

    def legend(self, graphs):
        cells = [font(escape(self.title), 16, TEXT, bold=True) + "<BR/>"]
        kinds = [(kind, sum(graph.count(kind) for graph in graphs))
                 for kind in KINDS]
        words = "&#160;&#160;&#160;".join(
            font(f"■ {count} {kind}", 12, COLORS[kind][0])
            for kind, count in kinds if count)
        nodes = sum(graph.size for graph in graphs)
        cells.append(font(f"{nodes} nodes&#160;&#160;&#160;", 12, QUIET)
                     + words + "<BR/> ")
        return "".join(cells)

    def text(self, graphs):
        """Of [GraphDiff]: where something differs, only what does."""
        drawn = [graph for graph in graphs if graph.differs]
        drawn = drawn or [graph for graph in graphs if graph.nodes]
        for number, graph in enumerate(drawn):
            draw = self.function if graph.title else self.graph
            draw(graph, number)
        body = "\n  ".join(self.lines)
        return (
            "digraph {\n"
            f'  graph [fontname="{FONT}", labelloc=t, nodesep=0.3, '
            f"ranksep=0.45, pad=0.4, bgcolor=white, "
            f"label=<{self.legend(drawn)}>];\n"
            f'  node [fontname="{FONT}", shape=box, margin="0.12,0.06"];\n'
            f'  edge [fontname="{FONT}", fontsize=9, arrowsize=0.7, '
            f'fontcolor="{QUIET}"];\n'
            f"  {body}\n}}\n")


def write(text, path):
    """Runs `dot`; the kind of picture is that of the path's end."""
    path = pathlib.Path(path)
    kind = path.suffix.lstrip(".")
    if kind == "dot":
        path.write_text(text, encoding="utf-8")
        return
    if kind not in ("svg", "png", "pdf"):
        raise LoadError(f"{path}: pictures are .svg, .png, .pdf or .dot")
    try:
        run = subprocess.run(
            ["dot", f"-T{kind}", "-Gdpi=110" if kind == "png" else "-Gdpi=72",
             "-o", str(path)], input=text, text=True, check=False,
            stderr=subprocess.PIPE, encoding="utf-8")
    except FileNotFoundError:
        raise LoadError("dot was not found (Debian: graphviz)") from None
    if run.returncode != 0:
        raise LoadError(f"dot could not draw it: {run.stderr.strip()}")
