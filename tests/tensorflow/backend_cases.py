# SPDX-License-Identifier: Apache-2.0
"""The device that tfplug's backend kernels serve, its ops, and the distance of results,
for backend_layout_cases.py and backend_training_cases.py."""

DEVICE = "/device:REFERENCE:0"


def registered(device_type="REFERENCE"):
    """Returns [(op, {attribute: [types]}, host arguments)] of the device."""
    from tensorflow.python.framework import kernels
    return [(k.op, {c.name: list(c.allowed_values.list.type)
                    for c in k.constraint}, list(k.host_memory_arg))
            for k in kernels.get_all_registered_kernels().kernel
            if k.device_type == device_type]


def units_apart(x, y):
    """Returns the largest distance of two float arrays, in units in the last place of
    their type; infinity if one has a NaN where the other has none."""
    import numpy as np
    if x.shape != y.shape or x.dtype != y.dtype:
        return float("inf")
    if x.size == 0:
        return 0
    if x.dtype == bool or np.issubdtype(x.dtype, np.integer):
        return 0 if np.array_equal(x, y) else float("inf")
    digits = {"float64": 52, "float32": 23, "float16": 10}.get(x.dtype.name, 7)
    smallest = {"float64": 2.0**-1022, "float32": 2.0**-126,
                "float16": 2.0**-14}.get(x.dtype.name, 2.0**-126)
    x, y = x.astype(np.float64), y.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(y), smallest) * 2.0**-digits
        apart = np.abs(x - y) / unit
    apart = np.where(same, 0, np.where(np.isfinite(apart), apart, np.inf))
    return float(apart.max())
