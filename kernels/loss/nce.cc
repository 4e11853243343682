// nce: tells the classes of a row from noise by logistic regression. SampleLabels are the labels of
// each row and its samples of noise, SampleLogits their probabilities o = sigmoid(Input Weight^T +
// Bias); Cost is -log(o / (o + b)) for labels and -log(b / (o + b)) for noise, b being how often
// noise has that class.
#include "kernels/loss/nce.h"

#include <random>

#include "kernels/random/draw.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kCost = 0;
constexpr int kSampleLogits = 1;
constexpr int kSampleLabels = 2;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape samples, ResolveNce(ctx));
  ctx.SetShape(kCost, {samples[0], 1});
  ctx.SetShape(kSampleLogits, samples);
  ctx.SetShape(kSampleLabels, samples);
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kSampleLabels, DType::kInt64); }

// A class from two numbers: one of all of them, and one of [0, 1).
int64_t AliasedClass(const OpContext& ctx, int64_t drawn, double number) {
  if (!(number > ctx.input(kNceAliasProbs).data<float>()[drawn])) return drawn;
  const int32_t alias = ctx.input(kNceAlias).data<int32_t>()[drawn];
  return alias < 0 ? drawn : alias;
}

int64_t LogUniformClass(int64_t classes, double number) {
  const auto range = static_cast<float>(std::log(static_cast<double>(classes)));
  return (static_cast<int64_t>(std::exp(number * range)) - 1) % std::max<int64_t>(classes - 1, 1);
}

// Classes of noise, one after the other like Paddle with a seed, else by element of the op's
// random numbers.
class Noise {
 public:
  Noise(const KernelContext& ctx, const NceAttrs& attrs)
      : ctx_(ctx),
        attrs_(attrs),
        engine_(random::SeededEngine(attrs.seed)),
        stream_(ctx.random()) {}

  int64_t Draw() {
    if (attrs_.sampler == NceSampler::kLogUniform) return LogUniformClass(attrs_.classes, Unit());
    const int64_t drawn = Integer();
    return attrs_.sampler == NceSampler::kUniform ? drawn : AliasedClass(ctx_, drawn, Unit());
  }

 private:
  double Unit() {
    if (attrs_.seed != 0) return unit_(engine_);
    return UnitDouble(random::BitsOf(stream_, next_++));
  }
  int64_t Integer() {
    if (attrs_.seed != 0) {
      std::uniform_int_distribution<int> classes(0, static_cast<int>(attrs_.classes - 1));
      return classes(engine_);
    }
    const auto drawn = static_cast<int64_t>(Unit() * static_cast<double>(attrs_.classes));
    return std::min(drawn, attrs_.classes - 1);
  }

  const KernelContext& ctx_;
  const NceAttrs& attrs_;
  std::mt19937_64 engine_;
  std::uniform_real_distribution<double> unit_;
  RandomStream stream_;
  int64_t next_ = 0;
};

void DrawSamples(const KernelContext& ctx, const Shape& samples, int64_t* out) {
  const int64_t* label = ctx.input(kNceLabel).data<int64_t>();
  const int64_t classes = NceTrueClasses(ctx);
  const auto& attrs = ctx.attrs<NceAttrs>();
  Noise noise(ctx, attrs);
  for (int64_t i = 0; i < samples.numel(); ++i) {
    const int64_t at = i % samples[1] - classes;
    if (at < 0) {
      out[i] = *label++;
    } else {
      out[i] = attrs.chosen.empty() ? noise.Draw() : attrs.chosen[at];
    }
  }
}

template <typename T>
T Probability(const KernelContext& ctx, int64_t row, int64_t label) {
  const Tensor* const bias = ctx.optional_input(kNceBias);
  const int64_t width = ctx.input(kNceInput).shape[1];
  const T* const x = ctx.input(kNceInput).data<T>() + row * width;
  const T* const w = ctx.input(kNceWeight).data<T>() + label * width;
  T sum = 0;
  for (int64_t k = 0; k < width; ++k) sum += x[k] * w[k];
  if (bias != nullptr) sum += bias->data<T>()[label];
  return static_cast<T>(1.0 / (1.0 + std::exp(-static_cast<double>(sum))));
}

template <typename T>
absl::Status Nce(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape shape, ResolveNce(ctx));
  const Tensor& label = ctx.input(kNceLabel);
  const Tensor* const weight = ctx.optional_input(kNceSampleWeight);
  const int64_t known = std::min(ctx.attrs<NceAttrs>().classes, ctx.input(kNceWeight).shape[0]);
  INTERP_RETURN_IF_ERROR(CheckIndices(label.data<int64_t>(), label.numel(), known, "Label"));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(shape.numel()) * sizeof(int64_t)));
  int64_t* const samples = memory.data<int64_t>();
  DrawSamples(ctx, shape, samples);
  INTERP_RETURN_IF_ERROR(CheckIndices(samples, shape.numel(), known, "CustomDistAlias"));
  Tensor* const labels_out = ctx.optional_output(kSampleLabels);
  Tensor* const logits_out = ctx.optional_output(kSampleLogits);
  if (labels_out != nullptr) {
    std::copy_n(samples, shape.numel(), labels_out->mutable_data<int64_t>());
  }
  for (int64_t row = 0; row < shape[0]; ++row) {
    T cost = 0;
    for (int64_t j = 0; j < shape[1]; ++j) {
      const int64_t i = row * shape[1] + j;
      const T o = Probability<T>(ctx, row, samples[i]);
      const float b = ExpectedNoise(ctx, samples[i]);
      cost -= std::log((j < NceTrueClasses(ctx) ? o : static_cast<T>(b)) / (o + b));
      if (logits_out != nullptr) logits_out->mutable_data<T>()[i] = o;
    }
    ctx.output(kCost).mutable_data<T>()[row] =
        weight == nullptr ? cost : cost * weight->data<T>()[row];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "nce",
    .inputs = {{"Input"},
               {"Label", kAnyDType},
               {"Weight"},
               {"Bias", kOptional},
               {"SampleWeight", kOptional},
               {"CustomDistProbs", kOptional | kAnyDType},
               {"CustomDistAlias", kOptional | kAnyDType},
               {"CustomDistAliasProbs", kOptional | kAnyDType}},
    .outputs = {{"Cost"}, {"SampleLogits", kOptional}, {"SampleLabels", kOptional}},
    .parse = ParseAttrs<NceAttrs, ReadNceAttrs>,
    .infer_dtype = InferTypes,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Nce<float>}, {DType::kFloat64, Nce<double>}},
    .random = true,
    .gradient = {.inputs = {"Input", "Label", "Weight", "Bias", "SampleWeight", "CustomDistProbs",
                            "CustomDistAlias", "CustomDistAliasProbs", "SampleLogits",
                            "SampleLabels", "Cost@GRAD"},
                 .outputs = {"Input@GRAD", "Weight@GRAD", "Bias@GRAD"}},
});

absl::Status CheckDistribution(const OpContext& ctx, int slot, absl::string_view name,
                               DType dtype) {
  const Tensor* const tensor = ctx.optional_input(slot);
  const int64_t classes = ctx.attrs<NceAttrs>().classes;
  if (tensor == nullptr) return InvalidArgument("sampler 2 needs input '", name, "'");
  if (tensor->dtype == dtype && tensor->numel() == classes) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(*tensor), ", expected ",
                         Name(dtype), "[", classes, "]");
}

}  // namespace

NceAttrs ReadNceAttrs(AttrReader& reader) {
  const int32_t sampler = reader.Int("sampler", 0);
  const NceAttrs attrs = {reader.Int("num_total_classes", 0), reader.Int("num_neg_samples", 10),
                          static_cast<NceSampler>(sampler), reader.Int("seed", 0),
                          reader.Ints("custom_neg_classes")};
  if (sampler < 0 || sampler > 2) {
    reader.Fail(absl::StrCat("attribute 'sampler' is ", sampler, ", expected 0, 1 or 2"));
  }
  if (attrs.classes < 1 || attrs.negatives < 0) {
    reader.Fail(absl::StrCat("attributes 'num_total_classes' and 'num_neg_samples' are ",
                             attrs.classes, " and ", attrs.negatives,
                             ", expected at least 1 and 0"));
  }
  if (!attrs.chosen.empty() && std::ssize(attrs.chosen) != attrs.negatives) {
    reader.Fail(absl::StrCat("attribute 'custom_neg_classes' has ", attrs.chosen.size(),
                             " numbers, expected ", attrs.negatives));
  }
  return attrs;
}

absl::StatusOr<Shape> ResolveNce(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<NceAttrs>();
  const Shape& x = ctx.input(kNceInput).shape;
  const Shape& w = ctx.input(kNceWeight).shape;
  const Tensor& label = ctx.input(kNceLabel);
  const Tensor* const bias = ctx.optional_input(kNceBias);
  const Tensor* const weight = ctx.optional_input(kNceSampleWeight);
  if (x.rank() != 2 || w.rank() != 2 || x[1] != w[1] || w[0] < attrs.classes) {
    return InvalidArgument("input 'Input' has shape ", ToString(x), " and 'Weight' ", ToString(w),
                           ", expected [N,D] and [", attrs.classes, ",D]");
  }
  if (label.dtype != DType::kInt64 || label.shape.rank() < 1 || label.shape.rank() > 2 ||
      label.shape[0] != x[0]) {
    return InvalidArgument("input 'Label' is ", DescribeType(label), ", expected int64[", x[0],
                           ",T]");
  }
  if (bias != nullptr && bias->numel() != w[0]) {
    return InvalidArgument("input 'Bias' has shape ", ToString(bias->shape), ", expected ", w[0],
                           " elements");
  }
  if (weight != nullptr && weight->numel() != x[0]) {
    return InvalidArgument("input 'SampleWeight' has shape ", ToString(weight->shape),
                           ", expected ", x[0], " elements");
  }
  if (attrs.sampler == NceSampler::kCustom) {
    INTERP_RETURN_IF_ERROR(CheckDistribution(ctx, kNceProbs, "CustomDistProbs", DType::kFloat32));
    INTERP_RETURN_IF_ERROR(CheckDistribution(ctx, kNceAlias, "CustomDistAlias", DType::kInt32));
    INTERP_RETURN_IF_ERROR(
        CheckDistribution(ctx, kNceAliasProbs, "CustomDistAliasProbs", DType::kFloat32));
  }
  const Shape samples = {x[0], NceTrueClasses(ctx) + attrs.negatives};
  if (samples.CheckedNumel().has_value()) return samples;
  return InvalidArgument("the samples ", ToString(samples), " are too many");
}

}  // namespace interp
