# SPDX-License-Identifier: Apache-2.0
"""Finds the nodes that TensorFlow has to place when it runs a function: those
that its results depend on, in the function and in all functions that it calls."""

import collections

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import device as device_lib

from coverage import kernels

# The ops that replace functional control flow before placement, once for each of
# the types that it carries.
_LOWERED_WHILE = ("Enter", "Exit", "Merge", "NextIteration", "Switch")
_LOWERED_IF = ("Merge", "Switch")
_LOWERED_CASE = ("Merge", "_SwitchN")
_LOWERED = {"While": _LOWERED_WHILE, "StatelessWhile": _LOWERED_WHILE,
            "If": _LOWERED_IF, "StatelessIf": _LOWERED_IF,
            "Case": _LOWERED_CASE, "StatelessCase": _LOWERED_CASE}
_BOOL = 10  # DT_BOOL
_MUST_COMPILE = "_XlaMustCompile"  # set by jit_compile=True


class Node:
    """A node with its context."""

    def __init__(self, definition, function, layer, xla=""):
        self.definition = definition
        self.function = function  # path of calls, beginning with the model's name
        self.layer = layer  # "name (Class)" of a Keras layer, or ""
        self.xla = xla  # "" or kernels.NESTED or kernels.OUTERMOST

    @property
    def pinned(self):
        """Returns the device type that the model itself requests, or ""."""
        spec = device_lib.DeviceSpec.from_string(self.definition.device)
        return spec.device_type or ""


def nodes_of(concrete, name, layers):
    """Returns all Nodes of a ConcreteFunction. A function called from several
    places counts once. `layers`: {name: class name} of the model."""
    library = {function.signature.name: function for function in
               concrete.graph.as_graph_def().library.function}
    layers = _scopes([concrete.function_def, *library.values()], layers)
    found, seen = [], set()
    if _must_compile(concrete.function_def):
        found.append(Node(node_def_pb2.NodeDef(op="PartitionedCall", name=name),
                          name, "", kernels.OUTERMOST))
    queue = collections.deque([(concrete.function_def, name)])
    while queue:
        function, path = queue.popleft()
        for node in _live_nodes(function):
            called = ([node.op] if node.op in library else
                      list(_functions_in(node)))
            called = [other for other in called if other in library]
            xla = ""
            if _must_compile(node) or any(_must_compile(library[other])
                                          for other in called):
                xla = kernels.NESTED
            if xla or node.op not in library:
                found.append(Node(node, path, _layer(node, layers), xla))
                found += [Node(each, path, _layer(node, layers))
                          for each in _lowered(node)]
            for other in called:
                if other not in seen:
                    seen.add(other)
                    queue.append((library[other], f"{path} > {other}"))
    return found


def _must_compile(definition):
    """Returns whether only XLA can run a NodeDef or FunctionDef."""
    return (_MUST_COMPILE in definition.attr and
            definition.attr[_MUST_COMPILE].b)


def _live_nodes(function):
    """Returns the nodes that remain after TensorFlow has pruned a function: those
    on which a result depends, and all that have side effects."""
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
    """Yields the names of the functions that the node's attributes refer to."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        elif value.HasField("list"):
            for function in value.list.func:
                yield function.name


def _lowered(node):
    """Yields the nodes that replace a node of functional control flow."""
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
        lowered = node_def_pb2.NodeDef(op=op, name=node.name, device=node.device)
        if each is not None:
            lowered.attr["T"].type = each
        yield lowered


def _scopes(functions, layers):
    """Returns {part of a node's name: "layer (Class)"}. Keras 3 opens the scope of
    each layer twice, and TensorFlow calls the second one "layer_1"."""
    parts = {part for function in functions for node in function.node_def
             for part in node.name.split("/")}
    suffix = max(("_1", ""),
                 key=lambda end: sum(name + end in parts for name in layers))
    return {name + suffix: f"{name} ({kind})" for name, kind in layers.items()}


def _layer(node, scopes):
    """Returns the innermost Keras layer whose scope is part of the node's name."""
    for part in reversed(node.name.split("/")):
        if part in scopes:
            return scopes[part]
    return ""
