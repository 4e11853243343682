// box_decoder_and_assign: boxes of each class from offsets to prior boxes, and of each row the box
// of the class that scores highest.
//
// PriorBox [R,4], PriorBoxVar [4], TargetBox [R,4C] offsets, BoxScore [R,C] -> DecodeBox [R,4C],
// OutputAssignBox [R,4]. Class 0 is the background: it is never assigned. A row whose other scores
// are all at most -1 (or NaN) keeps its prior box. Coordinates count pixels.
#include <algorithm>
#include <cmath>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kPriorBox = 0;
constexpr int kPriorBoxVar = 1;
constexpr int kTargetBox = 2;
constexpr int kBoxScore = 3;
constexpr int kDecodeBox = 0;
constexpr int kOutputAssignBox = 1;

constexpr int64_t kGrain = 2048;  // boxes per task

struct DecoderAttrs {
  float box_clip = 4.135f;  // most that a size may grow by, as a logarithm
};

DecoderAttrs ReadAttrs(AttrReader& reader) { return {reader.Float("box_clip", 4.135f)}; }

absl::Status Infer(InferContext& ctx) {
  const Shape& prior = ctx.input(kPriorBox).shape;
  const Shape& score = ctx.input(kBoxScore).shape;
  if (prior.rank() != 2 || prior[1] != 4) {
    return InvalidArgument("input 'PriorBox' has shape ", ToString(prior), ", expected [R,4]");
  }
  if (score.rank() != 2 || score[0] != prior[0]) {
    return InvalidArgument("input 'BoxScore' has shape ", ToString(score), ", expected [", prior[0],
                           ",C]");
  }
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kPriorBoxVar, "PriorBoxVar", {4}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kTargetBox, "TargetBox", {score[0], 4 * score[1]}));
  ctx.ShareShape(kTargetBox, kDecodeBox);
  ctx.ShareShape(kPriorBox, kOutputAssignBox);
  return absl::OkStatus();
}

template <typename T>
void Decode(const T* prior, const T* variance, const T* offset, T clip, T* box) {
  const T width = prior[2] - prior[0] + 1;
  const T height = prior[3] - prior[1] + 1;
  const T x = variance[0] * offset[0] * width + (prior[0] + width / 2);
  const T y = variance[1] * offset[1] * height + (prior[1] + height / 2);
  const T new_width = std::exp(std::min(variance[2] * offset[2], clip)) * width;
  const T new_height = std::exp(std::min(variance[3] * offset[3], clip)) * height;
  box[0] = x - new_width / 2;
  box[1] = y - new_height / 2;
  box[2] = x + new_width / 2 - 1;
  box[3] = y + new_height / 2 - 1;
}

// The class that scores highest, 0 where there is none.
template <typename T>
int64_t BestClass(const T* scores, int64_t classes) {
  T best_score = -1;
  int64_t best = 0;
  for (int64_t c = 1; c < classes; ++c) {
    if (!(scores[c] > best_score)) continue;
    best_score = scores[c];
    best = c;
  }
  return best;
}

template <typename T>
absl::Status DecodeAndAssign(KernelContext& ctx) {
  const T clip = static_cast<T>(ctx.attrs<DecoderAttrs>().box_clip);
  const int64_t rows = ctx.input(kBoxScore).shape[0], classes = ctx.input(kBoxScore).shape[1];
  const T* const prior = ctx.input(kPriorBox).data<T>();
  const T* const variance = ctx.input(kPriorBoxVar).data<T>();
  const T* const offsets = ctx.input(kTargetBox).data<T>();
  const T* const scores = ctx.input(kBoxScore).data<T>();
  T* const boxes = ctx.output(kDecodeBox).mutable_data<T>();
  T* const assigned = ctx.output(kOutputAssignBox).mutable_data<T>();
  const int64_t grain = GrainFor(classes, kGrain);
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = r * classes; i < (r + 1) * classes; ++i) {
        Decode(prior + 4 * r, variance, offsets + 4 * i, clip, boxes + 4 * i);
      }
      const int64_t best = BestClass(scores + r * classes, classes);
      std::copy_n(best > 0 ? boxes + 4 * (r * classes + best) : prior + 4 * r, 4, assigned + 4 * r);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "box_decoder_and_assign",
    .inputs = {{"PriorBox"}, {"PriorBoxVar"}, {"TargetBox"}, {"BoxScore"}},
    .outputs = {{"DecodeBox"}, {"OutputAssignBox"}},
    .parse = ParseAttrs<DecoderAttrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, DecodeAndAssign<float>},
                {DType::kFloat64, DecodeAndAssign<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
