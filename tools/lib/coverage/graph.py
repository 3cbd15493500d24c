# SPDX-License-Identifier: Apache-2.0
"""The nodes that TensorFlow has to place when it runs a function: those that
its results need, of the function and of all that it calls."""

import collections

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import device as device_lib

import coverage_kernels as kernels

# How functional control flow is taken apart before placement: the ops that it
# becomes, for each of the types that it carries.
_LOWERED_WHILE = ("Enter", "Exit", "Merge", "NextIteration", "Switch")
_LOWERED_IF = ("Merge", "Switch")
_LOWERED_CASE = ("Merge", "_SwitchN")
_LOWERED = {"While": _LOWERED_WHILE, "StatelessWhile": _LOWERED_WHILE,
            "If": _LOWERED_IF, "StatelessIf": _LOWERED_IF,
            "Case": _LOWERED_CASE, "StatelessCase": _LOWERED_CASE}
_BOOL = 10  # DT_BOOL


class Node:
    """A node, and where it stands."""

    def __init__(self, definition, function, layer):
        self.definition = definition
        self.function = function  # which the model calls it, then what it calls
        self.layer = layer  # "name (Class)" of a Keras layer, or ""

    @property
    def pinned(self):
        """The device type that the model itself asks for, or ""."""
        spec = device_lib.DeviceSpec.from_string(self.definition.device)
        return spec.device_type or ""


def nodes_of(concrete, name, layers):
    """All Nodes of a ConcreteFunction; a function that is called from several
    places counts once. `layers`: {name: class name} of the model."""
    library = {function.signature.name: function for function in
               concrete.graph.as_graph_def().library.function}
    layers = _scopes(concrete.function_def, layers)
    found, seen = [], set()
    queue = collections.deque([(concrete.function_def, name)])
    while queue:
        function, path = queue.popleft()
        for node in _live_nodes(function):
            if node.op in library:
                called = [node.op]
            else:
                called = list(_functions_in(node))
                found.append(Node(node, path, _layer(node, layers)))
                found += [Node(each, path, _layer(node, layers))
                          for each in _lowered(node)]
            for other in called:
                if other in library and other not in seen:
                    seen.add(other)
                    queue.append((library[other], f"{path} > {other}"))
    return found


def _live_nodes(function):
    """What is left of a function when TensorFlow has pruned it: the nodes on
    which a result depends, and all that have effects."""
    nodes = {node.name: node for node in function.node_def}
    wanted = [value.split(":")[0] for value in function.ret.values()]
    wanted += function.control_ret.values()
    for node in function.node_def:
        definition = kernels.op_definition(node.op)
        if definition is None or definition.is_stateful:
            wanted.append(node.name)
    live = set()
    while wanted:
        name = wanted.pop()
        if name in live or name not in nodes:
            continue
        live.add(name)
        wanted += [value.lstrip("^").split(":")[0]
                   for value in nodes[name].input]
    return [node for node in function.node_def if node.name in live]


def _functions_in(node):
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        elif value.HasField("list"):
            for function in value.list.func:
                yield function.name


def _lowered(node):
    """The nodes that a node of functional control flow becomes."""
    if node.op not in _LOWERED or not node.attr["_lower_using_switch_merge"].b:
        return
    types = set()
    for name in ("T", "Tin", "Tout"):
        types.update(node.attr[name].list.type)
    ops = [(op, each) for op in _LOWERED[node.op] for each in sorted(types)]
    if "While" in node.op:
        ops.append(("LoopCond", None))
    elif "If" in node.op:
        ops.append(("Switch", _BOOL))
    for op, each in ops:
        made = node_def_pb2.NodeDef(op=op, name=node.name, device=node.device)
        if each is not None:
            made.attr["T"].type = each
        yield made


def _scopes(function, layers):
    """{part of a node's name: "layer (Class)"}. Keras 3 opens each layer's scope
    twice, and TensorFlow calls the second one "layer_1"."""
    parts = {part for node in function.node_def for part in
             node.name.split("/")}
    suffix = max(("_1", ""),
                 key=lambda end: sum(name + end in parts for name in layers))
    return {name + suffix: f"{name} ({kind})" for name, kind in layers.items()}


def _layer(node, scopes):
    """The innermost Keras layer whose scope is part of the node's name."""
    for part in reversed(node.name.split("/")):
        if part in scopes:
            return scopes[part]
    return ""
