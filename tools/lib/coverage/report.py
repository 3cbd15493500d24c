# SPDX-License-Identifier: Apache-2.0
"""Summarizes the nodes of a model as a table and as a JSON document."""

import shutil

import region_log

from coverage import kernels

SCHEMA = 2
MISSING = (kernels.NONE, kernels.XLA, kernels.REJECTED, kernels.CPU)
_WIDEST = {"op": 34, "types": 46}


def collect(nodes_by_function, device_type, constructor):
    """Returns the rows of the JSON document, worst first."""
    rows = {}
    for function, nodes in nodes_by_function.items():
        for node in nodes:
            row = _row(node, device_type, constructor)
            key = (row["op"], row["status"], row["kernel"], str(row["types"]),
                   str(row["host_memory"]), row["warning"])
            row = rows.setdefault(key, row)
            row["nodes"][function] = row["nodes"].get(function, 0) + 1
            if not row["example"]["layer"] and node.layer:
                row["example"] = _example(node)
    return sorted(rows.values(),
                  key=lambda row: (_rank(row), row["op"], str(row["types"])))


def _rank(row):
    order = [*MISSING, "warning", kernels.BY_DEFAULT, kernels.PLUGIN,
             kernels.ELSEWHERE]
    missing = row["status"] in MISSING
    return order.index("warning" if row["warning"] and not missing
                       else row["status"])


def _row(node, device_type, constructor):
    row = {"op": node.definition.op,
           "types": kernels.type_attributes(node.definition),
           "status": kernels.ELSEWHERE, "kernel": node.pinned,
           "host_memory": [], "on_host": False, "warning": "", "nodes": {},
           "example": _example(node)}
    if node.pinned not in ("", device_type):
        return row
    found = kernels.find(node.definition, device_type)
    row.update(
        status=found.status,
        kernel={kernels.PLUGIN: device_type, kernels.CPU: "CPU",
                kernels.BY_DEFAULT: kernels.DEFAULT}.get(found.status, ""),
        host_memory=list(found.host_memory), on_host=found.on_host,
        warning=kernels.warning(node.definition, found))
    if found.status == kernels.PLUGIN:
        rejection = constructor.rejection(node.definition)
        if rejection:
            row.update(status=kernels.REJECTED, warning=rejection)
    if node.xla == kernels.OUTERMOST and not constructor.runs_nested_xla:
        row.update(status=kernels.XLA, kernel="", warning=(
            "a function with jit_compile=True runs only on devices for which "
            "XLA has a compiler: leave out jit_compile=True, or register "
            "tfplug's default passes (TFPLUG_REGISTER_GRAPH_PASSES)"))
    elif node.xla and not constructor.runs_nested_xla:
        row.update(status=kernels.XLA, kernel="", warning=(
            f"XLA must compile this function and has no compiler for "
            f"{device_type}: leave out jit_compile=True (Keras: "
            "compile(jit_compile=False)), or register tfplug's default passes "
            "(TFPLUG_REGISTER_GRAPH_PASSES), one of which, DisableXla, runs "
            "the function on the device without XLA"))
    return row


def _example(node):
    return {"node": node.definition.name, "function": node.function,
            "layer": node.layer}


def document(rows, **about):
    """Returns the JSON document: see docs/guide/coverage.md."""
    counts = {status: 0 for status in (
        kernels.PLUGIN, kernels.BY_DEFAULT, *reversed(MISSING),
        kernels.ELSEWHERE)}
    for row in rows:
        counts[row["status"]] += sum(row["nodes"].values())
    return {"schema": SCHEMA, **about, "nodes": counts,
            "missing": sum(row["status"] in MISSING for row in rows),
            "warnings": sum(bool(row["warning"]) for row in rows),
            "ops": rows}


def types_text(types):
    """Returns "T=float32 Tidx=int32" for {"T": ["float32"], "Tidx": ["int32"]}."""
    return " ".join(f"{name}={'|'.join(names) or '-'}"
                    for name, names in types.items())


def _where(row):
    """Returns the text of the column "kernel"."""
    text = {kernels.NONE: "none", kernels.XLA: "only XLA",
            kernels.REJECTED: f"rejected by {row['kernel']}",
            kernels.CPU: "only the CPU",
            kernels.ELSEWHERE: f"{row['kernel']}, set by the model"}.get(
                row["status"], row["kernel"])
    if row["warning"]:
        text += " (!)"
    return text


def _memory(row):
    if row["on_host"]:
        return "all"
    return " ".join(row["host_memory"])


def _shortened(text, width):
    """Replaces the middle of a long text by "..": the ends of names and types
    distinguish them best."""
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head):]}"


def table(report, only_bad=False, width=None):
    """Returns the report as text. only_bad: only ops that have no usable kernel or
    have a warning. width: columns; default: those of the terminal."""
    functions = list(report["functions"])
    head = ["op", "types", *functions, "kernel", "host memory", "for example"]
    lines = []
    for row in report["ops"]:
        if only_bad and row["status"] not in MISSING and not row["warning"]:
            continue
        example = row["example"]
        lines.append([
            _shortened(row["op"], _WIDEST["op"]),
            _shortened(types_text(row["types"]), _WIDEST["types"]),
            *(str(row["nodes"].get(name, "")) for name in functions),
            _where(row), _shortened(_memory(row), 24),
            example["layer"] or example["node"]])
    widths = [max(len(line[i]) for line in [head, *lines])
              for i in range(len(head))]
    width = width or shutil.get_terminal_size((140, 24)).columns
    rest = width - sum(widths[:-1]) - 2 * len(widths[:-1])
    widths[-1] = min(widths[-1], max(rest, 32))
    right = range(2, 2 + len(functions))
    text = []
    for line in [head, ["-" * each for each in widths], *lines]:
        cells = [_shortened(cell, size) if i == len(line) - 1 else cell
                 for i, (cell, size) in enumerate(zip(line, widths))]
        text.append("  ".join(
            cell.rjust(size) if i in right else cell.ljust(size)
            for i, (cell, size) in enumerate(zip(cells, widths))).rstrip())
    text += ["", *_warnings(report), *_summary(report), *_regions(report)]
    return "\n".join(text)


def _warnings(report):
    seen = {}
    for row in report["ops"]:
        if row["warning"]:
            seen.setdefault(row["warning"], set()).add(row["op"])
    return [f"(!) {', '.join(sorted(ops))}: {text}"
            for text, ops in seen.items()]


def _regions(report):
    if "regions" not in report:
        return []
    found = report["regions"]
    return ["", *region_log.lines(found),
            *(f"A function failed, which may lack regions: {failure}"
              for failure in found["failed"])]


def _summary(report):
    device, nodes = report["device_type"], report["nodes"]
    parts = [f"{nodes[kernels.PLUGIN]} on {device}",
             f"{nodes[kernels.BY_DEFAULT]} with a kernel for DEFAULT"]
    for status, text in ((kernels.ELSEWHERE, "where the model sets a device"),
                         (kernels.REJECTED, f"rejected by {device}"),
                         (kernels.XLA, "only for XLA")):
        if nodes[status]:
            parts.append(f"{nodes[status]} {text}")
    parts += [f"{nodes[kernels.CPU]} only on the CPU",
              f"{nodes[kernels.NONE]} without any kernel"]
    lines = [f"TensorFlow {report['tensorflow']}, {device}: "
             f"{sum(nodes.values())} nodes, {', '.join(parts)}"]
    if not report["constructed"]:
        lines.append(f"This machine has no {device} device: no kernel was "
                     "constructed to see whether it rejects an attribute.")
    if report["missing"]:
        lines.append(f"{report['missing']} of {len(report['ops'])} kinds of op "
                     f"do not run on {device}. Without soft placement the model "
                     "fails.")
    else:
        lines.append(f"Every op has a kernel for {device}.")
    return lines
