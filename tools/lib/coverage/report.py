# SPDX-License-Identifier: Apache-2.0
"""Adds up what was found, and writes it: a table, a JSON document."""

import shutil

import coverage_kernels as kernels

SCHEMA = 1
MISSING = (kernels.NOBODY, kernels.CPU)
_WIDEST = {"op": 34, "types": 46}


def collect(nodes_by_function, device_type):
    """The rows of the report, worst first, as the JSON document has them."""
    rows = {}
    for function, nodes in nodes_by_function.items():
        for node in nodes:
            row = _row(node, device_type)
            key = (row["op"], row["status"], row["kernel"], str(row["types"]),
                   str(row["host_memory"]))
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


def _row(node, device_type):
    row = {"op": node.definition.op,
           "types": kernels.type_attributes(node.definition),
           "status": kernels.ELSEWHERE, "kernel": node.pinned,
           "host_memory": [], "on_host": False, "warning": "", "nodes": {},
           "example": _example(node)}
    if node.pinned in ("", device_type):
        found = kernels.find(node.definition, device_type)
        row.update(
            status=found.status,
            kernel={kernels.PLUGIN: device_type, kernels.CPU: "CPU",
                    kernels.BY_DEFAULT: kernels.DEFAULT}.get(found.status, ""),
            host_memory=list(found.host_memory), on_host=found.on_host,
            warning=kernels.warning(node.definition, found))
    return row


def _example(node):
    return {"node": node.definition.name, "function": node.function,
            "layer": node.layer}


def document(rows, **about):
    """The JSON document: see docs/guide/coverage.md."""
    counts = {status: 0 for status in (
        kernels.PLUGIN, kernels.BY_DEFAULT, kernels.CPU, kernels.NOBODY,
        kernels.ELSEWHERE)}
    for row in rows:
        counts[row["status"]] += sum(row["nodes"].values())
    return {"schema": SCHEMA, **about, "nodes": counts,
            "missing": sum(row["status"] in MISSING for row in rows),
            "warnings": sum(bool(row["warning"]) for row in rows),
            "ops": rows}


def types_text(types):
    """{"T": ["float32"], "Tidx": ["int32"]} as "T=float32 Tidx=int32"."""
    return " ".join(f"{name}={'|'.join(names) or '-'}"
                    for name, names in types.items())


def _where(row):
    """Who runs it, in words."""
    text = {kernels.NOBODY: "nobody", kernels.CPU: "only the CPU",
            kernels.ELSEWHERE: f"{row['kernel']}, as the model asks"}.get(
                row["status"], row["kernel"])
    if row["warning"]:
        text += " (!)"
    return text


def _memory(row):
    if row["on_host"]:
        return "all"
    return " ".join(row["host_memory"])


def _shortened(text, width):
    """Keeps both ends: of names and types, these tell the most."""
    if len(text) <= width:
        return text
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head):]}"


def table(report, only_bad=False, width=None):
    """The report as text, for people; only_bad: what is missing or warned of."""
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
    text += ["", *_warnings(report), *_summary(report)]
    return "\n".join(text)


def _warnings(report):
    seen = {}
    for row in report["ops"]:
        if row["warning"]:
            seen.setdefault(row["warning"], set()).add(row["op"])
    return [f"(!) {', '.join(sorted(ops))}: {text}"
            for text, ops in seen.items()]


def _summary(report):
    device, nodes = report["device_type"], report["nodes"]
    parts = [f"{nodes[kernels.PLUGIN]} by {device}",
             f"{nodes[kernels.BY_DEFAULT]} by DEFAULT"]
    if nodes[kernels.ELSEWHERE]:
        parts.append(f"{nodes[kernels.ELSEWHERE]} where the model asks")
    lines = [f"TensorFlow {report['tensorflow']}, {device}: "
             f"{sum(nodes.values())} nodes, {', '.join(parts)}, "
             f"{nodes[kernels.CPU]} only by the CPU, "
             f"{nodes[kernels.NOBODY]} by nobody"]
    if report["missing"]:
        lines.append(f"no kernel for {device}: {report['missing']} of "
                     f"{len(report['ops'])} kinds of op; without soft placement "
                     "the model does not run there")
    else:
        lines.append(f"every op has a kernel for {device}")
    return lines
