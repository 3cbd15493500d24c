# SPDX-License-Identifier: Apache-2.0
"""Reads what TFPLUG_LOG_REGIONS=FILE has logged about regions, for tools/coverage and
tools/profile: see docs/guide/graph_passes.md."""

import pathlib
import re

RUNS = re.compile(r"tfplug: the region '(.*)' runs (\d+) nodes \((\d+) inputs\)")
ENDS = re.compile(r"tfplug: the region '(.*)' ends at '(.*)' \((\w+)\) and (\d+) "
                  "others, which")
UNRECORDED = re.compile(r"tfplug: the region '(.*)' is not recorded: (.*)")
OUTSIDE = re.compile(r"tfplug: '(.*)' \((\w+)\) is in no region: (.*)")


def read(file):
    """Returns {"regions": [{"name", "nodes", "inputs", "ends": [{"op", "nodes",
    "example"}], "not_recorded"}], "outside": [{"op", "why", "nodes", "example"}]},
    largest and most frequent first. TensorFlow optimizes a graph more than once: a node counts once, with
    the last reason, and so do nodes of several graphs that have one name."""
    file = pathlib.Path(file)
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    regions, outside = {}, {}
    for line in text.splitlines():
        if found := RUNS.fullmatch(line):
            name, nodes, inputs = found.groups()
            regions[name] = {"name": name, "nodes": int(nodes), "inputs": int(inputs),
                             "ends": [], "not_recorded": ""}
        elif found := ENDS.match(line):
            name, node, op, others = found.groups()
            if name in regions:
                regions[name]["ends"].append(
                    {"op": op, "nodes": int(others) + 1, "example": node})
        elif (found := UNRECORDED.fullmatch(line)) and found[1] in regions:
            regions[found[1]]["not_recorded"] = found[2]
        elif found := OUTSIDE.fullmatch(line):
            outside[found[1]] = found[2], found[3]
    kinds = {}
    for node, (op, why) in outside.items():
        kind = kinds.setdefault((op, why), {"op": op, "why": why, "nodes": 0,
                                            "example": node})
        kind["nodes"] += 1
    return {"regions": sorted(regions.values(), key=lambda region: -region["nodes"]),
            "outside": sorted(kinds.values(), key=lambda kind: -kind["nodes"])}


def ends_text(region):
    """Returns "x (Elu), 3 x Neg such as y" for the nodes at which a region ends."""
    return ", ".join(
        f"{end['example']} ({end['op']})" if end["nodes"] == 1 else
        f"{end['nodes']} x {end['op']} such as {end['example']}"
        for end in region["ends"])


def lines(found):
    """Returns the same as lines of text."""
    regions = found["regions"]
    if not regions and not found["outside"]:
        return ["no region: the plug-in has none (RegionOps), or nothing ran on its device"]
    sizes = ", ".join(str(region["nodes"]) for region in regions)
    noun = "region" if len(regions) == 1 else "regions"
    text = [f"{len(regions)} {noun}" + (f" of {sizes} nodes" if regions else "")
            + " (TFPLUG_REGIONS=1)"]
    for region in regions:
        if region["ends"]:
            text.append(f"{region['name']} ends at {ends_text(region)}")
        if region["not_recorded"]:
            text.append(f"{region['name']} is not recorded: {region['not_recorded']}")
    return text + [f"in no region: {kind['nodes']} x {kind['op']}, {kind['why']}"
                   for kind in found["outside"]]
