// pad: Out = X with constant margins; `paddings` lists before and after of every dimension.
// pad2d: margins of the two spatial dimensions, listed top, bottom, left, right.
// pad3d: margins of the three spatial dimensions, listed left, right, top, bottom, front, back.
//
// Margins are constant, reflect, replicate ("edge" in pad2d) or circular. A negative one cuts off.
#include "kernels/tensor/pad.h"

#include <algorithm>

#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kOut = 0;

// A stretch of output indices whose sources lie evenly: `source`, `source + step`, ...
struct Run {
  int64_t begin = 0;
  int64_t size = 0;
  int64_t source = 0;  // -1: the constant
  int64_t step = 0;
};
using Runs = absl::InlinedVector<Run, 4>;

Runs FindRuns(PadMode mode, int64_t out_length, int64_t before, int64_t length) {
  Runs runs;
  for (int64_t i = 0; i < out_length; ++i) {
    const int64_t source = SourceIndex(mode, i, before, length);
    if (!runs.empty()) {
      Run& run = runs.back();
      const int64_t last = run.source + (run.size - 1) * run.step;
      const bool constant = run.source < 0 && source < 0;
      const bool steps = run.source >= 0 && source >= 0 && std::abs(source - last) <= 1 &&
                         (run.size == 1 || source - last == run.step);
      if (constant || steps) {
        if (run.size == 1 && steps) run.step = source - last;
        ++run.size;
        continue;
      }
    }
    runs.push_back({.begin = i, .size = 1, .source = source});
  }
  return runs;
}

// Copies the box that takes run chosen[d] in dimension d; with a null `value` none of the margins.
absl::Status CopyBox(KernelContext& ctx, const ScalarBytes* value, absl::Span<const Runs> runs,
                     absl::Span<const size_t> chosen) {
  const Tensor& x = ctx.input(kPadX);
  Tensor& out = ctx.output(kOut);
  const Strides from = StridesOf(x);
  const Strides to = StridesOf(out);
  bool constant = false;
  int64_t source = 0;
  int64_t target = 0;
  CopyDims dims;
  for (size_t d = 0; d < runs.size(); ++d) {
    const Run& run = runs[d][chosen[d]];
    constant |= run.source < 0;
    source += run.source * from[d];
    target += run.begin * to[d];
    dims.push_back({run.size, run.step * from[d], to[d]});
  }
  if (!constant) return CopyStrided(ctx, dims, {x, source}, {out, target});
  if (value == nullptr) return absl::OkStatus();
  for (CopyDim& dim : dims) dim.src_stride = 0;
  const size_t bytes = SizeOf(x.dtype);
  CopyStrided(ctx.num_threads(), bytes, dims, value->bytes.data(),
              At(out.mutable_raw_data(), target, bytes));
  return absl::OkStatus();
}

// Cuts every dimension of Out into runs and copies all boxes they make.
absl::Status RunPad(KernelContext& ctx, PadMode mode, const Margins& margins,
                    const ScalarBytes& constant) {
  const Tensor& x = ctx.input(kPadX);
  Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const int rank = x.shape.rank();
  std::array<Runs, kMaxRank> runs;
  for (int d = 0; d < rank; ++d) {
    runs[d] = FindRuns(mode, out.shape[d], margins.before[d], x.shape[d]);
  }
  // On a device a launch for each box of margins costs more than writing what is between twice.
  const bool filled = mode == PadMode::kConstant && MovesOnDevice(out);
  if (filled) INTERP_RETURN_IF_ERROR(FillElements(ctx, constant, out));
  std::array<size_t, kMaxRank> chosen = {};
  while (true) {
    INTERP_RETURN_IF_ERROR(CopyBox(ctx, filled ? nullptr : &constant,
                                   absl::MakeConstSpan(runs.data(), rank),
                                   absl::MakeConstSpan(chosen.data(), rank)));
    int d = rank - 1;
    while (d >= 0 && ++chosen[d] == runs[d].size()) chosen[d--] = 0;
    if (d < 0) return absl::OkStatus();
  }
}

absl::Status SetPaddedShape(InferContext& ctx, PadMode mode, const Margins& margins) {
  const Tensor& x = ctx.input(kPadX);
  INTERP_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(x.shape, mode, margins));
  ctx.SetShape(kOut, shape);
  if (shape.rank() > 0 && shape[0] == x.shape[0]) ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

namespace pad {

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, PadMargins(ctx));
  return SetPaddedShape(ctx, PadMode::kConstant, margins);
}

constexpr int kValueTensor = 1;  // one element; wins over the attribute

absl::Status Run(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, PadMargins(ctx));
  const DType dtype = ctx.input(kPadX).dtype;
  ScalarBytes value = ToScalarBytes(dtype, static_cast<double>(ctx.attrs<PadAttrs>().value));
  if (const Tensor* const tensor = ctx.optional_input(kValueTensor)) {
    if (tensor->numel() != 1) {
      return InvalidArgument("'PadValueTensor' is ", DescribeType(*tensor),
                             ", expected one element");
    }
    INTERP_ASSIGN_OR_RETURN(value, FirstElementAs(dtype, *tensor));
  }
  return RunPad(ctx, PadMode::kConstant, margins, value);
}

INTERP_REGISTER_OP(OpDef{
    .type = "pad",
    .inputs = {{"X"}, {"PadValueTensor", kOptional | kAnyDType | kHostInput, "pad_value"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PadAttrs, ReadPad>,
    .infer = Infer,
    .kernels = MoveKernels(Run),
    .layout = LayoutRule::kFollows,
    .gradient = {.inputs = {"Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace pad

namespace spatial {

PadAttrs Read2(AttrReader& reader) { return ReadSpatialPad(reader, 2); }
PadAttrs Read3(AttrReader& reader) { return ReadSpatialPad(reader, 3); }

template <int kSpatialDims>
absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, SpatialPadMargins(ctx, kSpatialDims));
  return SetPaddedShape(ctx, ctx.attrs<PadAttrs>().mode, margins);
}

template <int kSpatialDims>
absl::Status Run(KernelContext& ctx) {
  const PadAttrs& attrs = ctx.attrs<PadAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Margins margins, SpatialPadMargins(ctx, kSpatialDims));
  return RunPad(ctx, attrs.mode, margins,
                ToScalarBytes(ctx.input(kPadX).dtype, static_cast<double>(attrs.value)));
}

template <int kSpatialDims>
OpDef Def(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Paddings", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer<kSpatialDims>,
      .kernels = MoveKernels(Run<kSpatialDims>),
      .layout = LayoutRule::kFollows,
      .gradient = {.inputs = {"X", "Paddings", "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(Def<2>("pad2d", ParseAttrs<PadAttrs, Read2>));
INTERP_REGISTER_OP(Def<3>("pad3d", ParseAttrs<PadAttrs, Read3>));

}  // namespace spatial
}  // namespace
}  // namespace interp
