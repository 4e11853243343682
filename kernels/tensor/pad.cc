// pad: Out = X with constant margins; `paddings` lists before and after of every dimension.
// pad2d: margins of the two spatial dimensions, listed top, bottom, left, right.
// pad3d: margins of the three spatial dimensions, listed left, right, top, bottom, front, back.
//
// Margins are constant, reflect, replicate ("edge" in pad2d) or circular. A negative one cuts off.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kPaddings = 1;
constexpr int kOut = 0;

enum class PadMode { kConstant, kReflect, kReplicate, kCircular };

struct PadAttrs {
  IntList paddings;
  float value = 0;
  PadMode mode = PadMode::kConstant;
  bool channels_last = false;  // logically: the shape itself is N, spatial, C
};

// Margins by logical dimension of X.
struct Margins {
  Shape before;
  Shape after;
};

// Where output index `i` of a dimension reads: input index i - before, mapped into the input by the
// mode; -1 for the constant.
int64_t SourceIndex(PadMode mode, int64_t i, int64_t before, int64_t length) {
  int64_t source = i - before;
  switch (mode) {
    case PadMode::kConstant:
      return source >= 0 && source < length ? source : -1;
    case PadMode::kReflect:
      source = std::max(source, -source);
      return std::min(source, 2 * length - source - 2);
    case PadMode::kReplicate:
      return std::clamp<int64_t>(source, 0, length - 1);
    default:
      return (source % length + length) % length;
  }
}

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

// Copies the box that takes run chosen[d] in dimension d.
void CopyBox(KernelContext& ctx, const ScalarBytes& value, absl::Span<const Runs> runs,
             absl::Span<const size_t> chosen) {
  const Tensor& x = ctx.input(kX);
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
  const size_t bytes = SizeOf(x.dtype);
  const void* src = value.bytes.data();
  if (constant) {
    for (CopyDim& dim : dims) dim.src_stride = 0;
  } else {
    src = At(x.raw_data(), source, bytes);
  }
  CopyStrided(ctx.num_threads(), bytes, dims, src, At(out.mutable_raw_data(), target, bytes));
}

// Cuts every dimension of Out into runs and copies all boxes they make.
absl::Status RunPad(KernelContext& ctx, PadMode mode, const Margins& margins, double value) {
  const Tensor& x = ctx.input(kX);
  const Tensor& out = ctx.output(kOut);
  if (out.numel() == 0) return absl::OkStatus();
  const ScalarBytes constant = ToScalarBytes(x.dtype, value);
  const int rank = x.shape.rank();
  std::array<Runs, kMaxRank> runs;
  for (int d = 0; d < rank; ++d) {
    runs[d] = FindRuns(mode, out.shape[d], margins.before[d], x.shape[d]);
  }
  std::array<size_t, kMaxRank> chosen = {};
  while (true) {
    CopyBox(ctx, constant, absl::MakeConstSpan(runs.data(), rank),
            absl::MakeConstSpan(chosen.data(), rank));
    int d = rank - 1;
    while (d >= 0 && ++chosen[d] == runs[d].size()) chosen[d--] = 0;
    if (d < 0) return absl::OkStatus();
  }
}

// Sets the shape of Out; checks that each mode can fill its margins.
absl::Status SetPaddedShape(InferContext& ctx, PadMode mode, const Margins& margins) {
  const Tensor& x = ctx.input(kX);
  Shape shape;
  for (int d = 0; d < x.shape.rank(); ++d) {
    const int64_t length = x.shape[d];
    const int64_t before = margins.before[d];
    const int64_t after = margins.after[d];
    INTERP_ASSIGN_OR_RETURN(int64_t padded, CheckedSum(length, before));
    INTERP_ASSIGN_OR_RETURN(padded, CheckedSum(padded, after));
    const bool too_far = mode == PadMode::kReflect && std::max(before, after) >= length;
    const bool no_source = mode != PadMode::kConstant && length == 0;
    if (padded < 0 || ((before != 0 || after != 0) && (too_far || no_source))) {
      return InvalidArgument("dimension ", d, " of 'X' ", ToString(x.shape),
                             " cannot take the margins ", before, " and ", after);
    }
    shape.push_back(padded);
  }
  ctx.SetShape(kOut, shape);
  if (shape.rank() > 0 && shape[0] == x.shape[0]) ctx.output(kOut).lod = x.lod;
  return absl::OkStatus();
}

namespace pad {

PadAttrs Read(AttrReader& reader) {
  PadAttrs attrs;
  attrs.paddings = ReadIntListAttr(reader, "paddings");
  attrs.value = reader.Float("pad_value", 0.0f);
  return attrs;
}

absl::StatusOr<Margins> FindMargins(const OpContext& ctx) {
  const IntList& paddings = ctx.attrs<PadAttrs>().paddings;
  const int rank = ctx.input(kX).shape.rank();
  if (paddings.size() != 2 * static_cast<size_t>(rank)) {
    return InvalidArgument("'paddings' has ", paddings.size(), " entries for rank ", rank);
  }
  Margins margins;
  for (int d = 0; d < rank; ++d) {
    if (paddings[2 * d] < 0 || paddings[2 * d + 1] < 0) {
      return InvalidArgument("'paddings' has a negative entry for dimension ", d);
    }
    margins.before.push_back(paddings[2 * d]);
    margins.after.push_back(paddings[2 * d + 1]);
  }
  return margins;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, FindMargins(ctx));
  return SetPaddedShape(ctx, PadMode::kConstant, margins);
}

absl::Status Run(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, FindMargins(ctx));
  return RunPad(ctx, PadMode::kConstant, margins, ctx.attrs<PadAttrs>().value);
}

INTERP_REGISTER_OP(OpDef{
    .type = "pad",
    .inputs = {{"X"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PadAttrs, Read>,
    .infer = Infer,
    .kernels = {{DType::kUndefined, Run}},
    .layout = LayoutRule::kFollows,
});

}  // namespace pad

namespace spatial {

constexpr IntSlots kMargins = {.name = "Paddings", .tensor = kPaddings};

PadMode ReadMode(AttrReader& reader) {
  const std::string mode = reader.String("mode", "constant");
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "replicate" || mode == "edge") return PadMode::kReplicate;
  if (mode == "circular") return PadMode::kCircular;
  if (mode != "constant") reader.Fail(absl::StrCat("attribute 'mode' is '", mode, "'"));
  return PadMode::kConstant;
}

PadAttrs Read(AttrReader& reader, int spatial_dims) {
  PadAttrs attrs;
  attrs.paddings = ReadIntListAttr(reader, "paddings");
  attrs.value = reader.Float(spatial_dims == 2 ? "pad_value" : "value", 0.0f);
  attrs.mode = ReadMode(reader);
  const std::string format = reader.String("data_format", spatial_dims == 2 ? "NCHW" : "NCDHW");
  attrs.channels_last = !format.empty() && format.back() == 'C';
  return attrs;
}
PadAttrs Read2(AttrReader& reader) { return Read(reader, 2); }
PadAttrs Read3(AttrReader& reader) { return Read(reader, 3); }

absl::StatusOr<Margins> FindMargins(const OpContext& ctx, int spatial_dims) {
  const PadAttrs& attrs = ctx.attrs<PadAttrs>();
  const int rank = ctx.input(kX).shape.rank();
  if (rank != spatial_dims + 2) {
    return InvalidArgument("'X' has shape ", ToString(ctx.input(kX).shape), ", expected rank ",
                           spatial_dims + 2);
  }
  INTERP_ASSIGN_OR_RETURN(const IntList paddings, ReadIntList(ctx, kMargins, attrs.paddings));
  if (paddings.size() != 2 * static_cast<size_t>(spatial_dims)) {
    return InvalidArgument("'paddings' has ", paddings.size(), " entries, expected ",
                           2 * spatial_dims);
  }
  Margins margins;
  margins.before.resize(rank, 0);
  margins.after.resize(rank, 0);
  const int first = attrs.channels_last ? 1 : 2;
  for (int i = 0; i < spatial_dims; ++i) {
    // pad2d lists the dimensions from the first, pad3d from the last.
    const int d = first + (spatial_dims == 2 ? i : spatial_dims - 1 - i);
    margins.before[d] = paddings[2 * i];
    margins.after[d] = paddings[2 * i + 1];
  }
  return margins;
}

template <int kSpatialDims>
absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Margins margins, FindMargins(ctx, kSpatialDims));
  return SetPaddedShape(ctx, ctx.attrs<PadAttrs>().mode, margins);
}

template <int kSpatialDims>
absl::Status Run(KernelContext& ctx) {
  const PadAttrs& attrs = ctx.attrs<PadAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Margins margins, FindMargins(ctx, kSpatialDims));
  return RunPad(ctx, attrs.mode, margins, attrs.value);
}

template <int kSpatialDims>
OpDef Def(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Paddings", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer<kSpatialDims>,
      .kernels = {{DType::kUndefined, Run<kSpatialDims>}},
      .layout = LayoutRule::kFollows,
  };
}

INTERP_REGISTER_OP(Def<2>("pad2d", ParseAttrs<PadAttrs, Read2>));
INTERP_REGISTER_OP(Def<3>("pad3d", ParseAttrs<PadAttrs, Read3>));

}  // namespace spatial
}  // namespace
}  // namespace interp
