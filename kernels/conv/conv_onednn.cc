#include "kernels/conv/conv_onednn.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "core/constant_elements.h"
#include "core/storage/aligned_memory.h"
#include "kernels/conv/conv_geometry.h"
#include "kernels/conv/pack_filter.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using dnnl::algorithm;
using dnnl::convolution_forward;
using Desc = convolution_forward::primitive_desc;
using dnnl::memory;
using dnnl::prop_kind;

int64_t OutputElements(const ConvProblem& problem) {
  int64_t elements = problem.batch * problem.out_channels;
  for (int i = 0; i < problem.window.rank; ++i) elements *= problem.window[i].out;
  return elements;
}

int64_t InputElements(const ConvProblem& problem) {
  int64_t elements = problem.batch * problem.in_channels;
  for (int i = 0; i < problem.window.rank; ++i) elements *= problem.window[i].in;
  return elements;
}

bool IsCached(const ConvProblem& problem) {
  return OutputElements(problem) * int64_t{sizeof(float)} < kCachedImageBytes;
}

// Whether all are numbers of at most 1e15, so that 1e8 products of two of them stay finite.
bool IsBounded(const float* data, int64_t n) {
  constexpr uint32_t kMagnitude = 0x7fffffff;  // its bits order like it, NaN above all
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, absl::bit_cast<uint32_t>(data[i]) & kMagnitude);
  }
  return largest <= absl::bit_cast<uint32_t>(1e15F);
}

// oneDNN 2.6 computes all linear post-ops of a primitive with the factors of the first, so that of
// the affine goes into that of the activation.
void AppendHardSigmoid(const FusedActivation& activation, ScalarAffine affine,
                       dnnl::post_ops& ops) {
  const float far = affine.shift + affine.scale;
  ops.append_eltwise(1.0F, algorithm::eltwise_linear, affine.scale * activation.alpha,
                     affine.scale * activation.beta + affine.shift);
  ops.append_eltwise(1.0F, algorithm::eltwise_clip, std::min(affine.shift, far),
                     std::max(affine.shift, far));
}

void AppendSteps(const ConvEpilogue& epilogue, dnnl::post_ops& ops) {
  const ScalarAffine affine = epilogue.affine;
  if (affine.is_identity()) return AppendActivation(epilogue.activation, ops);
  if (epilogue.activation.kind == ActivationKind::kHardSigmoid) {
    return AppendHardSigmoid(epilogue.activation, affine, ops);
  }
  AppendActivation(epilogue.activation, ops);
  ops.append_eltwise(1.0F, algorithm::eltwise_linear, affine.scale, affine.shift);
}

dnnl::primitive_attr MakeAttr(const ConvEpilogue& epilogue, bool late) {
  dnnl::post_ops ops;
  if (epilogue.residual) ops.append_sum(1.0F);
  if (!late) AppendSteps(epilogue, ops);
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// Takes one of the implementations that oneDNN offers in its order of preference. Measured on
// AVX-512: the batched-gemm kernels, which come first, lose to the direct ones where their sums are
// short, that is for depthwise convolutions (by 10 to 50 %) and few input channels. May throw.
absl::StatusOr<Desc> Choose(const ConvProblem& problem, const convolution_forward::desc& op,
                            const dnnl::primitive_attr& attr) {
  const bool in_tiles = op.data.src_desc.data_type == dnnl_bf16 && MultipliesBf16Tiles();
  const bool short_sums =
      problem.depthwise() || (problem.groups == 1 && problem.in_channels <= 16 && !in_tiles);
  Desc offer(op, attr, Engine());
  int usable = -1;
  int position = 0;
  do {
    const std::string name = offer.impl_info_str();
    const bool is_usable = IsUsable(problem, name);
    if (is_usable && !(short_sums && absl::StartsWith(name, "brg"))) return offer;
    if (is_usable && usable < 0) usable = position;
    ++position;
  } while (offer.next_impl());
  if (usable < 0) return Unimplemented("oneDNN has only a reference convolution");
  Desc desc(op, attr, Engine());
  for (int i = 0; i < usable; ++i) desc.next_impl();
  return desc;
}

}  // namespace

void OnednnConv::Bind(const Desc& desc, const ConvEpilogue& epilogue, bool late) {
  packed_desc_ = desc.weights_desc();
  implementation_ = desc.impl_info_str();
  primitive_ = std::make_unique<Primitive>(convolution_forward(desc), desc.scratchpad_desc());
  src_ = primitive_->AddArg(DNNL_ARG_SRC, desc.src_desc());
  dst_ = primitive_->AddArg(DNNL_ARG_DST, desc.dst_desc());
  filter_ = primitive_->AddArg(DNNL_ARG_WEIGHTS, desc.weights_desc());
  if (epilogue.bias) {
    bias_ = primitive_->AddArg(DNNL_ARG_BIAS, desc.bias_desc());
    bias_bytes_ = desc.bias_desc().get_size();
  }
  in_numel_ = static_cast<int64_t>(desc.src_desc().get_size() / sizeof(float));
  out_numel_ = static_cast<int64_t>(desc.dst_desc().get_size() / sizeof(float));
  if (!late) return;
  late_activation_ = epilogue.activation;
  late_affine_ = epilogue.affine;
}

bool ClampsBoundedInputs(const ConvProblem& problem, const ConvEpilogue& epilogue, DType dtype) {
  return dtype == DType::kFloat32 && !epilogue.residual && IsPostOp(epilogue.activation) &&
         !KeepsNanAsPostOp(epilogue.activation) &&
         InputElements(problem) <= 2 * OutputElements(problem);
}

absl::StatusOr<std::unique_ptr<OnednnConv>> OnednnConv::Make(const ConvProblem& problem,
                                                             const ConvEpilogue& epilogue,
                                                             DType dtype, DType out_dtype) {
  if (ClampsBoundedInputs(problem, epilogue, dtype)) {
    INTERP_ASSIGN_OR_RETURN(std::unique_ptr<OnednnConv> conv,
                            Make(problem, epilogue, dtype, out_dtype, /*late=*/false));
    conv->unbounded_ = std::make_unique<Unbounded>(Unbounded{problem, epilogue, out_dtype});
    return conv;
  }
  const bool wide = out_dtype == DType::kFloat32;
  const bool late = !IsPostOp(epilogue.activation) || !KeepsNanAsPostOp(epilogue.activation) ||
                    (wide && IsCached(problem) && !PaysAsPostOp(epilogue.activation));
  if (late && !wide) {
    return Unimplemented("activations that are no post-ops are computed in float32");
  }
  return Make(problem, epilogue, dtype, out_dtype, late);
}

absl::StatusOr<std::unique_ptr<OnednnConv>> OnednnConv::Make(const ConvProblem& problem,
                                                             const ConvEpilogue& epilogue,
                                                             DType dtype, DType out_dtype,
                                                             bool late) {
  auto conv = std::make_unique<OnednnConv>();
  conv->dtype_ = dtype;
  INTERP_RETURN_IF_ERROR(CatchErrorsOfMaking([&]() -> absl::Status {
    const ConvGeometry g = MakeGeometry(problem, epilogue.bias, dtype, out_dtype);
    // Outlives the descriptors made from it: walking on to the next implementation reads it again.
    const convolution_forward::desc op(prop_kind::forward_inference, algorithm::convolution_direct,
                                       g.src, g.any_filter, g.bias, g.dst, g.strides, g.dilations,
                                       g.pad_begin, g.pad_end);
    INTERP_ASSIGN_OR_RETURN(const Desc desc, Choose(problem, op, MakeAttr(epilogue, late)));
    conv->Bind(desc, epilogue, late);
    conv->plain_desc_ = g.plain_filter;
    conv->grouped_ = problem.groups > 1;
    conv->folded_desc_ = MakeGeometry(problem, epilogue.bias, DType::kFloat32).plain_filter;
    return absl::OkStatus();
  }));
  return conv;
}

absl::StatusOr<std::shared_ptr<const PackedArrays>> OnednnConv::Pack(const float* filter,
                                                                     const ChannelFold& fold,
                                                                     int num_threads) const {
  auto packed = std::make_shared<PackedArrays>();
  INTERP_RETURN_IF_ERROR(CatchErrors([&]() -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(Tensor bytes, NewPackedArray(packed_desc_.get_size()));
    void* const data = bytes.mutable_raw_data();
    packed->arrays.push_back(std::move(bytes));
    PopulatePages(data, packed_desc_.get_size());
    if (const auto format = FilterFormat::Of(packed_desc_, grouped_)) {
      format->Pack(filter, fold.factors, num_threads, static_cast<float*>(data));
      return absl::OkStatus();
    }
    const memory target(packed_desc_, Engine(), data);
    if (fold.factors.empty()) return Reorder(folded_desc_, filter, target);
    std::vector<float> scaled(filter, filter + folded_desc_.get_size() / sizeof(float));
    ScaleChannels(fold.factors, scaled);
    return Reorder(folded_desc_, scaled.data(), target);
  }));
  if (!fold.bias.empty()) {
    packed->arrays.push_back(Tensor::Of<float>({static_cast<int64_t>(fold.bias.size())},
                                               absl::MakeConstSpan(fold.bias)));
  }
  return std::shared_ptr<const PackedArrays>(std::move(packed));
}

absl::StatusOr<std::shared_ptr<const PackedArrays>> OnednnConv::Pack(const KernelContext& ctx,
                                                                     const ConvAttrs& attrs) const {
  INTERP_ASSIGN_OR_RETURN(const ConstantElements filter,
                          ConstantElements::Of(ctx.input(attrs.slots.filter)));
  const bool as_it_is = filter->layout == Layout::kPlain && filter->dtype == DType::kFloat32;
  std::vector<float> dense;
  if (!as_it_is) dense = DenseFilter(*filter);
  return Pack(as_it_is ? filter->data<float>() : dense.data(), FoldOf(ctx, attrs),
              ctx.num_threads());
}

absl::StatusOr<std::shared_ptr<const PackedWeights>> OnednnConv::Use(
    std::shared_ptr<const PackedArrays> arrays) const {
  absl::InlinedVector<size_t, 2> sizes = {packed_desc_.get_size()};
  if (bias_ >= 0) sizes.push_back(bias_bytes_);
  INTERP_RETURN_IF_ERROR(CheckArrays(*arrays, sizes));
  auto weights = std::make_shared<PackedWeights>();
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    // oneDNN wants what it reads as writable.
    void* const filter = const_cast<float*>(ElementsOf<float>(*arrays, 0));
    weights->filter = memory(packed_desc_, Engine(), filter);
    return absl::OkStatus();
  }));
  if (bias_ >= 0) weights->bias = ElementsOf<float>(*arrays, 1);
  if (unbounded_ != nullptr) {
    const auto count = static_cast<int64_t>(packed_desc_.get_size() / sizeof(float));
    const auto biases = static_cast<int64_t>(bias_bytes_ / sizeof(float));
    weights->bounded = IsBounded(ElementsOf<float>(*arrays, 0), count) &&
                       (bias_ < 0 || IsBounded(weights->bias, biases));
  }
  weights->arrays = std::move(arrays);
  return std::shared_ptr<const PackedWeights>(std::move(weights));
}

absl::StatusOr<std::shared_ptr<const PackedWeights>> OnednnConv::SharedWeights(
    const KernelContext& ctx, const ConvAttrs& attrs) const {
  INTERP_ASSIGN_OR_RETURN(auto packed,
                          SharedArrays(ctx, weights_key(), [&] { return Pack(ctx, attrs); }));
  return Use(std::move(packed));
}

absl::StatusOr<std::shared_ptr<const PackedWeights>> OnednnConv::Repack(const KernelContext& ctx,
                                                                        const void* filter) {
  if (repacked_ == nullptr) {
    INTERP_RETURN_IF_ERROR(CatchErrors([&] {
      repack_ = std::make_unique<FormatCopy>(plain_desc_, packed_desc_);
      auto packed = std::make_shared<PackedWeights>();
      packed->filter = memory(packed_desc_, Engine());
      repacked_ = std::move(packed);
      return absl::OkStatus();
    }));
  }
  INTERP_RETURN_IF_ERROR(repack_->Run(ctx, filter, repacked_->filter));
  if (unbounded_ != nullptr) {
    repacked_->bounded = IsBounded(static_cast<const float*>(repacked_->filter.get_data_handle()),
                                   static_cast<int64_t>(packed_desc_.get_size() / sizeof(float)));
  }
  return std::shared_ptr<const PackedWeights>(repacked_);
}

absl::Status OnednnConv::Run(const KernelContext& ctx,
                             const std::shared_ptr<const PackedWeights>& weights, const void* in,
                             void* out) {
  if (!MayClamp(ctx.num_threads(), *weights, in)) return RunUnbounded(*weights, in, out);
  BindArguments(weights, in, out);
  INTERP_RETURN_IF_ERROR(primitive_->Execute(ctx));
  FinishLate(ctx.num_threads(), out);
  return absl::OkStatus();
}

absl::Status OnednnConv::Run(const std::shared_ptr<const PackedWeights>& weights, const void* in,
                             void* out, void* scratchpad) {
  if (!MayClamp(/*num_threads=*/1, *weights, in)) return RunUnbounded(*weights, in, out);
  BindArguments(weights, in, out);
  INTERP_RETURN_IF_ERROR(primitive_->Execute(scratchpad));
  FinishLate(/*num_threads=*/1, out);
  return absl::OkStatus();
}

bool OnednnConv::MayClamp(int num_threads, const PackedWeights& weights, const void* in) const {
  if (unbounded_ == nullptr) return true;
  if (!weights.bounded) return false;
  constexpr int64_t kGrain = 65536;  // a microsecond or two
  std::atomic<bool> bounded = true;
  ParallelFor(num_threads, in_numel_, kGrain, [&](int64_t begin, int64_t end) {
    if (!IsBounded(static_cast<const float*>(in) + begin, end - begin)) bounded = false;
  });
  return bounded;
}

// Rare, so that the weights are packed anew.
absl::Status OnednnConv::RunUnbounded(const PackedWeights& weights, const void* in, void* out) {
  Unbounded& other = *unbounded_;
  if (other.conv == nullptr) {
    INTERP_ASSIGN_OR_RETURN(other.conv, Make(other.problem, other.epilogue, dtype_, other.out_dtype,
                                             /*late=*/true));
    INTERP_ASSIGN_OR_RETURN(other.scratchpad, NewPackedArray(other.conv->scratchpad_bytes()));
  }
  std::vector<float> filter;
  ChannelFold fold;
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    filter.resize(folded_desc_.get_size() / sizeof(float));
    if (bias_ >= 0) fold.bias.assign(weights.bias, weights.bias + bias_bytes_ / sizeof(float));
    return Reorder(packed_desc_, weights.filter.get_data_handle(),
                   memory(folded_desc_, Engine(), filter.data()));
  }));
  INTERP_ASSIGN_OR_RETURN(auto arrays, other.conv->Pack(filter.data(), fold, /*num_threads=*/1));
  INTERP_ASSIGN_OR_RETURN(const auto packed, other.conv->Use(std::move(arrays)));
  return other.conv->Run(packed, in, out, other.scratchpad.mutable_raw_data());
}

void OnednnConv::BindArguments(const std::shared_ptr<const PackedWeights>& weights, const void* in,
                               void* out) {
  if (bound_ != weights) {
    primitive_->SetMemory(filter_, weights->filter);
    if (bias_ >= 0) primitive_->SetData(bias_, weights->bias);
    bound_ = weights;
  }
  primitive_->SetData(src_, in);
  primitive_->SetData(dst_, out);
}

void OnednnConv::FinishLate(int num_threads, void* out) const {
  if (late_activation_.kind == ActivationKind::kNone) return;
  constexpr int64_t kGrain = 4096;  // a microsecond
  ParallelFor(num_threads, out_numel_, kGrain, [&](int64_t begin, int64_t end) {
    float* const part = static_cast<float*>(out) + begin;
    ApplyActivation(late_activation_, part, end - begin);
    ApplyAffine(late_affine_, part, end - begin);
  });
}

}  // namespace interp::nn
