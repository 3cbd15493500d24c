# SPDX-License-Identifier: Apache-2.0
"""What differs between two graphs, node by node and function by function; and
the same in words, always in the same order."""

import dataclasses

import graphview_renames
from graphview_load import message
from graphview_words import attr_words, input_words

ADDED, REMOVED, CHANGED, SAME = "added", "removed", "changed", "same"
RENAMED = "renamed"
KINDS = (ADDED, REMOVED, CHANGED, RENAMED)
ENDS = ("argument", "result")
SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~", RENAMED: ">"}


@dataclasses.dataclass
class NodeDiff:
    """One node: before or after is None where it is not. A renamed one has its
    new name in both, and the old one in `changes`."""

    name: str
    kind: str
    before: object
    after: object
    changes: list  # (what, before, after) in words; "" where it is not

    @property
    def counts(self):
        """Not so the ends that pictures have of a function."""
        return self.node.op not in ENDS

    @property
    def node(self):
        """As it is now, or was last."""
        return self.after if self.after is not None else self.before


@dataclasses.dataclass
class GraphDiff:
    """A graph, or the body of a function."""

    title: str  # "" for the graph itself
    kind: str
    nodes: list  # of NodeDiff: those of the graph after, then removed ones
    changes: list  # of the function itself: what it returns, its arguments

    def count(self, kind):
        return sum(node.kind == kind and node.counts for node in self.nodes)

    @property
    def size(self):
        """Nodes afterwards."""
        return sum(node.after is not None and node.counts
                   for node in self.nodes)

    @property
    def differs(self):
        return (self.kind != SAME or bool(self.changes)
                or any(node.kind != SAME for node in self.nodes))


def node_changes(before, after):
    """[(what, before, after)] in words, of two nodes of one name."""
    out = []
    for what in ("op", "device"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            out.append((what, old, new))
    old, new = _inputs(before, False), _inputs(after, False)
    for i in range(max(len(old), len(new))):
        pair = [x[i] if i < len(x) else "" for x in (old, new)]
        if pair[0] != pair[1]:
            out.append((f"input {i}", *pair))
    old, new = _inputs(before, True), _inputs(after, True)
    out += [("control", name, "") for name in old if name not in new]
    out += [("control", "", name) for name in new if name not in old]
    for name in sorted(set(before.attr) | set(after.attr)):
        old, new = (node.attr[name] if name in node.attr else None
                    for node in (before, after))
        if old != new:
            out.append((f"attr {name}", *_differing(old, new)))
    return out


def _differing(old, new):
    """Two values in words; where the words are the same, with a hint."""
    pair = ["" if x is None else attr_words(x) for x in (old, new)]
    if pair[0] == pair[1]:
        pair[1] += " of other contents"
    return pair


def _inputs(node, control):
    return [input_words(name) for name in node.input
            if name.startswith("^") == control]


def _diff_nodes(before, after, renames):
    """[NodeDiff] of two lists of NodeDefs. What refers to a renamed node has not
    changed by that."""
    before = graphview_renames.follow(before, renames)
    old = {node.name: node for node in before}
    old_names = {new: name for name, new in renames.items()}
    out, seen = [], set()
    for node in after:
        seen.add(node.name)
        was = old.get(node.name)
        if was is None:
            out.append(NodeDiff(node.name, ADDED, None, node, []))
            continue
        changes = [] if was == node else node_changes(was, node)
        kind = CHANGED if changes else SAME
        if node.name in old_names:
            kind, changes = RENAMED, [("name", old_names[node.name], node.name)]
        out.append(NodeDiff(node.name, kind, was, node, changes))
    out += [NodeDiff(node.name, REMOVED, node, None, [])
            for node in before if node.name not in seen]
    return out


def _function_changes(before, after, renames):
    """What differs in a function beside its nodes."""
    out = []
    for what, field in (("returns", "ret"), ("control output", "control_ret")):
        old, new = (dict(getattr(f, field)) for f in (before, after))
        old = {name: graphview_renames.renamed(value, renames)
               for name, value in old.items()}
        for name in sorted(set(old) | set(new)):
            if old.get(name) != new.get(name):
                out.append((f"{what} {name}", old.get(name, ""),
                            new.get(name, "")))
    for what, field in (("argument", "input_arg"), ("result", "output_arg")):
        old, new = ({a.name: a for a in getattr(f.signature, field)}
                    for f in (before, after))
        out += [(what, name, "") for name in old if name not in new]
        out += [(what, "", name) for name in new if name not in old]
        out += [(what, name, name + " of another type") for name in new
                if name in old and old[name] != new[name]]
    for name in sorted(set(before.attr) | set(after.attr)):
        old, new = (f.attr[name] if name in f.attr else None
                    for f in (before, after))
        if old != new:
            out.append((f"attr {name}", *_differing(old, new)))
    return out


def _body(function, ends):
    """Its nodes; with `ends`, for pictures, arguments and results as well."""
    if function is None:
        return []
    nodes = list(function.node_def)
    if ends:
        new = message("NodeDef")
        nodes = [new(name=arg.name, op="argument")
                 for arg in function.signature.input_arg] + nodes
        nodes += [new(name=f"result {name}", op="result", input=[value])
                  for name, value in sorted(function.ret.items())]
    return nodes


def diff(before, after, ends=False):
    """[GraphDiff]: of the graph, then of each function, by name. `after` may be
    None: then nothing differs."""
    after = before if after is None else after
    renames = graphview_renames.find(before.node, after.node)
    out = [GraphDiff("", SAME, _diff_nodes(before.node, after.node, renames),
                     [])]
    old, new = ({f.signature.name: f for f in graph.library.function}
                for graph in (before, after))
    for name in sorted(set(old) | set(new)):
        was, now = old.get(name), new.get(name)
        kind = ADDED if was is None else REMOVED if now is None else SAME
        bodies = _body(was, ends), _body(now, ends)
        renames = graphview_renames.find(*bodies)
        out.append(GraphDiff(
            name, kind, _diff_nodes(*bodies, renames),
            _function_changes(was, now, renames) if was and now else []))
    return out


# ---- In words ----------------------------------------------------------------


def _change_lines(changes):
    for what, old, new in changes:
        if not old:
            yield f"    {what}: added {new}"
        elif not new:
            yield f"    {what}: removed {old}"
        else:
            yield f"    {what}: {old} -> {new}"


def _node_lines(item):
    node = item.node
    yield f"{SIGNS[item.kind]} {item.name} ({node.op})"
    if item.kind in (CHANGED, RENAMED):
        yield from _change_lines(item.changes)
    if item.kind == ADDED:
        inputs = [input_words(name) for name in node.input]
        if inputs:
            yield f"    inputs: {', '.join(inputs)}"
        if node.device:
            yield f"    device: {node.device}"
        for name in sorted(node.attr):
            yield f"    attr {name}: {attr_words(node.attr[name])}"


def summary(graph):
    """'12 nodes, 1 added, 3 removed' of a GraphDiff."""
    words = [f"{graph.size} node" + "s" * (graph.size != 1)]
    words += [f"{graph.count(kind)} {kind}" for kind in KINDS
              if graph.count(kind)]
    return ", ".join(words)


def words(graphs):
    """All differences, as lines."""
    out = []
    for graph in graphs:
        if not graph.differs:
            continue
        name = f"function {graph.title}" if graph.title else "graph"
        if graph.kind != SAME:
            name = f"{SIGNS[graph.kind]} {name}"
        out.append(f"{name}: {summary(graph)}")
        if graph.kind == REMOVED:
            continue
        out += _change_lines(graph.changes)
        for item in sorted((n for n in graph.nodes if n.kind != SAME),
                           key=lambda n: n.name):
            out += _node_lines(item)
    return out or ["no differences"]
