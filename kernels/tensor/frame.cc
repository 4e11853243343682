// frame: Out = pieces of X of `frame_length` elements, `hop_length` apart, along its last (axis -1)
// or first (axis 0) dimension: [..., frame_length, frames] or [frames, frame_length, ...].
// overlap_add: Out = the sum of the frames X, each at its place. Each is the gradient of the other.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

struct FrameAttrs {
  int64_t length = 0;  // of a frame; of overlap_add X says
  int64_t hop = 1;
  bool first = false;  // along the first dimension
};

FrameAttrs ReadOverlapAttrs(AttrReader& reader) {
  const int64_t axis = reader.Long("axis", -1);
  if (axis != 0 && axis != -1) {
    reader.Fail(absl::StrCat("attribute 'axis' is ", axis, ", expected 0 or -1"));
  }
  const FrameAttrs attrs = {0, reader.Int("hop_length", 0), axis == 0};
  if (attrs.hop < 1) {
    reader.Fail(absl::StrCat("attribute 'hop_length' is ", attrs.hop, ", expected at least 1"));
  }
  return attrs;
}

FrameAttrs ReadFrameAttrs(AttrReader& reader) {
  FrameAttrs attrs = ReadOverlapAttrs(reader);
  attrs.length = reader.Int("frame_length", 0);
  if (attrs.length < 1) {
    reader.Fail(
        absl::StrCat("attribute 'frame_length' is ", attrs.length, ", expected at least 1"));
  }
  return attrs;
}

// A sequence and its frames, with what lies beside them.
struct Frames {
  int64_t outer = 1;  // of the last dimension
  int64_t inner = 1;  // of the first
  int64_t sequence = 0;
  int64_t length = 0;
  int64_t count = 0;

  int64_t size() const { return outer * inner * length * count; }
};

absl::StatusOr<Frames> FramesOfSequence(const FrameAttrs& attrs, const Shape& x) {
  if (x.rank() == 0 || x.rank() == kMaxRank) {
    return InvalidArgument("the sequence has shape ", ToString(x), ", expected rank 1 to ",
                           kMaxRank - 1);
  }
  const int64_t sequence = attrs.first ? x[0] : x.back();
  if (attrs.length > sequence) {
    return InvalidArgument("'frame_length' ", attrs.length, " is more than the ", sequence,
                           " elements of the sequence ", ToString(x));
  }
  Frames frames = {.sequence = sequence, .length = attrs.length};
  (attrs.first ? frames.inner : frames.outer) =
      attrs.first ? x.numel(1, x.rank()) : x.numel(0, x.rank() - 1);
  frames.count = (sequence - attrs.length) / attrs.hop + 1;
  return frames;
}

absl::StatusOr<Frames> FramesOfFrames(const FrameAttrs& attrs, const Shape& x) {
  if (x.rank() < 2) {
    return InvalidArgument("the frames have shape ", ToString(x), ", expected rank 2 or more");
  }
  Frames frames = {.length = attrs.first ? x[1] : x.back(2),
                   .count = attrs.first ? x[0] : x.back()};
  (attrs.first ? frames.inner : frames.outer) =
      attrs.first ? x.numel(2, x.rank()) : x.numel(0, x.rank() - 2);
  if (frames.count < 1) return InvalidArgument("there are no frames in ", ToString(x));
  INTERP_ASSIGN_OR_RETURN(const int64_t steps, CheckedProduct(frames.count - 1, attrs.hop));
  INTERP_ASSIGN_OR_RETURN(frames.sequence, CheckedSum(steps, frames.length));
  return frames;
}

Shape FramesShape(const FrameAttrs& attrs, const Frames& frames, const Shape& sequence) {
  Shape shape;
  if (attrs.first) {
    shape = {frames.count, frames.length};
    for (int i = 1; i < sequence.rank(); ++i) shape.push_back(sequence[i]);
    return shape;
  }
  for (int i = 0; i < sequence.rank() - 1; ++i) shape.push_back(sequence[i]);
  shape.push_back(frames.length);
  shape.push_back(frames.count);
  return shape;
}

Shape SequenceShape(const FrameAttrs& attrs, const Frames& frames, const Shape& x) {
  Shape shape;
  if (attrs.first) shape.push_back(frames.sequence);
  const int begin = attrs.first ? 2 : 0;
  for (int i = begin; i < begin + x.rank() - 2; ++i) shape.push_back(x[i]);
  if (!attrs.first) shape.push_back(frames.sequence);
  return shape;
}

// Steps of one element, and of one frame, in the sequence and among the frames.
CopyDims FrameDims(const FrameAttrs& attrs, const Frames& frames) {
  const int64_t inner = frames.inner;
  if (attrs.first) {
    return {{frames.count, attrs.hop * inner, frames.length * inner},
            {frames.length, inner, inner},
            {inner, 1, 1}};
  }
  return {{frames.outer, frames.sequence, frames.length * frames.count},
          {frames.length, 1, frames.count},
          {frames.count, attrs.hop, 1}};
}

void CutFrames(const KernelContext& ctx, const FrameAttrs& attrs, const Frames& frames,
               const Tensor& sequence, Tensor& out) {
  if (frames.size() == 0) return;
  CopyStrided(ctx.num_threads(), SizeOf(out.dtype), FrameDims(attrs, frames), sequence.raw_data(),
              out.mutable_raw_data());
}

template <typename T>
void AddFrames(const KernelContext& ctx, const FrameAttrs& attrs, const Frames& frames,
               const Tensor& x, Tensor& sequence) {
  FillZero(ctx.num_threads(), sequence);
  if (frames.size() == 0) return;
  const CopyDims dims = FrameDims(attrs, frames);
  const T* const from = x.data<T>();
  T* const to = sequence.mutable_data<T>();
  for (int64_t i = 0; i < dims[0].size; ++i) {
    for (int64_t j = 0; j < dims[1].size; ++j) {
      const int64_t at = i * dims[0].src_stride + j * dims[1].src_stride;
      const int64_t source = i * dims[0].dst_stride + j * dims[1].dst_stride;
      for (int64_t k = 0; k < dims[2].size; ++k) {
        T& sum = to[at + k * dims[2].src_stride];
        sum = WrapAdd(sum, from[source + k * dims[2].dst_stride]);
      }
    }
  }
}

absl::Status InferFrame(InferContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Frames frames, FramesOfSequence(attrs, x));
  ctx.SetShape(kOut, FramesShape(attrs, frames, x));
  return absl::OkStatus();
}

absl::Status Frame(KernelContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Tensor& x = ctx.input(kX);
  CutFrames(ctx, attrs, *FramesOfSequence(attrs, x.shape), x, ctx.output(kOut));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "frame",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FrameAttrs, ReadFrameAttrs>,
    .infer = InferFrame,
    .kernels = {{DType::kUndefined, Frame}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferOverlapAdd(InferContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Frames frames, FramesOfFrames(attrs, x));
  ctx.SetShape(kOut, SequenceShape(attrs, frames, x));
  return absl::OkStatus();
}

template <typename T>
absl::Status OverlapAdd(KernelContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Tensor& x = ctx.input(kX);
  AddFrames<T>(ctx, attrs, *FramesOfFrames(attrs, x.shape), x, ctx.output(kOut));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "overlap_add",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<FrameAttrs, ReadOverlapAttrs>,
    .infer = InferOverlapAdd,
    .kernels = {{DType::kFloat32, OverlapAdd<float>},
                {DType::kFloat64, OverlapAdd<double>},
                {DType::kInt32, OverlapAdd<int32_t>},
                {DType::kInt64, OverlapAdd<int64_t>}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kXGrad = 0;

absl::Status CheckOutGrad(InferContext& ctx, const Shape& expected) {
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "Out@GRAD", expected));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

absl::Status InferFrameGrad(InferContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Frames frames, FramesOfSequence(attrs, x));
  return CheckOutGrad(ctx, FramesShape(attrs, frames, x));
}

template <typename T>
absl::Status FrameGrad(KernelContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  AddFrames<T>(ctx, attrs, *FramesOfSequence(attrs, ctx.input(kX).shape), ctx.input(kOutGrad),
               ctx.output(kXGrad));
  return absl::OkStatus();
}

absl::Status InferOverlapAddGrad(InferContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const Frames frames, FramesOfFrames(attrs, x));
  return CheckOutGrad(ctx, SequenceShape(attrs, frames, x));
}

absl::Status OverlapAddGrad(KernelContext& ctx) {
  const FrameAttrs& attrs = ctx.attrs<FrameAttrs>();
  CutFrames(ctx, attrs, *FramesOfFrames(attrs, ctx.input(kX).shape), ctx.input(kOutGrad),
            ctx.output(kXGrad));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "frame_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FrameAttrs, ReadFrameAttrs>,
    .infer = InferFrameGrad,
    .kernels = {{DType::kFloat32, FrameGrad<float>}, {DType::kFloat64, FrameGrad<double>}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "overlap_add_grad",
    .inputs = {{"X", kNoNeedBuffer}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<FrameAttrs, ReadOverlapAttrs>,
    .infer = InferOverlapAddGrad,
    .kernels = {{DType::kFloat32, OverlapAddGrad}, {DType::kFloat64, OverlapAddGrad}},
});

}  // namespace
}  // namespace interp
