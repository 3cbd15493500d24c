# SPDX-License-Identifier: Apache-2.0
"""Runs ops that rearrange or resize tensors on the device of backend_cases.py and on
the CPU, with seeded random arguments, for test_backend_layout.py. Some arguments are
invalid on purpose: both devices must then report the same class of error."""

from backend_cases import DEVICE, registered, units_apart

SIZES = [0, 1, 1, 2, 2, 3, 4, 5, 6, 8]


def sizes(random, rank):
    return [SIZES[i] for i in random.integers(len(SIZES), size=rank)]


def tensor(random, dtype, shape):
    """Returns values whose sums are exact, so that only the positions matter."""
    import tensorflow as tf
    x = random.integers(0 if dtype.is_unsigned else -9, 9, shape)
    return tf.cast(x, dtype).numpy() if dtype != tf.bool else x % 2 == 1


def spatial(random):
    """Returns the sizes of blocks, margins at each side, and sizes of an image that
    are multiples of the blocks, except for some."""
    blocks = random.integers(1, 4, random.integers(0, 4))
    margins = random.integers(0, 3, (len(blocks), 2))
    if random.random() < .5:
        margins *= 0
    inner = random.integers(0, 4, len(blocks))
    wrong = random.integers(0, 2) if len(blocks) and random.random() < .1 else 0
    return blocks, margins, inner, wrong


def space_to_batch_nd(random, dtype):
    blocks, margins, inner, wrong = spatial(random)
    image = [max(n * b - sum(m), 0) for n, b, m in zip(inner, blocks, margins)]
    for i, (size, margin) in enumerate(zip(image, margins)):
        margins[i, 1] += -(size + sum(margin)) % blocks[i] + wrong
    shape = [random.integers(0, 3), *image, *sizes(random, random.integers(0, 3))]
    return {"input": tensor(random, dtype, shape), "block_shape": blocks,
            "paddings": margins}


def batch_to_space_nd(random, dtype):
    blocks, margins, inner, wrong = spatial(random)
    count = 1
    for block in blocks:
        count *= int(block)
    shape = [random.integers(0, 3) * count + wrong, *inner,
             *sizes(random, random.integers(0, 3))]
    return {"input": tensor(random, dtype, shape), "block_shape": blocks,
            "crops": margins}


def space_to_batch(random, dtype):
    block = int(random.integers(2, 4))
    margins = random.integers(0, 3, (2, 2))
    image = random.integers(0, 6, 2)
    for i in range(2):
        margins[i, 1] += -(image[i] + sum(margins[i])) % block
    shape = [random.integers(0, 3), *image, random.integers(0, 3)]
    return {"input": tensor(random, dtype, shape), "block_size": block,
            "paddings": margins}


def batch_to_space(random, dtype):
    block = int(random.integers(2, 4))
    shape = [random.integers(0, 3) * block**2, *sizes(random, 3)]
    return {"input": tensor(random, dtype, shape), "block_size": block,
            "crops": random.integers(0, 2, (2, 2))}


def space_to_depth(random, dtype):
    block = int(random.integers(2, 4))
    height, width = block * random.integers(1, 4, 2) + (random.random() < .1)
    shape = [random.integers(1, 3), height, width, random.integers(1, 4)]
    return {"input": tensor(random, dtype, shape), "block_size": block}


def depth_to_space(random, dtype):
    block = int(random.integers(2, 4))
    depth = block**2 * random.integers(1, 4) + (random.random() < .1)
    shape = [random.integers(1, 3), *random.integers(1, 4, 2), depth]
    return {"input": tensor(random, dtype, shape), "block_size": block}


def roll(random, dtype):
    rank = random.integers(1, 6)
    count = random.integers(0, 5)
    axis = random.integers(-rank, rank, count)
    shift = random.integers(-9, 9, count)
    if random.random() < .3:
        axis, shift = random.integers(rank), random.integers(-99, 99)
    return {"input": tensor(random, dtype, sizes(random, rank)), "shift": shift,
            "axis": axis}


def band(random, rows, columns):
    """Returns the first and the last diagonal of a band, sometimes out of bounds."""
    extra = random.random() < .1
    low, high = -rows + 1 - extra, columns + extra
    if low >= high:
        return 0, 0
    k = sorted(random.integers(low, high, 2))
    return (k[0], k[0]) if random.random() < .4 else tuple(k)


def diagonals(random, dtype, rows, columns, k):
    """Returns the shape of the diagonals of matrices, and an argument `k`."""
    length = min(rows + min(k[1], 0), columns - max(k[0], 0))
    several = [k[1] - k[0] + 1] if k[0] != k[1] else []
    return several + [max(length, 0)], (k[0] if k[0] == k[1] else list(k))


def matrix_diag(random, dtype):
    return {"diagonal": tensor(random, dtype, sizes(random, random.integers(1, 4)))}


def matrix_diag_part(random, dtype):
    return {"input": tensor(random, dtype, sizes(random, random.integers(2, 5)))}


def matrix_set_diag(random, dtype):
    shape = sizes(random, random.integers(2, 5))
    return {"input": tensor(random, dtype, shape),
            "diagonal": tensor(random, dtype, shape[:-2] + [min(shape[-2:])])}


ALIGN = ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"]


def matrix_diag_v3(random, dtype):
    rows, columns = random.integers(1, 6, 2)
    k = band(random, rows, columns)
    shape, argument = diagonals(random, dtype, rows, columns, k)
    known = random.random() < .7
    return {"diagonal": tensor(random, dtype, sizes(random, 1) + shape),
            "k": argument, "num_rows": rows if known else -1,
            "num_cols": columns if known else -1,
            "padding_value": tensor(random, dtype, []),
            "align": ALIGN[random.integers(4)]}


def matrix_diag_part_v3(random, dtype):
    rows, columns = random.integers(1, 6, 2)
    _, argument = diagonals(random, dtype, rows, columns,
                            band(random, rows, columns))
    return {"input": tensor(random, dtype, sizes(random, 1) + [rows, columns]),
            "k": argument, "padding_value": tensor(random, dtype, []),
            "align": ALIGN[random.integers(4)]}


def matrix_set_diag_v3(random, dtype):
    rows, columns = random.integers(1, 6, 2)
    shape, argument = diagonals(random, dtype, rows, columns,
                                band(random, rows, columns))
    batch = sizes(random, 1)
    if random.random() < .1:
        shape[-1] += 1
    return {"input": tensor(random, dtype, batch + [rows, columns]),
            "diagonal": tensor(random, dtype, batch + shape), "k": argument,
            "align": ALIGN[random.integers(4)]}


def without_align(make):
    def case(random, dtype):
        arguments = make(random, dtype)
        arguments.pop("align", None)
        return arguments
    return case


def diag(random, dtype):
    return {"diagonal": tensor(random, dtype, sizes(random, random.integers(1, 4)))}


def diag_part(random, dtype):
    shape = sizes(random, random.integers(1, 4))
    return {"input": tensor(random, dtype, shape + shape[::-1]
                            if random.random() < .1 else shape + shape)}


def resize_attributes(random):
    return [{}, {"align_corners": True}, {"half_pixel_centers": True}][
        random.integers(3)]


def resize(random, dtype):
    shape = [random.integers(0, 3), *random.integers(1, 9, 2), random.integers(0, 4)]
    return {"images": tensor(random, dtype, shape),
            "size": random.integers(0 if random.random() < .1 else 1, 19, 2),
            **resize_attributes(random)}


def resize_bilinear_grad(random, dtype):
    import tensorflow as tf
    batch, channels = random.integers(1, 3), random.integers(1, 4)
    return {"grads": tensor(random, tf.float32,
                            [batch, *random.integers(1, 19, 2), channels]),
            "original_image": tensor(random, dtype, [
                batch, *random.integers(1, 9, 2), channels]),
            **resize_attributes(random)}


def resize_nearest_grad(random, dtype):
    shape = [random.integers(1, 3), *random.integers(1, 19, 2), random.integers(1, 4)]
    return {"grads": tensor(random, dtype, shape),
            "size": random.integers(1, 9, 2), **resize_attributes(random)}


# For each op: its random arguments, and the allowed distance in units in the last
# place of the largest result.
CASES = {
    "SpaceToBatchND": (space_to_batch_nd, 0),
    "BatchToSpaceND": (batch_to_space_nd, 0),
    "SpaceToBatch": (space_to_batch, 0),
    "BatchToSpace": (batch_to_space, 0),
    "SpaceToDepth": (space_to_depth, 0),
    "DepthToSpace": (depth_to_space, 0),
    "Roll": (roll, 0),
    "MatrixDiag": (matrix_diag, 0),
    "MatrixDiagPart": (matrix_diag_part, 0),
    "MatrixSetDiag": (matrix_set_diag, 0),
    "MatrixDiagV2": (without_align(matrix_diag_v3), 0),
    "MatrixDiagPartV2": (without_align(matrix_diag_part_v3), 0),
    "MatrixSetDiagV2": (without_align(matrix_set_diag_v3), 0),
    "MatrixDiagV3": (matrix_diag_v3, 0),
    "MatrixDiagPartV3": (matrix_diag_part_v3, 0),
    "MatrixSetDiagV3": (matrix_set_diag_v3, 0),
    "Diag": (diag, 0),
    "DiagPart": (diag_part, 0),
    "ResizeBilinear": (resize, 2),
    "ResizeNearestNeighbor": (resize, 0),
    "ResizeBilinearGrad": (resize_bilinear_grad, 4),
    "ResizeNearestNeighborGrad": (resize_nearest_grad, 2),
}


def compare(op, seed, runs):
    """Returns the differences between the device and the CPU, and the number of
    comparisons and of errors that both reported."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    make, tolerance = CASES[op]
    differences, compared, failed = [], 0, 0
    on_cpu = [types["T"] for name, types, _ in registered("CPU") if name == op]
    on_cpu = {number for numbers in on_cpu for number in numbers}
    for name, types, _ in registered():
        for number in on_cpu.intersection(types["T"]) if name == op else ():
            for _ in range(runs):
                arguments = make(random, tf.as_dtype(number))
                device = result(DEVICE, op, arguments)
                cpu = result("/device:CPU:0", op, arguments)
                if isinstance(cpu, str) or isinstance(device, str):
                    same = type(cpu) is type(device) and cpu == device
                    failed += 1
                else:
                    if op == "ResizeBilinearGrad" and number == tf.float64:
                        # TensorFlow's terms have the accuracy of float.
                        device, cpu = np.float32(device), np.float32(cpu)
                    same = distance(device, cpu) <= tolerance
                    compared += 1
                if not same:
                    differences.append(describe(op, arguments, device, cpu))
    return {"differences": differences[:3], "compared": compared, "failed": failed}


def describe(op, arguments, *results):
    """Returns the arguments, large ones as type and shape, and the results."""
    import numpy as np

    def text(value):
        if isinstance(value, np.ndarray) and value.size > 8:
            return f"{value.dtype.name}{list(value.shape)}"
        return repr(value)
    given = ", ".join(f"{k}={text(v)}" for k, v in arguments.items())
    return f"{op}({given}): device {text(results[0])}, CPU {text(results[1])}"


def distance(x, y):
    """Returns units_apart relative to the largest element: a sum of terms that cancel
    each other is as accurate as its terms."""
    import numpy as np
    if x.shape != y.shape or x.dtype != y.dtype or not x.size or x.dtype == bool:
        return units_apart(x, y)
    largest = np.abs(y.astype(np.float64)).max()
    if np.issubdtype(x.dtype, np.integer) or not np.isfinite(largest):
        return units_apart(x, y)
    offset = np.full_like(y, largest)
    return units_apart((x.astype(np.float64) - y + offset).astype(x.dtype), offset)


def result(device, op, arguments):
    """Returns the result, or the class of the error."""
    import numpy as np
    import tensorflow as tf
    with tf.device(device):
        try:
            tensors = {}
            for name, value in arguments.items():
                is_tensor = isinstance(value, (np.ndarray, np.generic)) or (
                    name in ("k", "num_rows", "num_cols"))
                if is_tensor and name not in TENSORS:
                    # Arguments in host memory.
                    value = tf.constant(np.asarray(value, np.int32))
                elif is_tensor:
                    value = tf.constant(value)
                tensors[name] = value
            return getattr(tf.raw_ops, op)(**tensors).numpy()
        except tf.errors.OpError as error:
            return type(error).__name__


TENSORS = {"input", "diagonal", "images", "grads", "original_image", "padding_value"}


def channels_first(seed):
    """Returns whether SpaceToDepth and DepthToSpace give the same results for both
    layouts on the device; TensorFlow's CPU has only one of them."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(seed)
    same = []
    for op, make in (("SpaceToDepth", space_to_depth),
                     ("DepthToSpace", depth_to_space)):
        for _ in range(10):
            arguments = make(random, tf.float32)
            last = result(DEVICE, op, arguments)
            arguments["input"] = arguments["input"].transpose(0, 3, 1, 2)
            first = result(DEVICE, op, {**arguments, "data_format": "NCHW"})
            if isinstance(last, str) or isinstance(first, str):
                same.append(type(last) is type(first) and last == first)
            else:
                same.append(np.array_equal(last, first.transpose(0, 2, 3, 1)))
    return same
