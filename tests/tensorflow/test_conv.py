# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling, batch normalization, activations and losses with their
gradients: cpu_sim's results equal those of TensorFlow's CPU device."""

import conv_cases
import harness
import pytest

TOLERANCE = 2e-5  # relative to the largest value of a result, or to 0.1
# Of results that are rounded to 11 or 8 bits.
UNITS = {"float16": 2**-10, "bfloat16": 2**-7}


def _cases():
    """Yields (function of conv_cases, its arguments)."""
    for function, cases in (("convolution", conv_cases.CONVOLUTIONS),
                            ("depthwise", conv_cases.DEPTHWISE),
                            ("pool", conv_cases.POOLS)):
        for case in cases:
            yield function, [*case, False]
            if (1, 1) == case[-1] or function == "pool":
                yield function, [*case, True]
    for case in conv_cases.GROUPS:
        yield "groups", list(case)
    for counts_batch in (False, True):
        for padding in ("SAME", "VALID"):
            yield "second_gradient", [counts_batch, padding]
    for kind in ("convolution", "depthwise", "pool"):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            yield "channels_first", [kind, dtype]
    for kind in ("any convolution", "any convolution of volumes", "convolution of volumes",
                 "pool of volumes"):
        yield "channels_first", [kind, "float32"]
    for shape in conv_cases.NORMALIZED:
        for training, factor in ((True, 1.0), (True, 0.1), (False, 1.0)):
            yield "batch_norm", [shape, training, factor]
    yield "batch_norm", [(2, 5, 6, 3), True, 1.0, "V3", True]
    yield "batch_norm", [(2, 5, 6, 3), False, 1.0, "V2"]
    yield "batch_norm", [(2, 5, 6, 3), True, 1.0, ""]
    for shape in ((2, 5, 6, 3), (1, 7, 1, 24), (2, 3, 4, 5, 6), (0, 5, 6, 3)):
        for training in (True, False):
            yield "batch_norm", [shape, training, 1.0, "V3", False, True]
    for name in conv_cases.ACTIVATIONS:
        yield "activation", [name]
    for case in conv_cases.LOGITS:
        yield "cross_entropy", list(case)
    for op in conv_cases.FUSABLE:
        for names in conv_cases.FUSED:
            yield "fused", [op, names]
    for case in conv_cases.PADS:
        yield "pad", list(case)


def _tolerance(arguments):
    last = arguments[-1]
    return UNITS.get(last, TOLERANCE) if isinstance(last, str) else TOLERANCE


def check(function, arguments):
    """Returns the largest error of a case, relative to the tolerance."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)

    def tuples(value):  # JSON has no tuples; only paddings are real lists
        return tuple(map(tuples, value)) if isinstance(value, list) else value

    if function not in ("convolution", "depthwise", "pad", "fused"):
        arguments = list(map(tuples, arguments))
    results = []
    for device in ("CPU", "SIM"):
        with tf.device(f"/device:{device}:0"):
            found = getattr(conv_cases, function)(
                tf, np.random.default_rng(1), *arguments)
        assert all(device in t.device for t in found)
        results.append([t.numpy() for t in found])
    worst = 0.0
    for i, (want, have) in enumerate(zip(*results)):
        assert have.shape == want.shape, f"{i}: {have.shape}, not {want.shape}"
        np.testing.assert_array_equal(np.isnan(have), np.isnan(want), str(i))
        with np.errstate(all="ignore"):
            same = (have == want) | np.isnan(want)
            finite = np.abs(want[np.isfinite(want)])
            error = np.abs(have - want)[~same]
        if error.size:
            allowed = _tolerance(arguments)
            worst = max(worst,
                        error.max() / (finite.max(initial=0.1) * allowed))
            assert worst < 1, f"{i}: have {have}\nwant {want}"
    return float(worst)


@pytest.fixture(scope="module", name="results")
def _results():
    cases = list(_cases())
    return list(zip(cases, harness.run_each(check, cases)))


@pytest.mark.parametrize("function", sorted({name for name, _ in _cases()}))
def test_results_match_the_cpu(results, function):
    mine = [(case, result) for case, result in results if case[0] == function]
    assert len(mine) > 2
    failed = [f"{case}: {result}" for case, result in mine if not result.ok]
    assert not failed, f"{len(failed)} of {len(mine)}\n" + "\n".join(failed)


def get_error(op, arguments):
    """Returns SIM's error for invalid arguments; tensors are given as shapes."""
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    given = {name: np.ones(value[1:], np.float32)
             if isinstance(value, list) and value[0] == "ones" else value
             for name, value in arguments.items()}
    with tf.device("/device:SIM:0"):
        try:
            getattr(tf.raw_ops, op)(**given)
        except tf.errors.OpError as error:
            return f"{type(error).__name__}: {error}"
    return "no error"


def test_bad_arguments_raise():
    image, taps = ["ones", 1, 4, 4, 2], ["ones", 3, 3, 2, 3]
    one = dict(strides=[1, 1, 1, 1], padding="VALID")
    cases = [
        ("Conv2D", dict(input=["ones", 4, 4, 2], filter=taps, **one),
         "InvalidArgumentError", "4-dimensional"),
        ("Conv2D", dict(input=["ones", 1, 4, 4, 3], filter=taps, **one),
         "InvalidArgumentError", "evenly divisible"),
        ("Conv2D", dict(input=image, filter=["ones", 9, 9, 2, 3], **one),
         "InvalidArgumentError", "negative"),
        ("Conv2DBackpropInput",
         dict(input_sizes=[1, 4, 4, 2], filter=taps,
              out_backprop=["ones", 1, 4, 4, 3], **one),
         "InvalidArgumentError", "out_backprop must have shape"),
        ("DepthwiseConv2dNative",
         dict(input=image, filter=["ones", 3, 3, 5, 1], **one),
         "InvalidArgumentError", "depth"),
        ("MaxPool", dict(input=["ones", 4, 4], ksize=[1, 2, 2, 1], **one),
         "InvalidArgumentError", "4-dimensional"),
        ("Pad", dict(input=image, paddings=[[0, 0]]),
         "InvalidArgumentError", "paddings"),
    ]
    results = harness.run_each(get_error, [list(case[:2]) for case in cases])
    for (op, arguments, kind, words), result in zip(cases, results):
        assert result.ok and kind in result.value and words in result.value, (
            f"{op} of {arguments}: {result}")
