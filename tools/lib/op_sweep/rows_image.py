# SPDX-License-Identifier: Apache-2.0
"""Arguments of ops that resize, crop or color images or move their blocks."""

import numpy as np

from op_sweep.rows import row


@row("SpaceToDepth DepthToSpace")
def _space_depth(g):
    size = g.attrs["block_size"] = g.integer(2, 3)
    g.attrs["data_format"] = b"NHWC"
    h, w, c = (g.integer(1, 3) for _ in range(3))
    g.tensor("input", [g.integer(1, 3), h * size, w * size, c] if g.op[0] == "S" else
             [g.integer(1, 3), h, w, c * size * size])


@row("SpaceToBatchND BatchToSpaceND")
def _space_batch(g):
    dims = g.integer(1, 3)
    block = [g.integer(1, 3) for _ in range(dims)]
    edges = [[g.integer(0, 2), 0] for _ in range(dims)]
    small = [g.integer(1, 3) for _ in range(dims)]
    rest = g.shape(high=2)
    g.put("block_shape", block)
    if g.op == "SpaceToBatchND":
        sizes = [max(n * b - e[0], 0) for n, b, e in zip(small, block, edges)]
        edges = [[n * b - s, 0] for n, b, s in zip(small, block, sizes)]
        g.put("paddings", edges)
        g.tensor("input", [g.integer(1, 3), *sizes, *rest])
    else:
        g.put("crops", [[min(e[0], n * b), 0] for e, n, b in zip(edges, small, block)])
        g.tensor("input", [g.integer(1, 2) * int(np.prod(block)), *small, *rest])


@row("SpaceToBatch BatchToSpace")
def _space_batch_2d(g):
    size = g.attrs["block_size"] = g.integer(2, 3)
    h, w = g.integer(1, 3), g.integer(1, 3)
    if g.op[0] == "S":
        g.put("paddings", [[0, 0], [0, 0]])
        g.tensor("input", [g.integer(1, 3), h * size, w * size, g.integer(1, 3)])
    else:
        g.put("crops", [[0, 0], [0, 0]])
        g.tensor("input", [size * size * g.integer(1, 2), h, w, g.integer(1, 3)])


def _resize_attrs(g):
    centers = g.chance(.5)
    g.attrs.update(half_pixel_centers=centers,
                   align_corners=not centers and g.chance(.5))


@row("ResizeBilinear ResizeNearestNeighbor ResizeBicubic ResizeArea")
def _resize(g):
    g.profile = "plain"
    _resize_attrs(g)
    g.tensor("images", [g.integer(1, 3)] + [g.integer(1, 7) for _ in range(3)])
    g.put("size", [g.integer(1, 9), g.integer(1, 9)])


@row("ResizeBilinearGrad ResizeNearestNeighborGrad ResizeBicubicGrad")
def _resize_grad(g):
    g.profile = "plain"
    _resize_attrs(g)
    batch, depth = g.integer(1, 3), g.integer(1, 4)
    g.tensor("grads", [batch, g.integer(1, 9), g.integer(1, 9), depth])
    size = [g.integer(1, 9), g.integer(1, 9)]
    if "Nearest" in g.op:
        g.put("size", size)
    else:
        g.tensor("original_image", [batch, *size, depth])


@row("ScaleAndTranslate ScaleAndTranslateGrad")
def _scale(g):
    g.profile = "plain"
    small, large = ([g.integer(1, 7), g.integer(1, 7)] for _ in range(2))
    batch, depth = g.integer(1, 3), g.integer(1, 3)
    if g.op.endswith("Grad"):
        g.tensor("grads", [batch, *small, depth])
        g.tensor("original_image", [batch, *large, depth])
    else:
        g.tensor("images", [batch, *small, depth])
        g.put("size", large)
    # Of other positions, rounding decides whether they are in the image.
    g.put("scale", [g.choice([.3, .7, 1.1, 2.3]) for _ in range(2)])
    g.put("translation", [g.choice([-.37, 0.11, 1.13]) for _ in range(2)])
    g.attrs["kernel_type"] = g.choice([b"lanczos1", b"lanczos3", b"lanczos5", b"gaussian",
                                       b"triangle", b"keyscubic", b"mitchellcubic"])


@row("CropAndResize")
def _crop(g):
    g.profile = "plain"
    batch = g.integer(1, 3)
    g.tensor("image", [batch, g.integer(2, 7), g.integer(2, 7), g.integer(1, 3)])
    boxes = g.integer(1, 4)
    g.tensor("boxes", [boxes, 4], -.2, 1.2)
    g.tensor("box_ind", [boxes], 0, batch - 1)
    g.put("crop_size", [g.integer(1, 6), g.integer(1, 6)])


@row("RGBToHSV HSVToRGB AdjustContrastv2 AdjustHue AdjustSaturation")
def _colors(g):
    images = next(arg.name for arg in g.definition.input_arg)
    g.tensor(images, [g.integer(1, 3), g.integer(1, 5), g.integer(1, 5), 3], 0, 1)
    for arg in list(g.definition.input_arg)[1:]:
        g.tensor(arg.name, [], .1, .9)


@row("ImageProjectiveTransformV2 ImageProjectiveTransformV3")
def _project(g):
    batch = g.integer(1, 3)
    g.tensor("images", [batch, g.integer(2, 6), g.integer(2, 6), g.integer(1, 3)],
             -3 if np.dtype(g.dtype("images")).kind != "u" else 0, 9)
    # Positions away from the middle between two pixels, where rounding decides.
    moves = np.tile([1, 0, .27, 0, 1, -.31, 0, 0], [g.choice([1, batch]), 1])
    g.put("transforms", moves)
    g.put("output_shape", [g.integer(1, 6), g.integer(1, 6)])
    if g.op.endswith("V3"):
        g.put("fill_value", 2)
    g.attrs.update(interpolation=g.choice([b"NEAREST", b"BILINEAR"]), fill_mode=g.choice(
        [b"CONSTANT", b"REFLECT", b"WRAP", b"NEAREST"] if g.op.endswith("V3") else
        [b"CONSTANT", b"REFLECT", b"WRAP"]))


@row("NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
     "NonMaxSuppressionV5")
def _suppress(g):
    count = g.integer(0, 9)
    corners = g.values(g.dtype("boxes"), [count, 2], 0, 1)
    sides = g.values(g.dtype("boxes"), [count, 2], .1, 1)
    g.put("boxes", np.concatenate([corners, corners + sides], -1))
    g.tensor("scores", [count], 0, 1)
    g.put("max_output_size", g.integer(0, 6))
    for name in ("iou_threshold", "score_threshold", "soft_nms_sigma"):
        if any(arg.name == name for arg in g.definition.input_arg):
            g.put(name, 0 if "sigma" in name else .4)
    if g.has("iou_threshold"):
        g.attrs["iou_threshold"] = .4
    g.attrs["pad_to_max_output_size"] = False
