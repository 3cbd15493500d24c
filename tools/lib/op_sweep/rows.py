# SPDX-License-Identifier: Apache-2.0
"""The table of constraints: for ops whose arguments depend on each other, functions
that draw them. All other ops get arguments of one shape."""

ROWS = {}


def row(names):
    """Registers a function that draws arguments and attributes of these ops."""
    def register(function):
        for name in names.split():
            assert name not in ROWS, name
            ROWS[name] = function
        return function
    return register


def draw_arguments(g):
    """Draws a case's arguments and attributes."""
    function = ROWS.get(g.op)
    if function:
        function(g)
    g.fill_attrs()
    g.fill_args()
    if g.kind == "invalid":
        g.spoil()
    return g
