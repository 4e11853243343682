// mine_hard_examples: chooses the priors with the largest losses as negative examples of SSD
// training, per image.
//
//   max_negative  of the priors that match nothing and lie below neg_dist_threshold, at most
//                 neg_pos_ratio times the number of matches
//   hard_example  of all priors, by both losses, sample_size; matches not chosen are undone
//
// ClsLoss, LocLoss, MatchIndices, MatchDist [N, P] -> NegIndices [negatives, 1] with a LoD by
// image, UpdatedMatchIndices [N, P].
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr int kClsLoss = 0;
constexpr int kLocLoss = 1;
constexpr int kMatchIndices = 2;
constexpr int kMatchDist = 3;
constexpr int kNegIndices = 0;
constexpr int kUpdated = 1;

struct MineAttrs {
  bool hard_example;
  float neg_pos_ratio, neg_dist_threshold;
  int64_t sample_size;
};

MineAttrs ReadAttrs(AttrReader& reader) {
  const MineAttrs attrs = {
      .hard_example = ReadChoice<bool>(reader, "mining_type",
                                       {{"max_negative", false}, {"hard_example", true}}),
      .neg_pos_ratio = reader.Float("neg_pos_ratio", 1),
      .neg_dist_threshold = reader.Float("neg_dist_threshold", 0.5),
      .sample_size = reader.Int("sample_size", 0)};
  if (attrs.hard_example && attrs.sample_size <= 0) {
    reader.Fail(
        absl::StrCat("attribute 'sample_size' is ", attrs.sample_size, ", expected more than 0"));
  }
  if (!attrs.hard_example && !(attrs.neg_pos_ratio > 0)) {
    reader.Fail(absl::StrCat("attribute 'neg_pos_ratio' is ", attrs.neg_pos_ratio,
                             ", expected more than 0"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& loss = ctx.input(kClsLoss).shape;
  if (loss.rank() != 2) {
    return InvalidArgument("input 'ClsLoss' has shape ", ToString(loss), ", expected [N,P]");
  }
  for (const auto& [slot, name] : {std::pair(kLocLoss, "LocLoss"),
                                   {kMatchIndices, "MatchIndices"},
                                   {kMatchDist, "MatchDist"}}) {
    INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, slot, name, kClsLoss, "ClsLoss"));
  }
  if (ctx.input(kMatchIndices).dtype != DType::kInt32) {
    return InvalidArgument("input 'MatchIndices' is ", Name(ctx.input(kMatchIndices).dtype),
                           ", expected int32");
  }
  return absl::OkStatus();
}

// One image: its priors' losses and matches.
template <typename T>
struct Image {
  const T* cls_loss;
  const T* loc_loss;  // may be null
  const int32_t* match;
  const T* match_dist;
  int64_t num_priors;
};

template <typename T>
int64_t MostNegatives(const Image<T>& image, const MineAttrs& attrs) {
  if (attrs.hard_example) return attrs.sample_size;
  const auto positives =
      image.num_priors - std::count(image.match, image.match + image.num_priors, -1);
  const float most = static_cast<float>(positives) * attrs.neg_pos_ratio;
  return most < static_cast<float>(image.num_priors) ? static_cast<int64_t>(most)
                                                     : image.num_priors;
}

// Which priors are among those with the largest losses.
template <typename T>
std::vector<bool> ChooseByLoss(const Image<T>& image, const MineAttrs& attrs) {
  using Candidate = std::pair<T, size_t>;
  std::vector<Candidate> candidates;
  for (int64_t p = 0; p < image.num_priors; ++p) {
    T loss = image.cls_loss[p];
    if (attrs.hard_example) {
      if (image.loc_loss != nullptr) loss += image.loc_loss[p];
    } else if (image.match[p] != -1 ||
               !(static_cast<float>(image.match_dist[p]) < attrs.neg_dist_threshold)) {
      continue;
    }
    candidates.emplace_back(loss, p);
  }
  // Compares floats, and is not stable: both settle ties as Paddle does. NaN comes last.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    const float x = static_cast<float>(a.first), y = static_cast<float>(b.first);
    return x > y || (std::isnan(y) && !std::isnan(x));
  });
  const int64_t count = std::min(MostNegatives(image, attrs), std::ssize(candidates));
  std::vector<bool> chosen(image.num_priors, false);
  for (int64_t i = 0; i < count; ++i) chosen[candidates[i].second] = true;
  return chosen;
}

// Appends the image's negatives to `negatives`; with hard_example undoes matches in `updated`.
template <typename T>
void Mine(const Image<T>& image, const MineAttrs& attrs, int32_t* updated,
          std::vector<int32_t>& negatives) {
  const std::vector<bool> chosen = ChooseByLoss(image, attrs);
  for (int64_t p = 0; p < image.num_priors; ++p) {
    const bool matched = image.match[p] > -1;
    if (attrs.hard_example && matched && !chosen[p]) updated[p] = -1;
    if (chosen[p] && !(attrs.hard_example && matched)) negatives.push_back(static_cast<int32_t>(p));
  }
}

template <typename T>
absl::Status MineHardExamples(KernelContext& ctx) {
  const Tensor& match = ctx.input(kMatchIndices);
  const Tensor* loc_loss = ctx.optional_input(kLocLoss);
  Tensor& updated = ctx.output(kUpdated);
  updated.shape = match.shape;
  updated.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(updated));
  std::copy_n(match.data<int32_t>(), match.numel(), updated.mutable_data<int32_t>());

  const int64_t num_priors = match.shape[1];
  std::vector<int32_t> negatives;
  std::vector<int64_t> offsets = {0};
  for (int64_t n = 0; n < match.shape[0]; ++n) {
    const int64_t first = n * num_priors;
    const Image<T> image = {.cls_loss = ctx.input(kClsLoss).data<T>() + first,
                            .loc_loss = loc_loss == nullptr ? nullptr : loc_loss->data<T>() + first,
                            .match = match.data<int32_t>() + first,
                            .match_dist = ctx.input(kMatchDist).data<T>() + first,
                            .num_priors = num_priors};
    Mine(image, ctx.attrs<MineAttrs>(), updated.mutable_data<int32_t>() + first, negatives);
    offsets.push_back(std::ssize(negatives));
  }
  Tensor& out = ctx.output(kNegIndices);
  out.shape = {std::ssize(negatives), 1};
  out.lod = {offsets};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(negatives.begin(), negatives.end(), out.mutable_data<int32_t>());
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) {
  ctx.Set(kNegIndices, DType::kInt32);
  ctx.Set(kUpdated, DType::kInt32);
}

INTERP_REGISTER_OP(OpDef{
    .type = "mine_hard_examples",
    .inputs = {{"ClsLoss"}, {"LocLoss", kOptional}, {"MatchIndices", kAnyDType}, {"MatchDist"}},
    .outputs = {{"NegIndices"}, {"UpdatedMatchIndices"}},
    .parse = ParseAttrs<MineAttrs, ReadAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, MineHardExamples<float>},
                {DType::kFloat64, MineHardExamples<double>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
