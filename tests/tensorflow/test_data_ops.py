# SPDX-License-Identifier: Apache-2.0
"""Tests of kernels that move and gather data and draw random numbers, beyond those of
test_kernels.py: gradients, indices out of range, invalid arguments, exact random
numbers."""

import harness
import pytest

SIM, CPU = "/device:SIM:0", "/device:CPU:0"


def _same(ours, cpus, limit=1e-5):
    import numpy as np
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    assert len(ours.value) == len(cpus.value) > 0
    for have, want in zip(ours.value, cpus.value):
        np.testing.assert_allclose(have, want, rtol=limit, atol=limit)


# ---- ApproxTopK --------------------------------------------------------------

def approximate_top_k():
    """Returns pairs of what the device and NumPy find. TensorFlow's CPU has a kernel
    only for the largest elements along the last dimension."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random, found = np.random.default_rng(3), []
    for shape, axis, options in (
            ([7], -1, {}), ([4, 9, 3], 1, {}), ([4, 9, 3], -3, {}), ([0, 5], 1, {}),
            ([2, 300], 1, dict(aggregate_to_topk=False)),
            ([2, 500], 1, dict(aggregate_to_topk=False)),
            ([500, 2], 0, dict(aggregate_to_topk=False, recall_target=0.5)),
            ([2, 500], 1, dict(aggregate_to_topk=False, recall_target=1.0))):
        for dtype in (tf.float32, tf.float16, tf.bfloat16):
            count = int(np.prod(shape))
            x = random.permutation(count).reshape(shape).astype("f") - count // 2
            x = np.clip(x, -256, 256)  # exact in each type; equal at the ends
            for is_max in (True, False):
                with tf.device(SIM):
                    values, indices = tf.raw_ops.ApproxTopK(
                        input=tf.cast(x, dtype), k=3, reduction_dimension=axis,
                        is_max_k=is_max, **options)
                    assert "SIM" in values.device
                call = tf.function(lambda x: tf.raw_ops.ApproxTopK(
                    input=x, k=3, reduction_dimension=axis, is_max_k=is_max,
                    **options)).get_concrete_function(tf.TensorSpec(shape, dtype))
                order = np.argsort(-x if is_max else x, axis, kind="stable")
                order = np.take(order, range(call.output_shapes[0][axis]), axis)
                found += [(indices.numpy().tolist(), order.tolist()),
                          (tf.cast(values, tf.float32).numpy().tolist(),
                           np.take_along_axis(x, order, axis).tolist())]
    return found


def test_the_top_k_are_exact():
    result = harness.run(approximate_top_k)
    assert result.ok, result
    assert len(result.value) == 96
    for have, want in result.value:
        assert have == want


# ---- Gradients ---------------------------------------------------------------

def gradients(device):
    """Returns the gradients of a sum over each function's result, with a
    different weight for each element."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(3)

    def draw(*shape):
        return tf.constant(random.uniform(0.5, 2, shape).astype("f"))

    with tf.device(device):
        x, y = draw(3, 4), draw(3, 4)
        cube = draw(2, 3, 4)
        rows = tf.constant([2, 0, 2, 1, 2])
        functions = [
            (lambda a: tf.concat([a, y, a], 1), x),
            (lambda a: tf.stack([a, y, a], 1), x),
            (lambda a: tf.unstack(a, axis=1)[2], x),
            (lambda a: tf.split(a, [1, 3], 1)[1], x),
            (lambda a: tf.split(a, 2, 1)[0], x),
            (lambda a: a[1:, ::2], x), (lambda a: a[::-1, 1], x),
            (lambda a: a[..., tf.newaxis, 2:], x),
            (lambda a: tf.reverse(a, [1]), x),
            (lambda a: tf.gather(a, rows), x),
            (lambda a: tf.gather(a, [[0, 3], [1, 1]], axis=1), x),
            (lambda a: tf.gather(a, [[0, 1], [2, 0]], batch_dims=1), cube),
            (lambda a: tf.gather_nd(a, [[0, 1], [2, 3], [0, 1]]), x),
            (lambda a: tf.tensor_scatter_nd_add(a, [[1], [1]], y[:2]), x),
            (lambda a: tf.tensor_scatter_nd_update(a, [[1]], y[:1]), x),
            (lambda a: tf.math.unsorted_segment_sum(a, [1, 0, 1], 3), x),
            (lambda a: tf.cumsum(a, 1, exclusive=True, reverse=True), x),
            (lambda a: tf.tile(a, [2, 3]), x), (tf.transpose, cube),
            (lambda a: tf.broadcast_to(a, [2, 3, 4]), x),
            (lambda a: tf.matmul(a, cube, transpose_b=True), cube),
            (lambda a: tf.matmul(cube, a[tf.newaxis], transpose_b=True), x),
            (lambda a: tf.einsum("aij,bij->abi", a, cube), cube),
            (lambda a: tf.einsum("...ij,kj->...ki", a, y), cube),
            (lambda a: tf.einsum("aij->ja", a), cube),
            (lambda a: tf.clip_by_value(a, 0.8, 1.5), x),
            (tf.math.erf, x), (tf.math.erfc, x), (tf.math.expm1, x),
            (tf.sin, x), (tf.cos, x), (tf.math.rint, x),
            (lambda a: tf.math.xlogy(a, y), x), (lambda a: tf.atan2(a, y), x),
            (lambda a: tf.where(a > 1, a, y), x),
            (lambda a: tf.boolean_mask(a, a > 1), x),
            (lambda a: tf.pad(a, [[1, 1], [2, 0]], "REFLECT"), x),
            (lambda a: tf.pad(a, [[1, 3], [2, 4]], "SYMMETRIC"), x),
            (tf.linalg.diag, cube), (tf.linalg.diag_part, cube),
            (lambda a: tf.math.floormod(a, y), x),
        ]
        found = []
        for function, at in functions:
            with tf.GradientTape() as tape:
                tape.watch(at)
                result = function(at)
                weights = tf.reshape(tf.range(tf.size(result, tf.int64)),
                                     tf.shape(result))
                loss = tf.reduce_sum(result * tf.cast(weights, tf.float32))
            gradient = tape.gradient(loss, at)
            if gradient is None:
                gradient = tf.zeros_like(at)
            gradient = tf.convert_to_tensor(gradient)
            assert gradient.device.endswith(device)
            found.append(gradient.numpy().tolist())
    return found


def test_gradients_match_the_cpu(results):
    _same(*results["gradients"])


# ---- Indices that are out of range -------------------------------------------

def out_of_range():
    """Returns results for indices out of range. A device cannot raise an error: as on
    TensorFlow's GPUs, gathering returns zeros and scattering does nothing."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(SIM):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        indices = tf.constant([1, -1, 2, 0])
        pairs = tf.constant([[0, 1], [0, 2], [-1, 0]])
        ones = tf.ones([4, 2])
        return [t.numpy().tolist() for t in [
            tf.gather(x, indices), tf.gather_nd(x, pairs),
            tf.raw_ops.GatherV2(params=x, indices=indices, axis=1),
            tf.scatter_nd(indices[:, tf.newaxis], ones, [2, 2]),
            tf.tensor_scatter_nd_add(x, indices[:, tf.newaxis], ones),
            tf.math.unsorted_segment_sum(ones, indices, 2),
            tf.one_hot(indices, 2)]]


def test_indices_out_of_range(results):
    result, = results["out_of_range"]
    assert result.ok, result
    assert result.value == [
        [[3, 4], [0, 0], [0, 0], [1, 2]], [2, 0, 0],
        [[2, 0, 0, 1], [4, 0, 0, 3]], [[1, 1], [1, 1]], [[2, 3], [4, 5]],
        [[1, 1], [1, 1]], [[0, 1], [0, 0], [0, 0], [1, 0]]]


# ---- Rare arguments ----------------------------------------------------------

def rare_arguments():
    """Returns results for arguments that tools/op-sweep found."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    raw = tf.raw_ops
    with tf.device(SIM):
        matrix = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        shorter, longer = tf.ones([2], tf.complex64), tf.ones([3], tf.complex64)
        cube = np.arange(24).reshape(2, 3, 4)
        mask = tf.constant(np.isin(cube % 8, [1, 5, 6]))
        return [t.numpy().tolist() for t in [
            raw.MatrixDiagPartV3(input=matrix, k=[0, 1], padding_value=[7.0],
                                 align="RIGHT_LEFT"),
            tf.math.log([2.0**-130, 1.0]),
            raw.NotEqual(x=shorter, y=longer, incompatible_shape_error=False),
            raw.ReverseV2(tensor=3.0, axis=[-1]),
            raw.InTopKV2(predictions=tf.ones([2, 0]), targets=[0, 0], k=1),
            tf.where(mask), tf.where(tf.constant(cube) == 17),
            # One row per batch, and every other number in memory.
            tf.math.real(raw.BatchMatMulV2(
                x=tf.constant(cube[:, :, None] * (1 + 2j), tf.complex64),
                y=tf.constant(cube[0].T * (2 - 1j), tf.complex64))),
            tf.math.imag(tf.transpose([[1 + 2j], [3j]], conjugate=True)),
            *raw.SparseFillEmptyRows(indices=[[2, 1], [0, 1]], values=[5.0, 6.0],
                                     dense_shape=[4, 2], default_value=-1.0),
            *raw.SparseFillEmptyRowsGrad(reverse_index_map=[2, 0],
                                         grad_values=[1.0, 2.0, 4.0, 8.0]),
        ]]


def test_rare_arguments(results):
    import numpy as np
    result, = results["rare_arguments"]
    assert result.ok, result
    diagonals, logs, unequal, reversed_, in_top, found, one, product, imaginary, *rows = result.value
    assert diagonals == [[7, 2], [1, 4]] and unequal is True
    np.testing.assert_allclose(logs, [-130 * np.log(2), 0], rtol=1e-6)
    assert reversed_ == 3 and in_top == [False, False]
    cube = np.arange(24).reshape(2, 3, 4)
    assert found == np.argwhere(np.isin(cube % 8, [1, 5, 6])).tolist()
    assert product == (4 * cube[:, :, None] @ cube[0].T).tolist()
    assert one == [[1, 1, 1]] and imaginary == [[-2, -3]]
    assert rows == [[[0, 1], [1, 0], [2, 1], [3, 0]], [6, -1, 5, -1],
                    [False, True, False, True], [2, 0], [4, 1], 10]


# ---- Invalid arguments -------------------------------------------------------

INVALID = [
    ("ConcatV2", dict(values=[[[1.0]], [[1.0], [2.0]]], axis=1),
     "must be equal"),
    ("ConcatV2", dict(values=[[[1.0]], [[1.0]]], axis=2), "range [-2, 2), but got 2"),
    ("ConcatV2", dict(values=[1.0, 2.0], axis=0), "Can't concatenate scalars"),
    ("Pack", dict(values=[[1.0], [1.0, 2.0]], axis=0), "must match"),
    ("Pack", dict(values=[[1.0], [1.0]], axis=-3), "range [-2, 2), but got -3"),
    ("Split", dict(axis=0, value=[1.0] * 3, num_split=2), "evenly divide"),
    ("SplitV", dict(value=[1.0] * 3, size_splits=[1, 1], axis=0, num_split=2),
     "Determined shape must either match"),
    ("SplitV", dict(value=[1.0] * 3, size_splits=[5, -1], axis=0, num_split=2),
     "Determined shape must either match"),
    ("SplitV", dict(value=[1.0] * 3, size_splits=[[1, 2]], axis=0, num_split=2),
     "must be 1-D"),
    ("Unpack", dict(value=[1.0] * 3, num=2, axis=0), "must equal 2"),
    ("Slice", dict(input=[1.0] * 3, begin=[2], size=[2]), "Expected "),
    ("Slice", dict(input=[1.0] * 3, begin=[-1], size=[1]), "Expected "),
    ("StridedSlice", dict(input=[1.0] * 3, begin=[3], end=[4], strides=[1],
                          shrink_axis_mask=1), "slice index 3 of dimension 0"),
    ("StridedSliceGrad", dict(shape=[3], begin=[0], end=[2], strides=[1],
                              dy=[1.0]), "instead of"),
    ("StridedSliceGrad", dict(shape=[3], begin=[0], end=[2], strides=[0],
                              dy=[1.0]), "non-zero"),
    ("ReluGrad", dict(gradients=[1.0], features=[1.0, 2.0]), "must have the same shape"),
    ("ReverseV2", dict(tensor=[1.0], axis=[0, -1]), "more than once"),
    ("GatherV2", dict(params=[1.0], indices=[0], axis=1),
     "Shape must be at least rank 2 but is rank 1"),
    ("GatherV2", dict(params=[[1.0]], indices=[[0], [0]], axis=1,
                      batch_dims=1), "should be equal"),
    ("GatherNd", dict(params=[1.0], indices=[[0, 0]]), "params rank"),
    ("GatherNd", dict(params=[[]], indices=[[0]]), "params is empty"),
    ("ScatterNd", dict(indices=[[0]], updates=[1.0, 2.0], shape=[3]),
     "of updates[shape=[2]]"),
    ("TensorScatterAdd", dict(tensor=[1.0], indices=[[0]],
                              updates=[[1.0]]), "Inner dimensions of output shape must match"),
    ("UnsortedSegmentSum", dict(data=[1.0], segment_ids=[0, 1],
                                num_segments=2), "does not start with"),
    ("UnsortedSegmentSum", dict(data=[1.0], segment_ids=[0], num_segments=-1),
     "num_segments"),
    ("Cumsum", dict(x=1.0, axis=0), "range [0, 0), but got 0"),
    ("OneHot", dict(indices=[0], depth=-1, on_value=1.0, off_value=0.0),
     "must be non-negative"),
    ("Range", dict(start=0.0, limit=1.0, delta=0.0), "delta != 0"),
    ("LinSpace", dict(start=0.0, stop=1.0, num=0), "num > 0"),
    ("TopKV2", dict(input=[1.0], k=2), "at least k"),
    ("ApproxTopK", dict(input=[1.0], k=2), "input must have last dimension >= k = 2"),
    ("InTopKV2", dict(predictions=[[1.0]], targets=[0, 0], k=1), "targets"),
    ("BatchMatMulV2", dict(x=[[1.0]], y=[[1.0], [2.0]]), "Matrix size"),
    ("BatchMatMulV2", dict(x=[1.0], y=[[1.0]]), "In[0] ndims must be >= 2"),
    ("Einsum", dict(inputs=[[1.0]], equation="i->k"), "missing from"),
    ("Einsum", dict(inputs=[[1.0]], equation="ij->i"), "does not fit"),
    ("Einsum", dict(inputs=[[1.0]], equation="i"), "the equation must"),
    ("Einsum", dict(inputs=[[1.0, 2.0], [1.0] * 3], equation="i,i->i"),
     "sizes 2 and 3"),
    ("Qr", dict(input=[1.0]), "must have rank >= 2, got 1"),
    ("MatrixDiagPartV3", dict(input=[[1.0]], k=5, padding_value=0.0),
     "k is out of bound"),
    ("MatrixDiagV3", dict(diagonal=[1.0, 2.0], k=0, num_rows=1, num_cols=1,
                          padding_value=0.0), "is not consistent with"),
    ("MatrixDiagV3", dict(diagonal=[1.0, 2.0], k=[0, 1], num_rows=-1,
                          num_cols=-1, padding_value=0.0), "must be at least 2-dim"),
    ("MirrorPad", dict(input=[1.0, 2.0], paddings=[[2, 0]], mode="REFLECT"),
     "2, 0 not less than 2"),
    ("MirrorPad", dict(input=[1.0, 2.0], paddings=[[1]], mode="SYMMETRIC"),
     "matrix with 2 columns"),
    ("MirrorPadGrad", dict(input=[[], []], paddings=[[0, 0], [0, 0]], mode="SYMMETRIC"),
     "was not less than"),
    ("StatelessRandomUniformIntV2",
     dict(shape=[2], key=[1], counter=[0, 0], alg=1, minval=3, maxval=3),
     "minval < maxval"),
    ("StatelessRandomNormalV2",
     dict(shape=[2], key=[1], counter=[0, 0], alg=2), "only random algorithm"),
]


def get_error(op, arguments):
    """Returns the error of a kernel of the device."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    types = {"key": tf.uint64, "counter": tf.uint64}
    extra = ({"dtype": tf.float32} if op == "StatelessRandomNormalV2" else {})

    def convert(name, value):
        if isinstance(value, str) or name in (
                "num_split", "num", "batch_dims", "shrink_axis_mask"):
            return value if op != "LinSpace" else tf.constant(value)
        if (name, op) in (("axis", "Pack"), ("axis", "Unpack"), ("k", "ApproxTopK")):
            return value
        if name in ("values", "inputs"):
            return [tf.constant(v) for v in value]
        return tf.constant(value, types.get(name))

    try:
        with tf.device(SIM):
            getattr(tf.raw_ops, op)(
                **{k: convert(k, v) for k, v in arguments.items()}, **extra)
    except (tf.errors.InvalidArgumentError,
            tf.errors.UnimplementedError) as error:
        return str(error)
    return "no error"


def test_invalid_arguments(results):
    for (op, arguments, words), result in zip(INVALID, results["get_error"]):
        assert result.ok, f"{op} of {arguments}: {result}"
        assert words in result.value, f"{op} of {arguments}: {result.value}"


# ---- Random numbers ----------------------------------------------------------

def draw_random(device):
    """Draws from each distribution."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    found = []
    with tf.device(device):
        for seed in ([1, 2], [2**31 - 1, -7]):
            for shape in ([], [3], [0, 2], [5, 7], [1003]):
                keys = dict(shape=shape, seed=seed)
                found += [t.numpy().astype("f8").tolist() for t in [
                    tf.random.stateless_uniform(**keys),
                    tf.random.stateless_uniform(minval=-5, maxval=90,
                                                dtype=tf.int32, **keys),
                    tf.random.stateless_uniform(minval=-2**40, maxval=2**50,
                                                dtype=tf.int64, **keys),
                    tf.random.stateless_uniform(minval=None, maxval=None,
                                                dtype=tf.int32, **keys),
                    tf.random.stateless_uniform(minval=None, maxval=None,
                                                dtype=tf.int64, **keys),
                    tf.random.stateless_normal(**keys),
                    tf.random.stateless_truncated_normal(**keys)]]
    return found


def test_random_numbers_match_the_cpu(results):
    import numpy as np
    ours, cpus = results["draw_random"]
    assert ours.ok and cpus.ok, f"{ours}\n{cpus}"
    for i, (have, want) in enumerate(zip(ours.value, cpus.value)):
        # The last bit of logarithm, sine and cosine differs.
        limit = 2e-6 if i % 7 >= 5 else 0
        np.testing.assert_allclose(have, want, rtol=limit, atol=limit,
                                   err_msg=f"distribution {i % 7}")


# ---- All in one process, because importing TensorFlow takes most of the time -

CALLS = {"gradients": [[SIM], [CPU]], "out_of_range": [[]], "rare_arguments": [[]],
         "get_error": [list(r[:2]) for r in INVALID],
         "draw_random": [[SIM], [CPU]]}


def call(name, arguments):
    return globals()[name](*arguments)


@pytest.fixture(scope="module", name="results")
def _results():
    """Returns the results of the calls, by function."""
    calls = [[name, arguments] for name, cases in CALLS.items()
             for arguments in cases]
    found = {name: [] for name in CALLS}
    for (name, _), result in zip(calls, harness.run_each(call, calls)):
        found[name].append(result)
    return found
