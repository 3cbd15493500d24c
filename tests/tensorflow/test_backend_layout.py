# SPDX-License-Identifier: Apache-2.0
"""Tests the backend kernels that rearrange and resize tensors (tfplug/op_kernels/
spatial.h, diagonal.h and resize.h) on a device with the reference primitives: each op
and type equals TensorFlow's CPU kernel."""

import backend_layout_cases as cases
import harness
import pytest

RUNS = 25


def run_each(function, arguments):
    results = harness.run_each(function, arguments, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(
            harness.small_plugin_path("reference_device"))})
    for result in results:
        assert result.ok, result
    return [result.value for result in results]


@pytest.fixture(scope="module")
def results():
    ops = list(cases.CASES)
    return dict(zip(ops, run_each(cases.compare, [[op, 1, RUNS] for op in ops])))


@pytest.mark.parametrize("op", cases.CASES)
def test_equals_the_cpu(op, results):
    result = results[op]
    assert not result["differences"], "\n".join(result["differences"])
    assert result["compared"] >= RUNS, result


def test_both_report_invalid_arguments(results):
    for op in ("SpaceToBatchND", "BatchToSpaceND", "SpaceToDepth", "DepthToSpace",
               "MatrixDiagPartV3", "MatrixSetDiagV3", "DiagPart", "ResizeBilinear"):
        assert results[op]["failed"] > 0, op


def test_channels_first():
    [same] = run_each(cases.channels_first, [[2]])
    assert all(same), same
