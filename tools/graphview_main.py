# SPDX-License-Identifier: Apache-2.0
"""Draws a graph, or what became of it, and says how two differ: see
tools/graphview."""

import argparse
import pathlib
import signal
import sys

sys.dont_write_bytecode = True

import graphview_diff  # noqa: E402
import graphview_picture  # noqa: E402
from graphview_load import LoadError, load  # noqa: E402


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/graphview", description=__doc__)
    parser.add_argument("before", metavar="BEFORE",
                        help="a GraphDef (.pb, .pbtxt) or a SavedModel")
    parser.add_argument("after", metavar="AFTER", nargs="?")
    parser.add_argument("--out", metavar="PICTURE", help=".svg, .png or .pdf")
    parser.add_argument("--diff", action="store_true",
                        help="print the differences, with --out too")
    parser.add_argument("--around", metavar="NAME",
                        help="draw what is near nodes of this name (a regular "
                        "expression)")
    parser.add_argument("--distance", type=int, default=1, metavar="N",
                        help="how near, in edges; default 1")
    parser.add_argument("--limit", type=int, default=300, metavar="N",
                        help="the most nodes of a graph to draw; default 300")
    return parser.parse_args(arguments)


def name_of(path):
    """A SavedModel is known by its folder's name."""
    path = pathlib.Path(path).resolve()
    return path.parent.name if path.name == "saved_model.pb" else path.name


def main(arguments=None):
    args = parse(arguments)
    try:
        before = load(args.before)
        after = None if args.after is None else load(args.after)
        if args.out:
            title = name_of(args.before)
            if args.after is not None:
                title += f" → {name_of(args.after)}"
            picture = graphview_picture.Picture(title, args.around,
                                                args.distance, args.limit)
            graphs = graphview_diff.diff(before, after, ends=True)
            graphview_picture.write(picture.text(graphs), args.out)
        if args.diff or not args.out:
            graphs = graphview_diff.diff(before, after)
            if after is None:
                lines = [f"{g.title or 'graph'}: {graphview_diff.summary(g)}"
                         for g in graphs]
            else:
                lines = graphview_diff.words(graphs)
            print("\n".join(lines))
    except LoadError as error:
        print(f"tools/graphview: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # As in ... | head.
    sys.exit(main())
