#!/usr/bin/env python3
"""make_extra_cases.py - golden cases that the seeded sets of make_goldens.py do not have.

    python make_extra_cases.py --out extra && ./pack.sh extra

Same needs and same format as make_goldens.py; extra.tar.xz beside this file is the result.

  1. written cases: ties, empty results, optional inputs, attributes at their edges
  2. recast cases: a case of make_goldens.py with its inputs in another dtype, for kernels that no
     other case runs. Where Paddle has no such CPU kernel (float16 mostly), it computes in a wider
     dtype from the same rounded inputs and the results are rounded.
"""
import copy
import dataclasses
import os
import shutil
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all
from make_goldens import Case, LoD

CASES = []   # functions Rng -> Cases


def extra(*ops):
    def deco(fn):
        CASES.extend((op, fn) for op in ops)
        return fn
    return deco


# ----------------------------------------------------------------------------
# 1. written cases
# ----------------------------------------------------------------------------
def tied_boxes(r, n, size=1.0, dtype="float32"):
    """Pairs of equal boxes among overlapping ones."""
    b = r.boxes((n + 1) // 2, size, dtype)
    return np.concatenate([b, b])[r.perm(2 * len(b))][:n]


@extra("multiclass_nms", "multiclass_nms2", "multiclass_nms3")
def _multiclass_nms(r, op):
    outs = {"multiclass_nms": "Out", "multiclass_nms2": "Out,Index", "multiclass_nms3": "Out,Index,NmsRoisNum"}[op]

    def one(name, boxes, scores, extra_ins=None, **a):
        base = {"background_label": -1, "score_threshold": 0.05, "nms_top_k": -1, "nms_threshold": 0.4,
                "nms_eta": 1.0, "keep_top_k": -1, "normalized": True}
        base.update(a)
        return Case(name, {"BBoxes": boxes, "Scores": scores, **(extra_ins or {})}, outs, base)

    def batch(n, m, size=1.0, dtype="float32"):
        return np.stack([tied_boxes(r, m, size, dtype) for _ in range(n)])

    def coarse(*shape, dtype="float32"):
        return (r.i(shape, 0, 8) / 8).astype(dtype)      # many equal scores
    yield one("ties", batch(2, 40), coarse(2, 3, 40))
    yield one("ties_top_k", batch(2, 40), coarse(2, 3, 40), nms_top_k=11, keep_top_k=9, background_label=1)
    yield one("ties_many", batch(1, 90), coarse(1, 5, 90), nms_top_k=60, keep_top_k=25)
    # Doubles that are equal as floats keep their order.
    d = coarse(1, 2, 30, dtype="float64") + r.f((1, 2, 30), 0, 1e-12, "float64")
    yield one("float64", batch(1, 30, dtype="float64"), d, keep_top_k=12)
    yield one("eta_ties", batch(1, 40), coarse(1, 2, 40), nms_eta=0.8, nms_threshold=0.9)
    yield one("degenerate", np.zeros((1, 5, 4), "float32"), coarse(1, 2, 5) + 0.1, nms_threshold=0.5)
    inverted = np.ascontiguousarray(batch(1, 12)[..., [2, 3, 0, 1]])
    yield one("inverted", inverted, r.distinct((1, 2, 12), 0.1, 0.9))
    yield one("keep_none", batch(1, 6), r.distinct((1, 2, 6), 0.1, 0.9), keep_top_k=0)
    yield one("top_none", batch(1, 6), r.distinct((1, 2, 6), 0.1, 0.9), nms_top_k=0)
    yield one("one_class_background", batch(1, 6), r.distinct((1, 1, 6), 0.1, 0.9), background_label=0)
    one_empty = r.distinct((3, 2, 8), 0.1, 0.9)
    one_empty[1] = 0
    yield one("image_without_detection", batch(3, 8), one_empty, keep_top_k=4)
    # Convex quadrilaterals; other corner counts make polygons around a circle.
    for corners in (4, 8, 12, 16):
        t = np.sort(r.f((1, 14, corners), 0, 1), -1) + np.arange(corners)
        t = t * (2 * np.pi / corners)
        ring = np.stack([np.cos(t), np.sin(t)], -1) * r.f((1, 14, 1, 1), 0.5, 1.0) + r.f((1, 14, 1, 2), -0.4, 0.4)
        yield one(f"polygon{corners}", ring.reshape(1, 14, -1).astype("float32"), r.distinct((1, 2, 14), 0.1, 0.9))
    m, c = 12, 3
    rois = np.stack([tied_boxes(r, c) for _ in range(m)])
    rois[5] = rois[6] = rois[7]
    scores = coarse(m, c)
    if op == "multiclass_nms3":
        yield one("rois_num_ties", rois, scores, {"RoisNum": np.array([5, 0, 7], "int32")}, keep_top_k=6)
        yield one("rois_num_all", rois, scores, {"RoisNum": np.array([12], "int32")}, background_label=0, nms_top_k=4)
    else:
        lod = [[0, 5, 12]]
        yield one("lod_ties", LoD(rois, lod), LoD(scores, lod), keep_top_k=6)
        yield one("lod_float64", LoD(rois.astype("float64"), lod), LoD(scores.astype("float64"), lod), background_label=0)


@extra("matrix_nms")
def _matrix_nms(r, op):
    for name, gauss, n, m, a in (("ties", False, 2, 40, {}), ("ties_gaussian", True, 2, 40, {}),
                                 ("ties_top_k", False, 1, 60, {"nms_top_k": 30, "keep_top_k": 13}),
                                 ("ties_top_k_gaussian", True, 1, 60, {"nms_top_k": 17, "keep_top_k": 40}),
                                 ("post", False, 1, 30, {"post_threshold": 0.35}),
                                 ("nothing_found", False, 2, 5, {"score_threshold": 1.5}),
                                 ("keep_none", False, 1, 5, {"keep_top_k": 0})):
        for dtype in ("float32", "float64"):
            boxes = np.stack([tied_boxes(r, m, dtype=dtype) for _ in range(n)])
            scores = (r.i((n, 3, m), 0, 8) / 8).astype(dtype)
            attrs = {"background_label": r.pick(0, -1), "score_threshold": 0.1, "post_threshold": 0.0, "nms_top_k": -1,
                     "keep_top_k": -1, "use_gaussian": gauss, "gaussian_sigma": 2.0, "normalized": bool(r.n(0, 1)), **a}
            yield Case(f"{name}_{dtype}", {"BBoxes": boxes, "Scores": scores}, "Out,Index,RoisNum", attrs)


@extra("yolo_box")
def _yolo_box(r, op):
    for aware in (False, True):
        for dtype in ("float32", "float64"):
            na, c, h, w, n = 3, 5, 5, 7, 2
            yield Case(f"{'aware' if aware else 'plain'}_{dtype}",
                       {"X": r.f((n, na * (c + 5 + aware), h, w), -3, 3, dtype), "ImgSize": r.i((n, 2), 60, 200, "int32")},
                       "Boxes,Scores", {"anchors": [10, 13, 16, 30, 33, 23], "class_num": c, "conf_thresh": 0.3,
                                        "downsample_ratio": 16, "clip_bbox": aware, "scale_x_y": 1.1, "iou_aware": aware,
                                        "iou_aware_factor": 0.3})


@extra("prior_box")
def _prior_box(r, op):
    for order in (False, True):
        yield Case(f"float64_{'order' if order else 'plain'}",
                   {"Input": r.f((1, 2, 3, 4), dtype="float64"), "Image": r.f((1, 1, 37, 41), dtype="float64")},
                   "Boxes,Variances", {"min_sizes": [7.0, 11.0], "max_sizes": [13.0, 17.0],
                                       "aspect_ratios": [2.0, 3.0, 1.0, 0.5], "variances": [0.1, 0.1, 0.2, 0.2], "flip": True,
                                       "clip": order, "min_max_aspect_ratios_order": order})


@extra("density_prior_box")
def _density(r, op):
    yield Case("float64", {"Input": r.f((1, 1, 3, 2), dtype="float64"), "Image": r.f((1, 1, 19, 23), dtype="float64")},
               "Boxes,Variances", {"variances": [0.1, 0.1, 0.2, 0.2], "clip": True, "flatten_to_2d": True,
                                   "fixed_sizes": [4.0, 8.0], "fixed_ratios": [1.0, 1.7], "densities": [3, 2]})


@extra("anchor_generator")
def _anchor(r, op):
    yield Case("float64", {"Input": r.f((1, 1, 3, 2), dtype="float64")}, "Anchors,Variances",
               {"anchor_sizes": [32.0, 65.0], "aspect_ratios": [0.5, 1.0, 1.7], "variances": [0.1, 0.1, 0.2, 0.2],
                "stride": [16.0, 8.0], "offset": 0.3})


@extra("box_coder")
def _box_coder(r, op):
    f64 = "float64"
    var = r.f((3, 4), 0.1, 0.3, f64)
    lod = [[0, 1, 4]]
    base = {"box_normalized": True, "axis": 0, "variance": []}
    yield Case("encode_float64", {"PriorBox": r.boxes(3, 20, f64), "PriorBoxVar": var, "TargetBox": r.boxes(4, 20, f64)},
               "OutputBox", {**base, "code_type": "encode_center_size", "box_normalized": False})
    yield Case("decode_float64", {"PriorBox": r.boxes(3, dtype=f64), "PriorBoxVar": var, "TargetBox": r.f((3, 2, 4), -1, 1, f64)},
               "OutputBox", {**base, "code_type": "decode_center_size", "axis": 1})
    yield Case("encode_lod", {"PriorBox": r.boxes(3), "TargetBox": LoD(r.boxes(4), lod)}, "OutputBox",
               {**base, "code_type": "encode_center_size"})
    yield Case("decode_lod", {"PriorBox": r.boxes(3), "TargetBox": LoD(r.f((4, 3, 4), -1, 1), lod)}, "OutputBox",
               {**base, "code_type": "decode_center_size"})


@extra("iou_similarity")
def _iou(r, op):
    yield Case("float64", {"X": tied_boxes(r, 5, dtype="float64"), "Y": r.boxes(3, dtype="float64")}, "Out", {"box_normalized": False})
    yield Case("no_area", {"X": np.zeros((2, 4), "float32"), "Y": np.zeros((2, 4), "float32")}, "Out", {"box_normalized": True})


@extra("box_clip")
def _box_clip(r, op):
    for dtype in ("float32", "float64"):
        yield Case(f"rank3_{dtype}", {"Input": LoD(np.stack([r.boxes(2, 60, dtype) - 5 for _ in range(4)]), [[0, 1, 2, 4]]),
                                      "ImInfo": np.array([[30, 40, 1.0], [5, 5, 1.0], [25, 31, 0.6]], dtype)}, "Output")


@extra("bipartite_match")
def _bipartite(r, op):
    for dtype in ("float32", "float64"):
        for mt in ("bipartite", "per_prediction"):
            coarse = (r.i((6, 9), 0, 5) / 5).astype(dtype)
            yield Case(f"ties_{mt}_{dtype}", {"DistMat": LoD(coarse, [[0, 2, 2, 6]])}, "ColToRowMatchIndices,ColToRowMatchDist",
                       {"match_type": mt, "dist_threshold": 0.4})
    # From 130 rows on Paddle sorts all pairs, which settles ties in another way.
    yield Case("many_rows_ties", {"DistMat": (r.i((131, 5), 0, 7) / 7).astype("float32")},
               "ColToRowMatchIndices,ColToRowMatchDist", {"match_type": "per_prediction", "dist_threshold": 0.5})
    yield Case("many_columns", {"DistMat": r.distinct((4, 40), 0, 1)}, "ColToRowMatchIndices,ColToRowMatchDist",
               {"match_type": "bipartite", "dist_threshold": 0.5})


@extra("mine_hard_examples")
def _mine(r, op):
    for dtype in ("float32", "float64"):
        for mining in ("max_negative", "hard_example"):
            n, m = 3, 40
            match = np.where(r.b((n, m), 0.6), -1, r.i((n, m), 0, 3)).astype("int32")
            loss = (r.i((n, m), 0, 6) / 6).astype(dtype)         # many equal losses
            yield Case(f"ties_{mining}_{dtype}", {"ClsLoss": loss, "LocLoss": loss[::-1].copy(), "MatchIndices": match,
                                                  "MatchDist": r.f((n, m), 0, 0.7, dtype)},
                       "NegIndices,UpdatedMatchIndices",
                       {"neg_pos_ratio": 1.5, "neg_dist_threshold": 0.5, "sample_size": 11, "mining_type": mining})


@extra("roi_align", "roi_pool")
def _roi(r, op):
    outs = "Out" if op == "roi_align" else "Out,Argmax"
    lod = [[0, 3, 4]]
    for dtype in ("float32", "float64"):
        rois = r.boxes(4, 40.0, dtype) - 6                # partly outside
        a = {"pooled_height": 3, "pooled_width": 2, "spatial_scale": 0.25}
        if op == "roi_align":
            a.update(sampling_ratio=-1, aligned=dtype == "float64")
        yield Case(f"outside_lod_{dtype}", {"X": r.f((2, 3, 6, 9), dtype=dtype), "ROIs": LoD(rois, lod)}, outs, a)
        yield Case(f"empty_image_{dtype}", {"X": r.f((3, 1, 6, 9), dtype=dtype), "ROIs": rois,
                                            "RoisNum": np.array([1, 0, 3], "int32")}, outs, a)


@extra("roi_align")
def _roi_align(r, op):
    a = {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0, "sampling_ratio": -1}
    flat = np.array([[1, 1, 1, 1], [1, 1, 4, 1], [2, 1, 4, 5]], "float32")
    for aligned in (False, True):
        yield Case(f"no_area_{'aligned' if aligned else 'legacy'}",
                   {"X": r.f((1, 2, 6, 6)), "ROIs": flat, "RoisNum": np.array([3], "int32")}, "Out", {**a, "aligned": aligned})


@extra("generate_proposals_v2")
def _proposals(r, op):
    for name, ties, a in (("plain", False, {}), ("ties", True, {}), ("ties_all", True, {"pre_nms_topN": 0, "nms_thresh": 0.0}),
                          ("ties_some", True, {"pre_nms_topN": 17, "nms_thresh": 0.0}), ("half_pixel", False, {"pixel_offset": False}),
                          ("eta", True, {"eta": 0.8, "nms_thresh": 0.9}), ("none_left", False, {"min_size": 500.0}),
                          ("top", False, {"post_nms_topN": 4})):
        for dtype in ("float32", "float64"):
            n, na, h, w = 2, 3, 4, 5
            scores = (r.i((n, na, h, w), 0, 9) / 9).astype(dtype) if ties else r.distinct((n, na, h, w), 0, 1, dtype)
            grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1)[:, :, None, :] * 12.0
            anchors = np.concatenate([grid - 10 - r.f((h, w, na, 2), 0, 9), grid + 10 + r.f((h, w, na, 2), 0, 9)], -1).astype(dtype)
            yield Case(f"{name}_{dtype}",
                       {"Scores": scores, "BboxDeltas": r.f((n, 4 * na, h, w), -0.5, 0.5, dtype),
                        "ImShape": np.array([[48, 60], [40, 50]], dtype), "Anchors": anchors,
                        "Variances": r.f((h, w, na, 4), 0.5, 1.5, dtype)}, "RpnRois,RpnRoiProbs,RpnRoisNum",
                       {"pre_nms_topN": 40, "post_nms_topN": 20, "nms_thresh": 0.5, "min_size": 3.0, "eta": 1.0,
                        "pixel_offset": True, **a})


@extra("distribute_fpn_proposals")
def _distribute(r, op):
    for dtype in ("float32", "float64"):
        p = r.f((12, 2), 0, 100, dtype)
        rois = np.concatenate([p, p + np.exp(r.f((12, 1), 0, 7, dtype)) * r.f((12, 2), 0.7, 1.3, dtype)], 1)
        rois[3] = rois[3][[2, 3, 0, 1]]
        a = {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 224}
        yield Case(f"rois_num_{dtype}", {"FpnRois": rois, "RoisNum": np.array([5, 1, 6], "int32")},
                   {"MultiFpnRois": 4, "RestoreIndex": 1, "MultiLevelRoIsNum": 4}, {**a, "pixel_offset": False})
        yield Case(f"lod_{dtype}", {"FpnRois": LoD(rois, [[0, 5, 12]])}, {"MultiFpnRois": 4, "RestoreIndex": 1},
                   {**a, "pixel_offset": True})


@extra("collect_fpn_proposals")
def _collect(r, op):
    for dtype in ("float32", "float64"):
        counts = [[3, 4], [2, 5], [1, 2]]
        rois = [r.boxes(sum(c), 50, dtype) for c in counts]
        scores = [(r.i((sum(c), 1), 0, 5) / 5).astype(dtype) for c in counts]
        yield Case(f"rois_num_{dtype}", {"MultiLevelRois": rois, "MultiLevelScores": scores,
                                         "MultiLevelRoIsNum": [np.array(c, "int32") for c in counts]},
                   "FpnRois,RoisNum", {"post_nms_topN": 9})
        lods = [[[0, c[0], sum(c)]] for c in counts]
        yield Case(f"lod_{dtype}", {"MultiLevelRois": [LoD(x, l) for x, l in zip(rois, lods)],
                                    "MultiLevelScores": [LoD(x, l) for x, l in zip(scores, lods)]},
                   "FpnRois", {"post_nms_topN": 100})


@extra("grid_sampler")
def _grid(r, op):
    for mode in ("bilinear", "nearest"):
        for pad in ("zeros", "border", "reflection"):
            for ac in (True, False):
                yield Case(f"float64_{mode}_{pad}_{'ac' if ac else 'noac'}",
                           {"X": r.f((2, 2, 4, 5), dtype="float64"), "Grid": r.f((2, 3, 4, 2), -3.5, 3.5, "float64")}, "Output",
                           {"mode": mode, "padding_mode": pad, "align_corners": ac})
                yield Case(f"volume_{mode}_{pad}_{'ac' if ac else 'noac'}",
                           {"X": r.f((2, 2, 3, 4, 5)), "Grid": r.f((2, 2, 3, 2, 3), -1.6, 1.6)}, "Output",
                           {"mode": mode, "padding_mode": pad, "align_corners": ac})
    yield Case("one_pixel", {"X": r.f((1, 2, 1, 1)), "Grid": r.f((1, 2, 2, 2), -1.5, 1.5)}, "Output",
               {"mode": "bilinear", "padding_mode": "reflection", "align_corners": True})


@extra("less_than", "greater_equal")
def _compare(r, op):
    """An axis counts, though Paddle checks the shapes as if it did not."""
    yield Case("axis0", {"X": r.i((3, 3, 4, 4), -2, 2, "int32"), "Y": r.i((3, 1, 1), -2, 2, "int32")}, "Out",
               {"axis": 0})


@extra("elementwise_add", "elementwise_mul", "elementwise_pow", "elementwise_max")
def _elementwise(r, op):
    """Ones of Y that find no dimension of X behind the axis."""
    for name, x, y, axis in (("ones_behind", (4, 3, 3, 4), (3, 1, 1), 2), ("only_ones", (3, 3, 4), (1, 1), 2)):
        yield Case(name, {"X": r.f(x, 0.5, 2), "Y": r.f(y, 0.5, 2)}, "Out", {"axis": axis})


@extra("bilinear_interp_v2", "bicubic_interp_v2")
def _interp(r, op):
    yield Case("one_scale", {"X": r.f((1, 2, 5, 4))}, "Out",
               {"out_h": 2, "out_w": 8, "scale": [2.0], "interp_method": op.split("_")[0], "align_corners": False,
                "align_mode": 1, "data_layout": "NCHW", "out_d": -1}, notes="too few values for none")


@extra("kthvalue", "mode", "partial_concat", "partial_sum", "temporal_shift", "crop_tensor", "broadcast_tensors",
       "index_sample")
def _lod(r, op):
    """Ops that hand the LoD of an input on."""
    x = LoD(r.distinct((4, 5)), [[0, 1, 4]])
    lod = {
        "kthvalue": ({"X": x}, "Out,Indices", {"k": 2, "axis": -1, "keepdim": True}),
        "mode": ({"X": x}, "Out,Indices", {"axis": -1, "keepdim": True}),
        "partial_concat": ({"X": [x, r.f((4, 5))]}, "Out", {"start_index": 1, "length": 2}),
        "partial_sum": ({"X": [x, r.f((4, 5))]}, "Out", {"start_index": 1, "length": 2}),
        "temporal_shift": ({"X": LoD(r.f((4, 4, 2, 2)), [[0, 1, 4]])}, "Out",
                           {"seg_num": 2, "shift_ratio": 0.25, "data_format": "NCHW"}),
        "crop_tensor": ({"X": x}, "Out", {"shape": [4, 2], "offsets": [0, 1]}),
        "broadcast_tensors": ({"X": [x, r.f((1, 5))]}, {"Out": 2}, {}),
        "index_sample": ({"X": r.f((4, 5)), "Index": LoD(r.i((4, 2), 0, 4), [[0, 1, 4]])}, "Out", {}),
    }
    ins, outs, attrs = lod[op]
    yield Case("lod", ins, outs, attrs)


# ----------------------------------------------------------------------------
# 2. recast cases
# ----------------------------------------------------------------------------
# recast.txt lists them: op and dtype, one pair a line.
CASES_PER_RECAST = 2


def recast_list():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recast.txt")) as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return [(op, dtype) for op, dtype in lines]


def cast_values(v, source, dtype):
    if isinstance(v, (list, tuple)):
        return [cast_values(x, source, dtype) for x in v]
    if isinstance(v, LoD):
        return LoD(cast_values(v.array, source, dtype), v.lod)
    return v.astype(dtype) if v.dtype == source else v


def recast(case, source, dtype):
    ins = {slot: cast_values(v, source, dtype) for slot, v in case.ins.items()}
    return dataclasses.replace(copy.deepcopy(case), ins=ins, name=f"{case.name}_as_{dtype}")


def make_case(out_dir, case):
    """The case by Paddle's own kernel, or by a wider one where it has none."""
    try:
        g.make_forward_case(out_dir, 0, case)
        return
    except Exception as e:
        shutil.rmtree(f"{out_dir}/{case.op}/{case.name}", ignore_errors=True)
        dtype = case.name.rsplit("_as_", 1)[-1]
        if dtype not in ("float16", "int16", "int8", "uint8"):
            raise
        reason = g.short_error(e)
    make_wide_case(out_dir, case, dtype, "float32" if dtype == "float16" else "int32", reason)


def make_wide_case(out_dir, case, dtype, wide, reason):
    wide_case = recast(case, np.dtype(dtype), wide)
    wb, _, _, _ = g.build_forward(wide_case)
    b, op, ins, outs = g.build_forward(case)
    hidden = g.NEVER_FETCH | set(case.nofetch)
    b.fetch = wb.fetch = list(dict.fromkeys(n for s, ns in outs.items() if s not in hidden for n in ns))
    _, res = wb.run()
    res = [(a.astype(dtype) if a.dtype == wide else a, lod) for a, lod in res]
    for name, (a, _) in zip(b.fetch, res):
        b.block.var(name).desc.set_dtype(g.core.VarDesc.VarType(g.DTYPE_CODE[a.dtype.name]))
    blob = b._with_feed_fetch(b.prog.desc.serialize_to_string())
    rtol, atol = case.tol or g.tolerance(case.op, [a for a, _ in res])
    g.write_case(f"{out_dir}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, dict(zip(b.fetch, res)),
                 {"inputs": ins, "outputs": outs}, g.visible_attrs(case.op, op.desc), [case.op], rtol, atol,
                 f"computed in {wide} and rounded: Paddle says {reason}")


def recast_cases(op, dtype):
    pool = [c for c in g.cases_of(1, op) if "empty" not in c.name and "special" not in c.name]
    source = np.dtype("float32" if dtype.startswith("float") else "int32")
    usable = [c for c in pool if any(g.array_of(a).dtype == source for v in c.ins.values() for a in g.as_list(v))]
    for c in (usable or pool)[:CASES_PER_RECAST]:
        yield recast(c, source, dtype)


def main():
    out, wanted = arguments(__doc__)
    cases = list(cases_of(CASES, "extra", wanted))
    cases += [c for op, d in recast_list() if not wanted or op in wanted for c in recast_cases(op, d)]
    make_all(out, cases, make_case)


if __name__ == "__main__":
    sys.exit(main())
