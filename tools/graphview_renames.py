# SPDX-License-Identifier: Apache-2.0
"""Which nodes have merely got another name: their bodies are equal."""

import collections


def base(reference):
    """The node that an input, or a function's return value, is of."""
    return reference.lstrip("^").split(":")[0]


def renamed(reference, renames):
    """The same reference where names have changed."""
    old = base(reference)
    if old not in renames:
        return reference
    start = len(reference) - len(reference.lstrip("^"))
    return reference[:start] + renames[old] + reference[start + len(old):]


def _body(node, renames):
    """All of a node but its name."""
    inputs = tuple(renamed(text, renames) for text in node.input)
    inputs = tuple(text.removesuffix(":0") for text in inputs)
    attrs = tuple((name, node.attr[name].SerializeToString(deterministic=True))
                  for name in sorted(node.attr))
    return node.op, node.device, inputs, attrs


def find(before, after):
    """{old name: new name}: of nodes that are in one of the lists of NodeDefs
    each, and take the same inputs, or what these have become. Of several equal
    ones the first has become the first."""
    was, now = ({node.name for node in nodes} for nodes in (before, after))
    new = collections.defaultdict(collections.deque)
    for node in after:
        if node.name not in was:
            new[_body(node, {})].append(node.name)
    left = [node for node in before if node.name not in now]
    renames, found = {}, True
    while new and found:
        found, rest = False, []
        for node in left:
            names = new.get(_body(node, renames))
            if names:
                renames[node.name] = names.popleft()
                found = True
            else:
                rest.append(node)
        left = rest
    return renames


def follow(nodes, renames):
    """The nodes under their new names, and with those of their inputs."""
    out = []
    for node in nodes:
        if node.name in renames or any(base(text) in renames
                                       for text in node.input):
            copy = type(node)()
            copy.CopyFrom(node)
            copy.name = renames.get(node.name, node.name)
            copy.input[:] = [renamed(text, renames) for text in node.input]
            node = copy
        out.append(node)
    return out
