# SPDX-License-Identifier: Apache-2.0
"""Compares kernels of cpu_sim with TensorFlow's CPU device: for each op in
kernel_cases.py, kernels of the usual types. tools/op-sweep compares all kernels and
types, with random arguments."""

import itertools

import harness
import kernel_cases
import pytest

TYPES = ("float32", "float16", "bfloat16", "int64", "bool")
TYPE_ATTRIBUTES = ("T", "Ta", "Tparams", "Tidx", "SrcT", "type")


def registered(tf):
    """Returns the kernels of SIM as (op, {attribute: type name}), sorted."""
    from tensorflow.python.framework import kernels
    found = []
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "SIM":
            names = [c.name for c in kernel.constraint]
            types = [[tf.dtypes.DType(t).name
                      for t in c.allowed_values.list.type]
                     for c in kernel.constraint]
            found += [(kernel.op, dict(zip(names, each)))
                      for each in itertools.product(*types)]
    return sorted(found, key=str)


def list_kernels():
    import tensorflow as tf
    return registered(tf)


def tolerance(dtype):
    return {"float32": 1e-5, "float64": 1e-12, "float16": 1e-2,
            "bfloat16": 1e-1}.get(dtype, 0)


def check_kernel(op, types):
    """Runs all cases of one kernel on both devices. Returns the number of cases."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    types = dict(types)
    dtype = next((types[a] for a in TYPE_ATTRIBUTES if a in types), None)
    if dtype is None:
        dtype = "float32" if op == "Bitcast" else "bool"
    attributes = {}
    for name, given in types.items():
        if name in ("output_type", "DstT", "out_type", "index_type", "Tout"):
            attributes[name] = tf.dtypes.as_dtype(given)
    if op == "Bitcast":
        attributes["type"] = tf.int32
    values = kernel_cases.Values(tf.dtypes.as_dtype(dtype).as_numpy_dtype, types)
    count = 0
    for case in kernel_cases.CASES[op](values):
        labels = case.get("labels")
        if "Tlabels" in types and labels.dtype.name != types["Tlabels"]:
            continue
        if types.get("DstT", "").startswith("u"):
            case["x"] = np.abs(case["x"])  # undefined for -1
        count += 1
        results = []
        try:
            for device in ("/device:CPU:0", "/device:SIM:0"):
                with tf.device(device):
                    # A raw op may convert NumPy values to another type.
                    arguments = {k: tf.constant(x) if isinstance(x, np.generic)
                                 else x for k, x in case.items()}
                    result = getattr(tf.raw_ops, op)(**arguments, **attributes)
                results.append([t.numpy() for t in tf.nest.flatten(result)])
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            if results:
                raise
            continue  # the CPU rejects the type, or divides by 0
        for want, have in zip(*results):
            what = f"{op} of {case}:\n"
            assert have.dtype == want.dtype and have.shape == want.shape, (
                what + f"{have.dtype}{have.shape}, not {want.dtype}{want.shape}")
            if want.dtype.kind in "biu":
                same = (want == have).all()
            else:
                limit = tolerance(want.dtype.name)
                # A loss is a difference of values that are as large as the logits.
                logits = case.get("logits", case.get("features", 1))
                scale = np.abs(logits).max(initial=1)
                scale = scale if scale <= 1e3 else 1
                with np.errstate(all="ignore"):
                    same = np.allclose(have.astype(np.float64),
                                       want.astype(np.float64), rtol=limit,
                                       atol=limit * scale, equal_nan=True)
            assert same, what + f"have {have}\nwant {want}"
    assert count > 0, f"no case fits {op} with {types}"
    return count


def check_argument(op, arguments, message):
    """Checks a kernel's error for invalid arguments."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:SIM:0"):
        try:
            getattr(tf.raw_ops, op)(
                **{k: np.array(v, "f") for k, v in arguments.items()})
        except tf.errors.InvalidArgumentError as error:
            assert message in str(error), str(error)
            return True
    return False


def pack_widely():
    """Returns the error of a result with more dimensions than a view has."""
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        try:
            tf.stack([tf.ones([1] * 16)], axis=-1)
        except tf.errors.UnimplementedError as error:
            return str(error)
    return "no error"


def some_of_each_type(kernels):
    """Returns kernels that together have all types of all attributes."""
    seen, some = set(), []
    for op, types in kernels:
        new = {(op, *pair) for pair in types.items()} or {(op,)}
        if not new <= seen:
            some.append((op, types))
        seen |= new
    return some


@pytest.fixture(scope="module", name="kernels")
def _kernels():
    """Returns the kernels with cases, with their results."""
    listed = harness.run(list_kernels)
    assert listed.ok, listed
    found = some_of_each_type(
        k for k in listed.value if k[0] in kernel_cases.CASES
        and all(t in TYPES for a, t in k[1].items() if a in TYPE_ATTRIBUTES)
        and k != ["Round", {"T": "int64"}])  # the CPU's result is 0
    return list(zip(found, harness.run_each(check_kernel, found)))


def test_every_case_has_kernels(kernels):
    ops = {op for (op, _), _ in kernels}
    assert len(kernels) > 50
    assert ops == set(kernel_cases.CASES), "these ops have no kernels"


@pytest.mark.parametrize("op", sorted(kernel_cases.CASES))
def test_kernel(kernels, op):
    mine = [(types, result) for (name, types), result in kernels if name == op]
    assert mine, "not registered"
    for types, result in mine:
        assert result.ok, f"{op} with {types}: {result}"


def test_bad_arguments_raise():
    for result in harness.run_each(check_argument, [
            ["AddV2", {"x": [[1] * 3], "y": [[1] * 4]}, "ncompatible shapes"],
            ["MatMul", {"a": [[1] * 3], "b": [[1] * 4]}, "Matrix size"],
            ["BiasAdd", {"value": [[1] * 3], "bias": [1] * 4}, "ias"],
    ]):
        assert result.ok and result.value, result


def test_a_result_of_rank_17_is_refused():
    result = harness.run(pack_widely)
    assert result.ok and "more than 16 dimensions" in result.value, result
