#!/usr/bin/env python3
"""make_more_nn_cases.py - golden cases of further ops on images, detection, losses, training heads, fused and sequence ops.

    python make_more_nn_cases.py --out more_nn && ./pack.sh more_nn

Same needs and same format as make_goldens.py; more_nn.tar.xz beside this file is the result. Every case of an op
of GRADIENTS whose first input is of floats is also one of its gradient.
"""
import sys

import make_goldens as g
import numpy as np
import paddle
import paddle.nn.functional as F
from case_program import arguments, build_without_kernel, cases_of, make_all, register, write_modelled_case
from make_goldens import Case, LoD

CASES = []          # (op, function Rng -> Cases)
GRADIENTS = set()   # ops whose cases are also made of their gradients
cases = register(CASES, GRADIENTS)
UNFUSED = {}        # op -> function that computes it by others
FLOATS = ("float32", "float64")
g.NEVER_FETCH.add("W_Out")      # of hierarchical_sigmoid: of parameter servers


# ----------------------------------------------------------------------------
# Pooling
# ----------------------------------------------------------------------------
@cases("maxout", gradient=True)
def _maxout(r, op):
    for dtype in FLOATS:
        yield Case(f"axis1_{dtype}", {"X": r.distinct((2, 6, 3, 4), dtype=dtype)}, "Out", {"groups": 3, "axis": 1})
        yield Case(f"last_{dtype}", {"X": r.distinct((2, 3, 4, 6), dtype=dtype)}, "Out", {"groups": 2, "axis": -1})
    yield Case("ties", {"X": np.round(r.f((2, 4, 3, 3), -1, 1))}, "Out", {"groups": 4, "axis": 1})


def windows(rank, ksize, **attrs):
    return {"ksize": ksize, "strides": [1] * rank, "paddings": [0] * rank, "global_pooling": False, "adaptive": False, **attrs}


@cases("max_pool2d_with_index", "max_pool3d_with_index", gradient=True)
def _max_pool_with_index(r, op):
    rank = 3 if "3d" in op else 2
    image = (4, 6, 7)[-rank:]
    for dtype in FLOATS:
        x = r.distinct((2, 3) + image, dtype=dtype)
        yield Case(f"strided_{dtype}", {"X": x}, "Out,Mask", windows(rank, [2] * rank, strides=[2] * rank))
        yield Case(f"padded_{dtype}", {"X": x}, "Out,Mask",
                   windows(rank, [3] * rank, strides=[1, 2, 2][-rank:], paddings=[1] * rank))
        yield Case(f"adaptive_{dtype}", {"X": x}, "Out,Mask", windows(rank, [2, 4, 3][-rank:], adaptive=True))
    yield Case("global", {"X": x}, "Out,Mask", windows(rank, [1] * rank, global_pooling=True))
    yield Case("ties", {"X": np.round(r.f((2, 2) + image, -1, 1))}, "Out,Mask", windows(rank, [3] * rank, strides=[2] * rank))
    yield Case("empty", {"X": np.zeros((0, 2) + image, "float32")}, "Out,Mask", windows(rank, [2] * rank))


@cases("unpool", "unpool3d", gradient=True)
def _unpool(r, op):
    rank = 3 if op.endswith("3d") else 2
    small, large = (2, 3, 2)[-rank:], (4, 7, 5)[-rank:]
    base = {"ksize": [2] * rank, "strides": [2] * rank, "paddings": [0] * rank, "output_size": list(large),
            "data_format": "NCDHW" if rank == 3 else "NCHW"}
    if rank == 2:
        base["unpooling_type"] = "max"
    cells = int(np.prod(large))

    def indices(n, c, dtype):
        picks = [r.perm(cells)[:int(np.prod(small))] for _ in range(n * c)]
        return np.array(picks).reshape((n, c) + small).astype(dtype)
    for dtype in FLOATS:
        yield Case(f"{dtype}", {"X": r.f((2, 3) + small, dtype=dtype), "Indices": indices(2, 3, "int32")}, "Out", base)
    same = np.zeros((1, 2) + small, "int32")
    same[0, 1] = 3
    yield Case("same_place", {"X": r.f((1, 2) + small), "Indices": same}, "Out", base)


@cases("spp", gradient=True)
def _spp(r, op):
    for dtype in FLOATS:
        for kind in ("max", "avg"):
            yield Case(f"{kind}_{dtype}", {"X": r.distinct((2, 3, 8, 9), dtype=dtype)}, "Out", {"pyramid_height": 3, "pooling_type": kind})
        yield Case(f"bins_of_padding_{kind}", {"X": r.distinct((1, 2, 5, 6))}, "Out", {"pyramid_height": 3, "pooling_type": kind})
    yield Case("ties", {"X": np.round(r.f((2, 2, 6, 6), -1, 1))}, "Out", {"pyramid_height": 2, "pooling_type": "max"})


# ----------------------------------------------------------------------------
# Detection
# ----------------------------------------------------------------------------
@cases("affine_grid", gradient=True)
def _affine_grid(r, op):
    for dtype in FLOATS:
        for corners in (True, False):
            yield Case(f"plane{int(corners)}_{dtype}", {"Theta": r.f((2, 2, 3), dtype=dtype)}, "Output",
                       {"output_shape": [2, 3, 4, 5], "align_corners": corners})
            yield Case(f"volume{int(corners)}_{dtype}", {"Theta": r.f((2, 3, 4), dtype=dtype)}, "Output",
                       {"output_shape": [2, 1, 3, 4, 2], "align_corners": corners})
    yield Case("one_pixel", {"Theta": r.f((1, 2, 3))}, "Output", {"output_shape": [1, 1, 1, 3], "align_corners": False})
    yield Case("one_pixel_corners", {"Theta": r.f((1, 2, 3))}, "Output", {"output_shape": [1, 1, 1, 3], "align_corners": True})
    yield Case("shape_tensor", {"Theta": r.f((2, 2, 3)), "OutputShape": np.array([2, 3, 2, 3], "int32")}, "Output",
               {"output_shape": [], "align_corners": True})


@cases("psroi_pool", gradient=True)
def _psroi_pool(r, op):
    attrs = {"pooled_height": 2, "pooled_width": 3, "output_channels": 2, "spatial_scale": 0.5}
    for dtype in FLOATS:
        x = r.f((2, 12, 8, 7), dtype=dtype)
        yield Case(f"lod_{dtype}", {"X": x, "ROIs": LoD(r.boxes(5, 13.0, dtype), [[0, 2, 5]])}, "Out", attrs, no_grad=("ROIs",))
        yield Case(f"rois_num_{dtype}", {"X": x, "ROIs": r.boxes(5, 13.0, dtype), "RoisNum": np.array([4, 1], "int32")}, "Out", attrs,
                   no_grad=("ROIs",))
    outside = np.array([[-9, -9, -5, -5], [3, 3, 1, 1], [90, 2, 99, 8], [-3, 2.5, 30, 4.5]], "float32")
    yield Case("outside", {"X": x[:1].astype("float32"), "ROIs": LoD(outside, [[0, 4]])}, "Out", attrs, no_grad=("ROIs",))


@cases("deformable_psroi_pooling", gradient=True)
def _deformable_psroi_pooling(r, op):
    def one(name, dtype="float32", no_trans=False, classes=1, group=(2, 3), part=(2, 3), scale=0.5, boxes=None):
        boxes = r.boxes(4, 13.0, dtype) if boxes is None else boxes
        n, dim = len(boxes), 2
        ins = {"Input": r.f((2, dim * group[0] * group[1], 8, 7), dtype=dtype), "ROIs": LoD(boxes, [[0, n - 1, n]]),
               "Trans": r.f((n, 2 * classes) + part, -1, 1, dtype)}
        return Case(name, ins, "TopCount,Output", {"no_trans": no_trans, "spatial_scale": scale, "output_dim": dim, "group_size": list(group),
                                                  "pooled_height": 2, "pooled_width": 3, "part_size": list(part), "sample_per_part": 4,
                                                  "trans_std": 0.1}, no_grad=("ROIs",), tol=(1e-4, 1e-5) if dtype == "float32" else None)
    for dtype in FLOATS:
        yield one(f"trans_{dtype}", dtype)
        yield one(f"no_trans_{dtype}", dtype, no_trans=True)
        yield one(f"classes_{dtype}", dtype, classes=2, group=(1, 1), part=(1, 2))
    yield one("outside", boxes=np.array([[-9, -9, -5, -5], [90, 2, 99, 8], [-3, 2.5, 30, 4.5]], "float32"))


@cases("polygon_box_transform")
def _polygon_box_transform(r, op):
    for dtype in FLOATS:
        yield Case(f"quad_{dtype}", {"Input": r.f((2, 8, 3, 4), -5, 5, dtype)}, "Output")


@cases("box_decoder_and_assign")
def _box_decoder(r, op):
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", {"PriorBox": r.boxes(6, 20.0, dtype), "PriorBoxVar": r.f((4,), 0.1, 0.3, dtype),
                                      "TargetBox": r.f((6, 12), -3, 3, dtype), "BoxScore": r.f((6, 3), 0, 1, dtype)},
                   "DecodeBox,OutputAssignBox", {"box_clip": 0.4})
    yield Case("background_alone", {"PriorBox": r.boxes(2, 20.0), "PriorBoxVar": r.f((4,), 0.1, 0.3), "TargetBox": r.f((2, 4)),
                                    "BoxScore": r.f((2, 1), 0, 1)}, "DecodeBox,OutputAssignBox", {"box_clip": 4.135})
    yield Case("low_scores", {"PriorBox": r.boxes(2, 20.0), "PriorBoxVar": r.f((4,), 0.1, 0.3), "TargetBox": r.f((2, 8)),
                              "BoxScore": np.array([[0, -1], [0, -0.5]], "float32")}, "DecodeBox,OutputAssignBox", {"box_clip": 4.135})


@cases("nms")
def _nms(r, op):
    for dtype in FLOATS:
        for threshold in (0.1, 0.4):
            yield Case(f"{int(10 * threshold)}_{dtype}", {"Boxes": r.boxes(30, 1.0, dtype)}, "KeepBoxesIdxs", {"iou_threshold": threshold})
    same = np.array([[0, 0, 2, 2], [0, 0, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], [3, 3, 1, 1], [3, 3, 1, 1]], "float32")
    yield Case("degenerate", {"Boxes": same}, "KeepBoxesIdxs", {"iou_threshold": 0.5})


@cases("locality_aware_nms")
def _locality_aware_nms(r, op):
    def one(name, boxes, scores, **attrs):
        base = {"background_label": -1, "score_threshold": 0.3, "nms_top_k": -1, "nms_threshold": 0.3, "nms_eta": 1.0, "keep_top_k": -1,
                "normalized": True}
        return Case(name, {"BBoxes": boxes, "Scores": scores}, "Out", {**base, **attrs})

    def quads(n, m):
        b = np.stack([r.boxes(m) for _ in range(n)])
        return b[:, :, [0, 1, 2, 1, 2, 3, 0, 3]]

    def runs(n, m, dtype):              # near duplicates follow each other
        b = np.stack([np.repeat(r.boxes((m + 2) // 3), 3, 0)[:m] for _ in range(n)])
        return (b + r.f(b.shape, -0.02, 0.02)).astype(dtype)
    for dtype in FLOATS:
        yield one(f"boxes_{dtype}", runs(2, 20, dtype), r.f((2, 1, 20), 0, 1, dtype))
        yield one(f"classes_{dtype}", runs(2, 12, dtype), r.f((2, 3, 12), 0, 1, dtype), background_label=0, nms_top_k=6, keep_top_k=5)
        yield one(f"eta_{dtype}", 30 * runs(1, 20, dtype), r.f((1, 1, 20), 0, 1, dtype), nms_threshold=0.8, nms_eta=0.7, normalized=False)
    yield one("quads", quads(2, 12), r.f((2, 2, 12), 0, 1))
    yield one("nothing", runs(2, 4, "float32"), np.zeros((2, 1, 4), "float32"), score_threshold=9.0)
    yield one("one_image_empty", runs(2, 4, "float32"), np.stack([np.zeros((1, 4)), np.ones((1, 4))]).astype("float32"))


@cases("retinanet_detection_output")
def _retinanet(r, op):
    def one(name, n, sizes, classes, dtype="float32", **attrs):
        base = {"score_threshold": 0.3, "nms_top_k": 20, "nms_threshold": 0.3, "nms_eta": 1.0, "keep_top_k": 8}
        return Case(name, {"BBoxes": [r.f((n, m, 4), -0.6, 0.6, dtype) for m in sizes], "Scores": [r.f((n, m, classes), 0, 1, dtype) for m in sizes],
                           "Anchors": [r.boxes(m, 40.0, dtype) for m in sizes],
                           "ImInfo": np.array([[50, 40, 1.25], [33, 47, 1.0], [64, 64, 2.0]][:n], dtype)}, "Out", {**base, **attrs})
    for dtype in FLOATS:
        yield one(f"levels_{dtype}", 2, (12, 6, 3), 3, dtype)
        yield one(f"one_level_{dtype}", 3, (7,), 1, dtype, score_threshold=0.95)
    yield one("all_kept", 1, (5, 4), 2, keep_top_k=100, nms_top_k=-1, nms_threshold=1.0)
    yield one("eta", 1, (20, 10), 1, nms_threshold=0.9, nms_eta=0.6, keep_top_k=100)


@cases("yolov3_loss", gradient=True)
def _yolov3_loss(r, op):
    def one(name, grid, boxes, classes, dtype="float32", score=False, **attrs):
        base = {"anchors": [10, 13, 16, 30, 33, 23, 30, 61], "anchor_mask": [0, 1, 3], "class_num": classes, "ignore_thresh": 0.4,
                "downsample_ratio": 16, "use_label_smooth": True, "scale_x_y": 1.0}
        n = 2
        gt = np.concatenate([r.f((n, boxes, 2), 0.05, 0.95), r.f((n, boxes, 2), 0.1, 0.8)], -1).astype(dtype)
        gt[0, -1] = 0           # padding
        ins = {"X": r.f((n, 3 * (5 + classes), grid, grid), -1.5, 1.5, dtype), "GTBox": gt, "GTLabel": r.i((n, boxes), 0, classes - 1, "int32")}
        if score:
            ins["GTScore"] = r.f((n, boxes), 0.3, 1, dtype)
        return Case(name, ins, "Loss,ObjectnessMask,GTMatchMask", {**base, **attrs}, no_grad=("GTBox", "GTScore"))
    for dtype in FLOATS:
        yield one(f"smooth_{dtype}", 5, 3, 4, dtype)
        yield one(f"scores_{dtype}", 4, 4, 3, dtype, True, use_label_smooth=False)
    yield one("scale", 3, 2, 2, scale_x_y=1.2, ignore_thresh=0.1)
    yield one("one_class", 3, 2, 1)


@cases("detection_map")
def _detection_map(r, op):
    def one(name, classes, dets, labels, difficult=True, state=False, dtype="float32", **attrs):
        base = {"class_num": classes, "background_label": 0, "overlap_threshold": 0.2, "evaluate_difficult": True, "ap_type": "integral"}

        def rows(lengths, columns, scores):
            n = sum(lengths)
            head = [r.i((n, 1), 0, classes - 1)]
            if columns == 6:
                head.append(r.distinct((n, 1), 0.05, 0.95) if scores else r.i((n, 1), 0, 1))
            return LoD(np.concatenate(head + [r.boxes(n, 1.1)], 1).astype(dtype), [np.cumsum([0] + list(lengths)).tolist()])
        ins = {"DetectRes": rows(dets, 6, True), "Label": rows(labels, 6 if difficult else 5, False)}
        if state:
            flags = []
            for _ in range(2):
                counts = [r.n(0, 3) for _ in range(classes)]
                flags.append(LoD(np.stack([r.distinct((sum(counts),), 0, 1), r.i((sum(counts),), 0, 1)], 1).astype(dtype),
                                 [np.cumsum([0] + counts).tolist()]))
            flags[1] = LoD(np.stack([flags[0].array[:, 0], 1 - flags[0].array[:, 1]], 1), flags[0].lod)
            ins.update(HasState=np.array([1], "int32"), PosCount=r.i((classes, 1), 1, 4, "int32"), TruePos=flags[0], FalsePos=flags[1])
        return Case(name, ins, "AccumPosCount,AccumTruePos,AccumFalsePos,MAP", {**base, **attrs})
    for dtype in FLOATS:
        for kind in ("integral", "11point"):
            yield one(f"{kind}_{dtype}", 3, (7, 5), (4, 6), dtype=dtype, ap_type=kind)
            yield one(f"{kind}_state_{dtype}", 3, (7, 5), (4, 6), dtype=dtype, ap_type=kind, state=True)
    yield one("no_difficult", 2, (9, 8), (6, 5), evaluate_difficult=False)
    yield one("five_columns", 2, (9, 8, 3), (6, 5, 1), False)
    yield one("empty_images", 3, (4, 0, 3), (0, 2, 3))
    yield one("background", 4, (9, 9), (3, 2), background_label=1)


@cases("generate_mask_labels")
def _generate_mask_labels(r, op):
    def one(name, images, classes=4, resolution=7, scales=None, corners=(3, 9), crowd=False, size=60.0):
        """images: for each one the polygons of its objects, and how many of its regions are foreground and background."""
        objects, polygons, points, rois, labels, segms = [0], [0], [0], [0], [], []
        centres, gt_classes, is_crowd, boxes = [], [], [], []
        for polys, foreground, background in images:
            for count in polys:
                centres.append(r.f((2,), 0.2 * size, 0.8 * size))
                for _ in range(count):
                    corner = r.n(*corners)
                    segms.append(np.maximum(centres[-1] + r.f((corner, 2), -0.3 * size, 0.3 * size), 0))
                    points.append(points[-1] + corner)
                polygons.append(polygons[-1] + count)
                gt_classes.append(r.n(1, classes - 1))
                is_crowd.append(int(crowd and len(gt_classes) % 2))
            objects.append(objects[-1] + len(polys))
            scale = (scales or [1.0] * len(images))[len(objects) - 2]
            for i in range(foreground + background):
                low = r.f((2,), 0, 0.6 * size)
                boxes.append(np.concatenate([low, low + r.f((2,), 0, 0.6 * size)]) * scale)
                labels.append(r.n(1, classes - 1) if i < foreground else 0)
            rois.append(rois[-1] + foreground + background)
        column = lambda x: np.array(x, "int32").reshape(-1, 1)
        return Case(name, {"ImInfo": np.array([[size, size, s] for s in scales or [1.0] * len(images)], "float32"),
                           "GtClasses": LoD(column(gt_classes), [objects]), "IsCrowd": LoD(column(is_crowd), [objects]),
                           "GtSegms": LoD(np.concatenate(segms).astype("float32"), [objects, polygons, points]),
                           "Rois": LoD(np.array(boxes, "float32").reshape(-1, 4), [rois]), "LabelsInt32": LoD(column(labels), [rois])},
                    "MaskRois,RoiHasMaskInt32,MaskInt32", {"num_classes": classes, "resolution": resolution})
    yield one("images", [((1, 2), 4, 3), ((1, 1, 3), 5, 2)])
    yield one("scales", [((1, 2), 4, 3), ((1,), 3, 2)], scales=[0.5, 1.7])
    yield one("crowds", [((1, 2, 1), 6, 1), ((1, 1), 4, 0)], crowd=True, scales=[1.3, 0.8])
    yield one("no_foreground", [((1,), 0, 3), ((2,), 2, 1)], scales=[0.7, 1.0])
    yield one("no_regions", [((1,), 3, 0), ((2,), 0, 0), ((1, 1), 2, 2)])
    yield one("triangles", [((1, 1, 1), 12, 0)], corners=(3, 3), resolution=14)
    yield one("lines_and_points", [((2, 2), 8, 0)], corners=(1, 2), resolution=9)
    yield one("many_corners", [((2, 1), 6, 1)], corners=(15, 30), resolution=28, classes=2)
    yield one("one_cell", [((1, 1), 6, 0)], resolution=1, classes=3)
    yield one("small_regions", [((1, 1), 12, 0)], size=2.0, resolution=6)


# ----------------------------------------------------------------------------
# Losses and heads of training
# ----------------------------------------------------------------------------
@cases("nll_loss", gradient=True)
def _nll_loss(r, op):
    for dtype in FLOATS:
        for red in ("none", "mean", "sum"):
            if dtype == "float32":                  # of float64 matrices Paddle writes beyond some buffer
                yield Case(f"{red}_{dtype}", {"X": r.f((5, 4), -3, 0), "Label": r.i((5,), 0, 3), "Weight": r.f((4,), 0.2, 2)},
                           "Out,Total_weight", {"reduction": red, "ignore_index": 2}, no_grad=("Weight",))
            yield Case(f"{red}_image_{dtype}", {"X": r.f((2, 3, 2, 4), -3, 0, dtype), "Label": r.i((2, 2, 4), 0, 2)}, "Out,Total_weight",
                       {"reduction": red, "ignore_index": -100})
    yield Case("all_ignored", {"X": r.f((3, 4), -3, 0), "Label": np.full((3,), 1)}, "Out,Total_weight", {"reduction": "mean", "ignore_index": 1})
    yield Case("column", {"X": r.f((3, 4), -3, 0), "Label": np.array([[1], [3], [0]])}, "Out,Total_weight", {"reduction": "none", "ignore_index": -100})


@cases("bpr_loss", gradient=True)
def _bpr_loss(r, op):
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", {"X": r.f((5, 4), -3, 3, dtype), "Label": r.i((5, 1), 0, 3)}, "Y")
    yield Case("two_classes", {"X": r.f((3, 2)), "Label": r.i((3, 1), 0, 1)}, "Y")
    yield Case("lod", {"X": LoD(r.f((5, 3)), [[0, 2, 5]]), "Label": LoD(r.i((5, 1), 0, 2), [[0, 2, 5]])}, "Y")
    yield Case("far_apart", {"X": np.array([[-100, 100, 0]], "float32"), "Label": np.array([[0]])}, "Y")


@cases("modified_huber_loss", gradient=True)
def _modified_huber_loss(r, op):
    yield Case("plain", {"X": r.f((9, 1), -3, 3), "Y": r.i((9, 1), 0, 1, "float32")}, "IntermediateVal,Out", no_grad=("Y",))
    yield Case("corners", {"X": np.array([[-1], [1], [1], [-1]], "float32"), "Y": np.array([[0], [0], [1], [1]], "float32")},
               "IntermediateVal,Out", no_grad=("Y",))


@cases("teacher_student_sigmoid_loss", gradient=True)
def _teacher_student(r, op):
    labels = np.array([[-2], [-1], [-0.3], [0], [0.4], [1], [1.7], [2], [-2], [0.5]])
    for dtype in FLOATS:
        yield Case(f"labels_{dtype}", {"X": r.f((10, 1), -4, 4, dtype), "Label": labels.astype(dtype)}, "Y",
                   {"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0}, no_grad=("Label",))
    yield Case("far", {"X": np.array([[-90], [90], [-30], [30]], "float32"), "Label": np.array([[-2], [-1], [0.5], [1.5]], "float32")}, "Y",
               {"soft_max_up_bound": 15.0, "soft_max_lower_bound": -15.0}, no_grad=("Label",))


@cases("identity_loss", gradient=True)
def _identity_loss(r, op):
    for dtype in FLOATS:
        for red in (0, 1, 2):
            yield Case(f"reduction{red}_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out", {"reduction": red})


@cases("fsp", gradient=True)
def _fsp(r, op):
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", {"X": r.f((2, 3, 4, 5), dtype=dtype), "Y": r.f((2, 5, 4, 5), dtype=dtype)}, "Out")
    yield Case("one_pixel", {"X": r.f((1, 2, 1, 1)), "Y": r.f((1, 3, 1, 1))}, "Out")


@cases("hierarchical_sigmoid", gradient=True)
def _hierarchical_sigmoid(r, op):
    def one(name, n, width, classes, dtype="float32", bias=True, **ins):
        rows = ins.pop("rows", classes - 1)
        base = {"X": r.f((n, width), -1, 1, dtype), "W": r.f((rows, width), -1, 1, dtype), "Label": r.i((n, 1), 0, classes - 1), **ins}
        if bias:
            base["Bias"] = r.f((rows, 1), -1, 1, dtype)
        return Case(name, base, "Out,PreOut,W_Out", {"num_classes": classes})
    for dtype in FLOATS:
        yield one(f"eight_{dtype}", 5, 3, 8, dtype)
        yield one(f"six_{dtype}", 7, 4, 6, dtype, bias=False)
        table = np.array([[0, 1, 3, -1], [0, 2, -1, -1], [0, 1, 3, 4]])
        yield one(f"tree_{dtype}", 3, 4, 6, dtype, rows=5, PathTable=table, PathCode=np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 1]]))
    yield one("two_classes", 3, 2, 2)


@cases("nce", gradient=True)
def _nce(r, op):
    def one(name, n, width, classes, sampler, seed, dtype="float32", true=1, weight=False, bias=True, **ins):
        base = {"Input": r.f((n, width), -1, 1, dtype), "Label": r.i((n, true), 0, classes - 1),
                "Weight": r.f((classes, width), -1, 1, dtype)}
        if bias:
            base["Bias"] = r.f((classes, 1), -1, 1, dtype)
        if weight:
            base["SampleWeight"] = r.f((n, 1), 0.3, 2, dtype)
        return Case(name, {**base, **ins}, "Cost,SampleLogits,SampleLabels",
                    {"num_total_classes": classes, "num_neg_samples": 4, "sampler": sampler, "seed": seed, "is_sparse": False,
                     "remote_prefetch": False, "is_test": False}, no_grad=("SampleWeight", "CustomDistProbs", "CustomDistAliasProbs"))
    for dtype in FLOATS:
        for sampler in (0, 1):
            yield one(f"sampler{sampler}_{dtype}", 5, 3, 12, sampler, 7, dtype)
        yield one(f"weights_{dtype}", 4, 3, 9, 0, 3, dtype, true=2, weight=True, bias=False)
    probs = r.f((6,), 0.1, 1)
    yield one("custom", 4, 3, 6, 2, 11, CustomDistProbs=probs / probs.sum(), CustomDistAlias=np.array([1, 2, -1, 0, 5, -1], "int32"),
              CustomDistAliasProbs=r.f((6,), 0.2, 0.9))


@cases("sampling_id")
def _sampling_id(r, op):
    for dtype in FLOATS:
        p = r.f((9, 5), 0.1, 1, dtype)
        p = (p / p.sum(1, keepdims=True)).astype(dtype)
        yield Case(f"seed_{dtype}", {"X": p}, "Out", {"min": 0.0, "max": 1.0, "seed": 5})
    yield Case("range", {"X": p.astype("float32")}, "Out", {"min": 0.4, "max": 1.3, "seed": 9})


@cases("positive_negative_pair")
def _positive_negative_pair(r, op):
    for dtype in FLOATS:
        base = {"Score": np.round(r.f((12, 2), -2, 2, dtype)), "Label": r.i((12, 1), 0, 2, dtype), "QueryID": r.i((12, 1), 0, 2)}
        outs = "PositivePair,NegativePair,NeutralPair"
        yield Case(f"plain_{dtype}", base, outs, {"column": 0})
        more = {f"Accumulate{k}Pair": np.array([v], dtype) for k, v in (("Positive", 3), ("Negative", 2.5), ("Neutral", 1))}
        yield Case(f"goes_on_{dtype}", {**base, **more, "Weight": r.f((12, 1), 0.2, 2, dtype)}, outs, {"column": -1})


# ----------------------------------------------------------------------------
# What Paddle's inference passes fuse
# ----------------------------------------------------------------------------
LENGTHS = ([3, 1, 4], [2], [0, 3, 2])


def sequences(r, lengths, width, dtype="float32"):
    return LoD(r.f((sum(lengths), width), -1, 1, dtype), [np.cumsum([0] + lengths).tolist()])


@cases("fusion_gru", "fusion_lstm")
def _fusion_rnn(r, op):
    lstm = op == "fusion_lstm"
    gates = 4 if lstm else 3
    outs = "Hidden,Cell,XX,BatchedInput,BatchedHidden,BatchedCell,ReorderedH0,ReorderedC0,CheckedCell" if lstm else \
        "ReorderedH0,XX,BatchedInput,BatchedOut,Hidden"
    hidden = tuple(o for o in outs.split(",") if o not in ("Hidden", "Cell"))

    def one(name, lengths, m, d, dtype="float32", state=False, bias=True, peepholes=False, **attrs):
        ins = {"X": sequences(r, lengths, m, dtype), "WeightX": r.f((m, gates * d), -0.7, 0.7, dtype),
               "WeightH": r.f((d, gates * d), -0.7, 0.7, dtype)}
        if bias:
            ins["Bias"] = r.f((1, (7 if peepholes else gates) * d), -0.4, 0.4, dtype)
        for slot in (("H0", "C0") if lstm else ("H0",)) if state else ():
            ins[slot] = r.f((len(lengths), d), -0.5, 0.5, dtype)
        base = {"is_reverse": False, "use_seq": True, "gate_activation": "sigmoid"}
        if lstm:
            base.update(use_peepholes=peepholes, cell_activation="tanh", candidate_activation="tanh")
        else:
            base.update(activation="tanh", origin_mode=False)
        return Case(name, ins, outs, {**base, **attrs}, nofetch=hidden, tol=(1e-4, 1e-5) if dtype == "float32" else None)
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", LENGTHS[0], 3, 5, dtype)
        yield one(f"reverse_state_{dtype}", LENGTHS[0], 4, 2, dtype, state=True, is_reverse=True)
        if lstm:
            yield one(f"peepholes_{dtype}", LENGTHS[0], 3, 4, dtype, state=True, peepholes=True)
            yield one(f"peepholes_reverse_{dtype}", LENGTHS[0], 3, 4, dtype, peepholes=True, is_reverse=True)
        else:
            yield one(f"no_bias_{dtype}", LENGTHS[0], 3, 4, dtype, bias=False)
    yield one("batched", LENGTHS[0], 3, 5, use_seq=False)
    yield one("batched_reverse_state", LENGTHS[0], 3, 5, use_seq=False, is_reverse=True, state=True)
    yield one("one_sequence", LENGTHS[1], 2, 8)
    yield one("wide", [5, 2, 7, 1], 20, 16, state=True)


@cases("fusion_squared_mat_sub")
def _squared_mat_sub(r, op):
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", {"X": r.f((3, 5), dtype=dtype), "Y": r.f((5, 4), dtype=dtype)}, "SquaredX,SquaredY,SquaredXY,Out",
                   {"scalar": 0.5}, tol=(1e-4, 1e-5) if dtype == "float32" else None)


@cases("fusion_repeated_fc_relu")
def _repeated_fc_relu(r, op):
    for dtype in FLOATS:
        for sizes in ((4, 3, 5), (6, 7, 2, 9)):
            n = len(sizes) - 1
            yield Case(f"layers{n}_{dtype}", {"X": r.f((3, sizes[0]), dtype=dtype),
                                              "W": [r.f(s, dtype=dtype) for s in zip(sizes, sizes[1:])],
                                              "Bias": [r.f((1, s), dtype=dtype) for s in sizes[1:]]}, {"ReluOut": n - 1, "Out": 1},
                       tol=(1e-4, 1e-5) if dtype == "float32" else None)


@cases("fusion_seqpool_concat")
def _seqpool_concat(r, op):
    for kind in ("SUM", "AVERAGE", "SQRT"):
        for dtype in FLOATS:
            yield Case(f"{kind.lower()}_{dtype}", {"X": [sequences(r, k, 5, dtype) for k in ([3, 1, 4], [2, 2, 1], [1, 5, 3])]}, "Out",
                       {"pooltype": kind, "axis": 1})
    yield Case("one", {"X": [sequences(r, [3, 2], 9)]}, "Out", {"pooltype": "SUM", "axis": 1})


@cases("fused_embedding_seq_pool", gradient=True)
def _embedding_seq_pool(r, op):
    def one(name, lengths, columns, dtype="float32", padding=-1):
        ids = LoD(r.i((sum(lengths), columns, 1) if columns > 1 else (sum(lengths), 1), 0, 6), [np.cumsum([0] + lengths).tolist()])
        return Case(name, {"W": r.f((7, 5), dtype=dtype), "Ids": ids}, "Out", {"combiner": "sum", "padding_idx": padding, "is_sparse": False})
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", LENGTHS[0], 1, dtype)
        yield one(f"columns_{dtype}", LENGTHS[0], 3, dtype)
    yield one("padding", LENGTHS[0], 1, padding=2)


# ----------------------------------------------------------------------------
# What they fuse for other devices: Paddle computes the ops that they are fused from
# ----------------------------------------------------------------------------
def unfused(op):
    """Calls the decorated function with variables by the names of the feeds for what the fused op gives."""
    def deco(fn):
        UNFUSED[op] = fn
        return fn
    return deco


def transformer_case(r, name, ins, attrs, dtype):
    return Case(f"{name}_{dtype}", ins, "Out", attrs, tol=(1e-4, 1e-5) if dtype == "float32" else (1e-6, 1e-7))


@cases("skip_layernorm")
def _skip_layernorm(r, op):
    for dtype in FLOATS:
        for name, shape in (("plain", (2, 3, 5)), ("wide", (1, 4, 37))):
            ins = {"X": r.f(shape, dtype=dtype), "Y": r.f(shape, dtype=dtype), "Scale": r.f(shape[-1:], 0.5, 1.5, dtype),
                   "Bias": r.f(shape[-1:], dtype=dtype)}
            yield transformer_case(r, name, ins, {"epsilon": 1e-5, "begin_norm_axis": 2}, dtype)


@unfused("skip_layernorm")
def _unfused_skip_layernorm(v, attrs):
    return F.layer_norm(v["X"] + v["Y"], v["X"].shape[2:], v["Scale"], v["Bias"], attrs["epsilon"])


@cases("fused_embedding_eltwise_layernorm")
def _embedding_layernorm(r, op):
    for dtype in FLOATS:
        for name, shape, index in (("column", (2, 3, 1), "int64"), ("matrix", (2, 4), "int64")):
            ins = {"Ids": [r.i(shape, 0, rows - 1, index) for rows in (9, 5, 2)], "Embs": [r.f((rows, 7), dtype=dtype) for rows in (9, 5, 2)],
                   "Bias": r.f((7,), dtype=dtype), "Scale": r.f((7,), 0.5, 1.5, dtype)}
            yield transformer_case(r, name, ins, {"epsilon": 1e-5}, dtype)


@unfused("fused_embedding_eltwise_layernorm")
def _unfused_embedding_layernorm(v, attrs):
    total = 0
    for i in range(3):
        ids = v[f"Ids_{i}"]
        total = total + F.embedding(paddle.reshape(ids, ids.shape[:2]), v[f"Embs_{i}"])
    return F.layer_norm(total, total.shape[2:], v["Scale"], v["Bias"], attrs["epsilon"])


@cases("multihead_matmul")
def _multihead_matmul(r, op):
    for dtype in FLOATS:
        for name, b, s, k, n, d, mask in (("plain", 2, 4, 6, 2, 3, (2, 2, 4, 4)), ("padding", 2, 5, 8, 4, 2, (2, 1, 1, 5)), ("no_mask", 1, 3, 4, 1, 4, None)):
            ins = {"Input": r.f((b, s, k), dtype=dtype), "W": r.f((k, 3, n, d), -0.7, 0.7, dtype), "Bias": r.f((3, n, d), dtype=dtype)}
            if mask:
                ins["BiasQK"] = r.f(mask, -3, 0, dtype)
            yield transformer_case(r, name, ins, {"alpha": 0.6, "head_number": n, "transpose_Q": False, "transpose_K": True, "transpose_V": False}, dtype)


@unfused("multihead_matmul")
def _unfused_multihead_matmul(v, attrs):
    k, _, n, d = v["W"].shape
    b, s, _ = v["Input"].shape
    qkv = paddle.matmul(v["Input"], paddle.reshape(v["W"], [k, 3 * n * d])) + paddle.reshape(v["Bias"], [3 * n * d])
    q, keys, values = paddle.unbind(paddle.transpose(paddle.reshape(qkv, [b, s, 3, n, d]), [2, 0, 3, 1, 4]))
    scores = attrs["alpha"] * paddle.matmul(q, keys, transpose_y=True)
    if "BiasQK" in v:
        scores = scores + v["BiasQK"]
    return paddle.reshape(paddle.transpose(paddle.matmul(F.softmax(scores), values), [0, 2, 1, 3]), [b, s, n * d])


def make_unfused_case(out_dir, case):
    """The program of the fused op, with the results of the function for it in UNFUSED."""
    feeds = build_without_kernel(case)[0].feeds
    with paddle.static.program_guard(paddle.static.Program()):
        v = {name: paddle.static.data(name, a.shape, a.dtype.name) for name, a in feeds.items()}
        result = UNFUSED[case.op](v, case.attrs)
        (out,) = g.EXE.run(paddle.static.default_main_program(), feed=feeds, fetch_list=[result])
    write_modelled_case(out_dir, case, {"Out": out}, "computed by the ops it is fused from")


# ----------------------------------------------------------------------------
# Parts of columns
# ----------------------------------------------------------------------------
@cases("partial_concat", "partial_sum", gradient=True)
def _partial(r, op):
    for dtype in FLOATS + ("int32", "int64"):
        draw = (lambda s: r.f(s, dtype=dtype)) if dtype in FLOATS else (lambda s: r.i(s, -9, 9, dtype))
        xs = [draw((3, 5)) for _ in range(3)]
        yield Case(f"middle_{dtype}", {"X": xs}, "Out", {"start_index": 1, "length": 2})
        yield Case(f"to_end_{dtype}", {"X": xs}, "Out", {"start_index": 2, "length": -1})
        if op == "partial_concat":          # partial_sum of Paddle reads beyond the rows
            yield Case(f"from_end_{dtype}", {"X": xs}, "Out", {"start_index": -3, "length": 2})
    yield Case("one", {"X": [r.f((2, 3))]}, "Out", {"start_index": 0, "length": -1})


# ----------------------------------------------------------------------------
# Compressed embeddings
# ----------------------------------------------------------------------------
@cases("dequantize_abs_max")
def _dequantize_abs_max(r, op):
    for dtype, most in (("int8", 127), ("int16", 32767)):
        yield Case(dtype, {"X": r.i((4, 5), -most - 1, most, dtype), "Scale": r.f((1,), 0.3, 2)}, "Out", {"max_range": float(most)})


@cases("dequantize_log")
def _dequantize_log(r, op):
    yield Case("plain", {"X": r.i((9, 4), -128, 127, "int8"), "Dict": r.f((128,), -6, 2)}, "Out")
    yield Case("ends", {"X": np.array([-128, -1, 0, 127], "int8"), "Dict": r.f((128,), -6, 2)}, "Out")


@cases("lookup_table_dequant")
def _lookup_table_dequant(r, op):
    head = np.sort(r.f((7, 2), -1, 1), 1)
    w = np.concatenate([head, r.i((7, 12), 0, 100, "uint8").view("float32")], 1)
    for name, padding in (("plain", -1), ("padding", 3)):
        yield Case(name, {"W": w, "Ids": np.array([[2], [3], [0], [6], [2]])}, "Out", {"padding_idx": padding})
    yield Case("lod", {"W": w, "Ids": LoD(np.array([[2], [3], [0]]), [[0, 2, 3]])}, "Out", {"padding_idx": -1})


# ----------------------------------------------------------------------------
def has_gradient(case):
    first = g.array_of(g.as_list(next(iter(case.ins.values())))[0])
    if case.op == "deformable_psroi_pooling" and not case.attrs["no_trans"]:
        return False                # Paddle's is no derivative
    return case.op in GRADIENTS and first.size > 0 and first.dtype.kind == "f"


def make(out, case):
    if case.op in UNFUSED:
        make_unfused_case(out, case)
        return
    g.make_forward_case(out, 0, case)
    if has_gradient(case):
        g.make_grad_case(out, 0, g.Rng(0, f"more_nn/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "more_nn", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
