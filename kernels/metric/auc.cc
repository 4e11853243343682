// auc: the area under the ROC curve of the scores in the last column of Predict, from counts of
// samples by score. The counts live in StatPos and StatNeg, which the op updates:
//
//   slide_steps 0   buckets: score * num_thresholds is the bucket of a sample; they grow for ever.
//                   Further elements are dropped: Paddle's Python makes one at first
//   slide_steps n   n steps of buckets, oldest replaced first, then the sum of these steps, then
//                   the number of runs; AUC is of the last n runs
//   the same with    Paddle before 1.7: n steps of buckets and nothing else, the oldest first; each
//   n x buckets      run drops the first and adds its own at the end
//
// An InsTagWeight of 0 marks a batch without data, which adds nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kPredict = 0;
constexpr int kLabel = 1;
constexpr int kStatPos = 2;
constexpr int kStatNeg = 3;
constexpr int kInsTagWeight = 4;
constexpr int kAuc = 0;
constexpr int kStatPosOut = 1;
constexpr int kStatNegOut = 2;

struct AucAttrs {
  int64_t buckets = 4096;
  int64_t slide_steps = 1;
};

AucAttrs ReadAucAttrs(AttrReader& reader) {
  const int64_t thresholds = reader.Int("num_thresholds", (2 << 12) - 1);
  const int64_t steps = reader.Int("slide_steps", 1);
  if (thresholds < 1) reader.Fail("attribute 'num_thresholds' is below 1");
  if (steps < 0) reader.Fail("attribute 'slide_steps' is negative");
  return {thresholds + 1, steps};
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kAuc, DType::kFloat64);
  ctx.Set(kStatPosOut, DType::kInt64);
  ctx.Set(kStatNegOut, DType::kInt64);
}

bool IsOldLayout(const AucAttrs& attrs, const Tensor& stat) {
  return attrs.slide_steps > 0 && stat.numel() % attrs.buckets == 0 &&
         stat.numel() / attrs.buckets == attrs.slide_steps;
}

// The counts of all steps, their sum, and the number of runs.
absl::StatusOr<int64_t> StatSize(const AucAttrs& attrs) {
  INTERP_ASSIGN_OR_RETURN(const int64_t counts,
                          CheckedProduct(attrs.slide_steps + 1, attrs.buckets));
  return attrs.slide_steps > 0 ? counts + 1 : counts;
}

absl::Status InferAuc(InferContext& ctx) {
  const AucAttrs& attrs = ctx.attrs<AucAttrs>();
  const Shape& predict = ctx.input(kPredict).shape;
  const Tensor& label = ctx.input(kLabel);
  if (predict.rank() != 2 || predict[1] < 1) {
    return InvalidArgument("input 'Predict' has shape ", ToString(predict),
                           ", expected [samples,classes]");
  }
  if (label.dtype != DType::kInt64 || label.numel() < predict[0]) {
    return InvalidArgument("input 'Label' is ", DescribeType(label), ", expected ", predict[0],
                           " labels of int64");
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t size, StatSize(attrs));
  for (const int slot : {kStatPos, kStatNeg}) {
    const Tensor& stat = ctx.input(slot);
    const bool old = IsOldLayout(attrs, ctx.input(kStatPos)) && IsOldLayout(attrs, stat);
    const bool fits = stat.numel() == size || (attrs.slide_steps == 0 && stat.numel() > size);
    if (stat.dtype == DType::kInt64 && (old || fits)) continue;
    return InvalidArgument("input '", slot == kStatPos ? "StatPos" : "StatNeg", "' is ",
                           DescribeType(stat), ", expected ", size, " elements of int64");
  }
  if (ctx.has_input(kInsTagWeight) &&
      (ctx.input(kInsTagWeight).dtype != DType::kFloat32 || ctx.input(kInsTagWeight).numel() < 1)) {
    return InvalidArgument("input 'InsTagWeight' is ", DescribeType(ctx.input(kInsTagWeight)),
                           ", expected float32 with an element");
  }
  const Shape stat = attrs.slide_steps > 0 ? Shape{size} : Shape{1, size};
  ctx.SetShape(kAuc, {});
  if (IsOldLayout(attrs, ctx.input(kStatPos))) {
    ctx.SetShape(kStatPosOut, ctx.input(kStatPos).shape);
    ctx.SetShape(kStatNegOut, ctx.input(kStatNeg).shape);
    return absl::OkStatus();
  }
  ctx.SetShape(kStatPosOut, stat);
  ctx.SetShape(kStatNegOut, stat);
  return absl::OkStatus();
}

// Counts by bucket: of positive samples and of negative ones.
struct Counts {
  int64_t* positive = nullptr;
  int64_t* negative = nullptr;

  Counts operator+(int64_t offset) const { return {positive + offset, negative + offset}; }
};

absl::Status CheckScores(const float* predict, const Shape& shape) {
  for (int64_t i = 0; i < shape[0]; ++i) {
    const float score = predict[(i + 1) * shape[1] - 1];
    if (score >= 0.0f && score <= 1.0f) continue;
    return InvalidArgument("input 'Predict' has the score ", score, " in row ", i,
                           ", expected 0 to 1");
  }
  return absl::OkStatus();
}

// REQUIRES: scores have been checked.
void CountSamples(const float* predict, const Shape& shape, const int64_t* labels, int64_t buckets,
                  Counts counts) {
  const auto thresholds = static_cast<float>(buckets - 1);
  for (int64_t i = 0; i < shape[0]; ++i) {
    const float score = predict[(i + 1) * shape[1] - 1];
    // Rounding may reach past the last bucket when there are more than float can count.
    const int64_t bucket = std::min(static_cast<int64_t>(score * thresholds), buckets - 1);
    if (labels[i] > 0) {
      counts.positive[bucket] = WrapAdd(counts.positive[bucket], int64_t{1});
    } else if (labels[i] == 0) {
      counts.negative[bucket] = WrapAdd(counts.negative[bucket], int64_t{1});
    }
  }
}

double Area(const Counts& counts, int64_t buckets) {
  double area = 0;
  double positive = 0;
  double negative = 0;
  for (int64_t i = buckets - 1; i >= 0; --i) {
    const double positive_before = positive;
    const double negative_before = negative;
    positive += static_cast<double>(counts.positive[i]);
    negative += static_cast<double>(counts.negative[i]);
    area += std::abs(negative - negative_before) * (positive + positive_before) / 2.0;
  }
  return positive > 0.0 && negative > 0.0 ? area / positive / negative : area;
}

// Replaces the counts of the oldest step by those of this batch.
void Slide(const AucAttrs& attrs, bool has_data, const Counts& all, const Counts& step,
           KernelContext& ctx) {
  const Counts sum = all + attrs.slide_steps * attrs.buckets;
  for (int64_t i = 0; i < attrs.buckets; ++i) {
    sum.positive[i] = WrapSub(sum.positive[i], step.positive[i]);
    sum.negative[i] = WrapSub(sum.negative[i], step.negative[i]);
  }
  std::fill_n(step.positive, attrs.buckets, 0);
  std::fill_n(step.negative, attrs.buckets, 0);
  const Tensor& predict = ctx.input(kPredict);
  CountSamples(predict.data<float>(), predict.shape, ctx.input(kLabel).data<int64_t>(),
               attrs.buckets, step);
  if (!has_data) return;
  for (int64_t i = 0; i < attrs.buckets; ++i) {
    sum.positive[i] = WrapAdd(sum.positive[i], step.positive[i]);
    sum.negative[i] = WrapAdd(sum.negative[i], step.negative[i]);
  }
}

// The old layout: AUC of the steps that are there.
double SlideRows(const AucAttrs& attrs, bool has_data, const Counts& all, KernelContext& ctx) {
  const int64_t kept = (attrs.slide_steps - 1) * attrs.buckets;
  for (int64_t* counts : {all.positive, all.negative}) {
    std::copy_n(counts + attrs.buckets, kept, counts);
    std::fill_n(counts + kept, attrs.buckets, 0);
  }
  const Tensor& predict = ctx.input(kPredict);
  if (has_data) {
    CountSamples(predict.data<float>(), predict.shape, ctx.input(kLabel).data<int64_t>(),
                 attrs.buckets, all + kept);
  }
  std::vector<int64_t> positive(attrs.buckets);
  std::vector<int64_t> negative(attrs.buckets);
  for (int64_t i = 0; i < kept + attrs.buckets; ++i) {
    int64_t& more_positive = positive[i % attrs.buckets];
    int64_t& more_negative = negative[i % attrs.buckets];
    more_positive = WrapAdd(more_positive, all.positive[i]);
    more_negative = WrapAdd(more_negative, all.negative[i]);
  }
  return Area({positive.data(), negative.data()}, attrs.buckets);
}

// The counts of before, of which Out may take fewer elements.
void TakeCounts(const Tensor& in, Tensor& out) {
  if (in.raw_data() == out.raw_data()) return;
  std::memcpy(out.mutable_raw_data(), in.raw_data(), out.size_bytes());
}

absl::Status Auc(KernelContext& ctx) {
  const AucAttrs& attrs = ctx.attrs<AucAttrs>();
  const Tensor& predict = ctx.input(kPredict);
  const Tensor* const weight = ctx.optional_input(kInsTagWeight);
  const bool has_data = weight == nullptr || *weight->data<float>() != 0.0f;
  INTERP_RETURN_IF_ERROR(CheckScores(predict.data<float>(), predict.shape));
  TakeCounts(ctx.input(kStatPos), ctx.output(kStatPosOut));
  TakeCounts(ctx.input(kStatNeg), ctx.output(kStatNegOut));
  const Counts all = {ctx.output(kStatPosOut).mutable_data<int64_t>(),
                      ctx.output(kStatNegOut).mutable_data<int64_t>()};
  if (IsOldLayout(attrs, ctx.output(kStatPosOut))) {
    *ctx.output(kAuc).mutable_data<double>() = SlideRows(attrs, has_data, all, ctx);
    return absl::OkStatus();
  }
  const int64_t sum = attrs.slide_steps * attrs.buckets;
  if (attrs.slide_steps > 0) {
    int64_t& runs = all.positive[sum + attrs.buckets];
    if (runs < 0) return InvalidArgument("input 'StatPos' ends with ", runs, ", a number of runs");
    Slide(attrs, has_data, all, all + runs % attrs.slide_steps * attrs.buckets, ctx);
    runs = WrapAdd(runs, int64_t{1});
    int64_t& negative_runs = all.negative[sum + attrs.buckets];
    negative_runs = WrapAdd(negative_runs, int64_t{1});
  } else if (has_data) {
    CountSamples(predict.data<float>(), predict.shape, ctx.input(kLabel).data<int64_t>(),
                 attrs.buckets, all);
  }
  *ctx.output(kAuc).mutable_data<double>() = Area(all + sum, attrs.buckets);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "auc",
    .inputs = {{"Predict"},
               {"Label", kAnyDType},
               {"StatPos", kAnyDType},
               {"StatNeg", kAnyDType},
               {"InsTagWeight", kOptional | kAnyDType}},
    .outputs = {{"AUC"}, {"StatPosOut"}, {"StatNegOut"}},
    .parse = ParseAttrs<AucAttrs, ReadAucAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferAuc,
    .kernels = {{DType::kFloat32, Auc}},
    .inplace = {{kStatPos, kStatPosOut}, {kStatNeg, kStatNegOut}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
