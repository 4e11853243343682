// target_assign: what each prior box is to learn. Row j of image i is row MatchIndices[i,j] of the
// image's sequence in X, with weight 1; a prior without match (-1) gets mismatch_value and weight
// 0. The priors that NegIndices lists, for each image a sequence, get mismatch_value and weight 1.
// X is [M,P',K] with a LoD: column j % P' of the row is taken.
// (Paddle before 2.6: fluid/operators/detection/target_assign_op.h.)
#include <algorithm>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMatchIndices = 1;
constexpr int kNegIndices = 2;
constexpr int kOut = 0;
constexpr int kOutWeight = 1;

struct TargetAttrs {
  int32_t mismatch_value = 0;
};

TargetAttrs ReadTargetAttrs(AttrReader& reader) { return {reader.Int("mismatch_value", 0)}; }

absl::Status InferTarget(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& matches = ctx.input(kMatchIndices).shape;
  if (x.rank() != 3) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected [rows,columns,width]");
  }
  if (matches.rank() != 2) {
    return InvalidArgument("input 'MatchIndices' has shape ", ToString(matches),
                           ", expected [images,priors]");
  }
  if (x[1] == 0 && matches.numel() != 0) return InvalidArgument("input 'X' has no columns");
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, OnlyLevelOffsets(ctx.input(kX), "X"));
  if (SequenceCount(rows) != matches[0]) {
    return InvalidArgument("input 'X' has ", SequenceCount(rows),
                           " sequences, expected one for "
                           "each of ",
                           matches[0], " images");
  }
  if (const Tensor* negatives = ctx.optional_input(kNegIndices); negatives != nullptr) {
    INTERP_ASSIGN_OR_RETURN(const Offsets lists, OnlyLevelOffsets(*negatives, "NegIndices"));
    if (SequenceCount(lists) != matches[0] || negatives->numel() != lists.back()) {
      return InvalidArgument("input 'NegIndices' is ", DescribeType(*negatives), " with ",
                             SequenceCount(lists), " sequences, expected a number a row and ",
                             matches[0], " sequences");
    }
  }
  ctx.SetShape(kOut, Shape{matches[0], matches[1], x[2]});
  ctx.SetShape(kOutWeight, Shape{matches[0], matches[1], 1});
  return absl::OkStatus();
}

void SetWeightDType(DTypeContext& ctx) { ctx.Set(kOutWeight, DType::kFloat32); }

// The rows of one image.
template <typename T>
absl::Status AssignMatches(const Tensor& x, int64_t begin, int64_t end,
                           absl::Span<const int> matches, T mismatch, T* out, float* weight) {
  const int64_t columns = x.shape[1];
  const int64_t width = x.shape[2];
  for (size_t j = 0; j < matches.size(); ++j, out += width) {
    const int64_t match = matches[j];
    weight[j] = match >= 0 ? 1.0F : 0.0F;
    if (match < 0) {
      std::fill(out, out + width, mismatch);
      continue;
    }
    if (match >= end - begin) {
      return InvalidArgument("prior ", j, " matches row ", match, " of an image with ",
                             end - begin);
    }
    const int64_t row = (begin + match) * columns + static_cast<int64_t>(j) % columns;
    std::copy_n(x.data<T>() + row * width, width, out);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status AssignNegatives(absl::Span<const int> negatives, int64_t num_priors, int64_t width,
                             T mismatch, T* out, float* weight) {
  for (const int prior : negatives) {
    if (prior < 0 || prior >= num_priors) {
      return InvalidArgument("'NegIndices' names prior ", prior, " of ", num_priors);
    }
    std::fill_n(out + prior * width, width, mismatch);
    weight[prior] = 1;
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Tensor& indices, absl::string_view slot) {
  if (indices.dtype == DType::kInt32) return absl::OkStatus();
  return InvalidArgument("input '", slot, "' is ", DescribeType(indices), ", expected int32");
}

template <typename T>
absl::Status Target(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& matches = ctx.input(kMatchIndices);
  INTERP_RETURN_IF_ERROR(CheckIndices(matches, "MatchIndices"));
  INTERP_ASSIGN_OR_RETURN(const Offsets rows, OnlyLevelOffsets(x, "X"));
  const int64_t priors = matches.shape[1];
  const int64_t width = x.shape[2];
  const T mismatch = static_cast<T>(ctx.attrs<TargetAttrs>().mismatch_value);
  T* out = ctx.output(kOut).mutable_data<T>();
  float* weight = ctx.output(kOutWeight).mutable_data<float>();
  for (int64_t i = 0; i < matches.shape[0]; ++i) {
    INTERP_RETURN_IF_ERROR(AssignMatches(
        x, rows[i], rows[i + 1], absl::MakeConstSpan(matches.data<int>() + i * priors, priors),
        mismatch, out + i * priors * width, weight + i * priors));
  }
  const Tensor* negatives = ctx.optional_input(kNegIndices);
  if (negatives == nullptr) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(CheckIndices(*negatives, "NegIndices"));
  INTERP_ASSIGN_OR_RETURN(const Offsets lists, OnlyLevelOffsets(*negatives, "NegIndices"));
  for (int64_t i = 0; i < matches.shape[0]; ++i) {
    const auto list =
        absl::MakeConstSpan(negatives->data<int>() + lists[i], lists[i + 1] - lists[i]);
    INTERP_RETURN_IF_ERROR(AssignNegatives(list, priors, width, mismatch, out + i * priors * width,
                                           weight + i * priors));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "target_assign",
    .inputs = {{"X"}, {"MatchIndices", kAnyDType}, {"NegIndices", kOptional | kAnyDType}},
    .outputs = {{"Out"}, {"OutWeight"}},
    .parse = ParseAttrs<TargetAttrs, ReadTargetAttrs>,
    .infer_dtype = SetWeightDType,
    .infer = InferTarget,
    .kernels = {{DType::kFloat32, Target<float>},
                {DType::kFloat64, Target<double>},
                {DType::kInt32, Target<int32_t>},
                {DType::kInt64, Target<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
