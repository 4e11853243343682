// sequence_expand: sequence i of X (its row i when it has no LoD) as often as the part i of Y's
// level `ref_level` is long. Copies of a sequence are sequences of their own.
// sequence_expand_as: row i of X as often as sequence i of Y is long; Out has the LoD of Y.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/repeat_level.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

absl::Status CheckCount(int64_t found, int64_t expected, absl::string_view what) {
  if (found == expected) return absl::OkStatus();
  return InvalidArgument("input 'X' has ", found, " ", what, ", but the LoD of 'Y' has ", expected,
                         " parts");
}

void SetRows(InferContext& ctx, int64_t rows) {
  Shape shape = ctx.input(kX).shape;
  shape[0] = rows;
  ctx.SetShape(kOut, shape);
}

// Out of an X with LoD: rows and offsets.
absl::Status InferFromSequences(InferContext& ctx, Offsets repeats) {
  INTERP_ASSIGN_OR_RETURN(const Offsets x, OnlyLevelOffsets(ctx.input(kX), "X"));
  INTERP_RETURN_IF_ERROR(CheckCount(SequenceCount(x), SequenceCount(repeats), "sequences"));
  if (repeats.back() > kMostNewSequences) {
    return InvalidArgument("the LoD of input 'Y' asks for ", repeats.back(),
                           " sequences, expected at most ", kMostNewSequences);
  }
  std::vector<int64_t> level = {0};
  level.reserve(repeats.back() + 1);
  for (int64_t i = 0; i < SequenceCount(repeats); ++i) {
    for (int64_t k = repeats[i]; k < repeats[i + 1]; ++k) {
      INTERP_ASSIGN_OR_RETURN(const int64_t end, CheckedSum(level.back(), x[i + 1] - x[i]));
      level.push_back(end);
    }
  }
  SetRows(ctx, level.back());
  ctx.output(kOut).lod.push_back(std::move(level));
  return absl::OkStatus();
}

absl::Status InferSequenceExpand(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, "X", 1, kMaxRank, "rows"));
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, RepeatLevel(ctx, kY));
  if (!x.lod.empty()) return InferFromSequences(ctx, repeats);
  INTERP_RETURN_IF_ERROR(CheckCount(x.shape[0], SequenceCount(repeats), "rows"));
  SetRows(ctx, repeats.back());
  return absl::OkStatus();
}

absl::Status InferSequenceExpandAs(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckRank(ctx, kX, "X", 1, kMaxRank, "rows"));
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, OnlyLevelOffsets(ctx.input(kY), "Y"));
  INTERP_RETURN_IF_ERROR(CheckCount(ctx.input(kX).shape[0], SequenceCount(repeats), "rows"));
  SetRows(ctx, repeats.back());
  ctx.output(kOut).lod = ctx.input(kY).lod;
  return absl::OkStatus();
}

// Writes `bytes` at `from` `count` times and returns the end.
char* Repeat(const char* from, size_t bytes, int64_t count, char* out) {
  if (bytes == 0) return out;
  for (int64_t k = 0; k < count; ++k, out += bytes) std::memcpy(out, from, bytes);
  return out;
}

absl::Status Expand(KernelContext& ctx, Offsets repeats, Offsets x_offsets) {
  const Tensor& x = ctx.input(kX);
  const auto row_bytes = RowSize(x) * static_cast<int64_t>(SizeOf(x.dtype));
  const char* const in = static_cast<const char*>(x.raw_data());
  char* out = static_cast<char*>(ctx.output(kOut).mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(repeats); ++i) {
    const int64_t begin = x_offsets.empty() ? i : x_offsets[i];
    const int64_t rows = x_offsets.empty() ? 1 : x_offsets[i + 1] - begin;
    out = Repeat(in + begin * row_bytes, rows * row_bytes, repeats[i + 1] - repeats[i], out);
  }
  return absl::OkStatus();
}

absl::Status SequenceExpand(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Offsets repeats, RepeatLevel(ctx, kY));
  const Lod& lod = ctx.input(kX).lod;
  return Expand(ctx, repeats, lod.empty() ? Offsets() : Offsets(lod.back()));
}

absl::Status SequenceExpandAs(KernelContext& ctx) {
  return Expand(ctx, ctx.input(kY).lod.back(), Offsets());
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_expand",
    .inputs = {{"X"}, {"Y", kAnyDType | kNoNeedBuffer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SequenceExpandAttrs, ReadSequenceExpandAttrs>,
    .infer = InferSequenceExpand,
    .kernels = {{DType::kUndefined, SequenceExpand}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_expand_as",
    .inputs = {{"X"}, {"Y", kAnyDType | kNoNeedBuffer}},
    .outputs = {{"Out"}},
    .infer = InferSequenceExpandAs,
    .kernels = {{DType::kUndefined, SequenceExpandAs}},
    .gradient = {.inputs = {"X", "Y", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
