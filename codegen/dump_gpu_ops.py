# SPDX-License-Identifier: Apache-2.0
"""Writes codegen/gpu_ops.json: every op that has a kernel for GPUs in the installed
TensorFlow, and its types.

Run it in a virtual environment with the newest `tensorflow` for Linux, not
`tensorflow-cpu`: that build registers its kernels for GPUs on any machine. Kernels
with a label are left out, because TensorFlow does not choose them by itself.
"""

import json
import os
import pathlib

import dump_op_registry

PATH = pathlib.Path(__file__).resolve().parent / "gpu_ops.json"


def merged(kernels):
    """Returns the same combinations of types as fewer sets: [{attribute: {types}}].
    Two sets that differ in one attribute are one."""
    kernels = [dict(kernel) for kernel in kernels]
    i = 0
    while i < len(kernels):
        for j in range(i):
            differ = [a for a in kernels[i] if kernels[i][a] != kernels[j].get(a)]
            if kernels[i].keys() == kernels[j].keys() and len(differ) <= 1:
                for attr in differ:
                    kernels[j][attr] = kernels[j][attr] | kernels[i][attr]
                del kernels[i]
                i = 0  # the larger set may fit to another
                break
        else:
            i += 1
    return kernels


def constraints(kernel, op_def):
    """Returns {attribute: the types of the kernel that the op permits}."""
    permitted = {attr.name: attr.allowed_values.list.type for attr in op_def.attr}
    return {c.name: frozenset(t for t in c.allowed_values.list.type
                              if t in (permitted.get(c.name) or (t,)))
            for c in kernel.constraint}


def main():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow
    from tensorflow.python.framework import kernels, op_def_registry
    ops = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "GPU" and not kernel.label:
            ops.setdefault(kernel.op, []).append(
                constraints(kernel, op_def_registry.get(kernel.op)))
    if not tensorflow.test.is_built_with_cuda():
        raise SystemExit("this TensorFlow was built without CUDA: install "
                         "`tensorflow`, not `tensorflow-cpu`")
    lines = []
    for op in sorted(ops):
        sets = [{attr: dump_op_registry.type_names(types)
                 for attr, types in sorted(kernel.items())}
                for kernel in merged(ops[op])]
        sets = sorted({json.dumps(each) for each in sets})
        lines.append(json.dumps({"name": op, "types": [json.loads(each)
                                                       for each in sets]},
                                separators=(",", ":")))
    PATH.write_text(f'{{"tensorflow":"{tensorflow.__version__}","ops":[\n'
                    + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
    print(f"wrote {len(ops)} ops of TensorFlow {tensorflow.__version__}")


if __name__ == "__main__":
    main()
