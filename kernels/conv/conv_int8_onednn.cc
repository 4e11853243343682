#include "kernels/conv/conv_int8_onednn.h"

#include <utility>

#include "absl/strings/match.h"
#include "core/machine/processor.h"
#include "kernels/conv/conv_geometry.h"

namespace interp::nn {
namespace {

using dnnl::algorithm;
using dnnl::convolution_forward;
using Desc = convolution_forward::primitive_desc;
using dnnl::memory;
using dnnl::prop_kind;

bool HasBias(const Int8Epilogue& epilogue) {
  return !epilogue.scales.empty() && !epilogue.bias.empty();
}

memory::data_type OutType(const Int8Epilogue& epilogue) {
  if (epilogue.scales.empty()) return memory::data_type::s32;
  return epilogue.to_int8 ? memory::data_type::s8 : memory::data_type::f32;
}

// oneDNN 2.6.3 takes two eltwise post-ops of one algorithm for one.
bool EndsInClip(const FusedActivation& activation) {
  return activation.kind == ActivationKind::kRelu6 ||
         activation.kind == ActivationKind::kHardSigmoid ||
         activation.kind == ActivationKind::kClip;
}

bool IsNeverNegative(const FusedActivation& activation) {
  switch (activation.kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kRelu6:
    case ActivationKind::kHardSigmoid:
    case ActivationKind::kSigmoid:
    case ActivationKind::kAbs:
    case ActivationKind::kSqrt:
      return true;
    default:
      return false;
  }
}

float LowestOf(const QuantGrid& grid) {
  return static_cast<float>(grid.round_half_even ? -grid.bins - 1 : -grid.bins);
}

// Whether results leave the grid although oneDNN clips them to -128 and 127.
bool NeedsClip(const Int8Epilogue& epilogue) {
  if (!epilogue.to_int8) return false;
  const bool above = epilogue.out_grid.bins != 127;
  return above || (LowestOf(epilogue.out_grid) != -128 && !IsNeverNegative(epilogue.activation));
}

dnnl::primitive_attr MakeAttr(const Int8Epilogue& epilogue) {
  dnnl::primitive_attr attr = UserScratchpad();
  if (epilogue.scales.empty()) return attr;
  attr.set_output_scales(/*mask=*/1 << 1, epilogue.scales);
  dnnl::post_ops ops;
  if (epilogue.residual) ops.append_sum(1.0F);
  // What is stored as int8 is rounded, ties to even.
  const auto bins = static_cast<float>(epilogue.out_grid.bins);
  AppendActivation(epilogue.activation, ops, epilogue.to_int8 ? bins / epilogue.out_scale : 1);
  if (NeedsClip(epilogue)) {
    ops.append_eltwise(1.0F, algorithm::eltwise_clip, LowestOf(epilogue.out_grid), bins);
  }
  attr.set_post_ops(ops);
  return attr;
}

MemDesc WithType(const MemDesc& image, memory::data_type type) {
  const memory::dims dims = image.dims();
  const auto tag = dims.size() == 4 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
  return MemDesc(dims, type, tag);
}

// oneDNN 2.6.3 gives wrong sums by products of matrices for some grouped convolutions with filters
// of one pixel: those of 8 channels a group and 8 results in all.
bool SumsAreRight(const ConvProblem& problem, const std::string& implementation) {
  if (problem.groups == 1 || !absl::StrContains(implementation, "gemm")) return true;
  for (int i = 0; i < problem.window.rank; ++i) {
    if (problem.window[i].kernel != 1) return true;
  }
  return false;
}

absl::StatusOr<Desc> Choose(const ConvProblem& problem, const ConvGeometry& g,
                            const Int8Epilogue& epilogue) {
  const MemDesc src = WithType(g.src, memory::data_type::s8);
  const MemDesc dst = WithType(g.dst, OutType(epilogue));
  const MemDesc filter = AnyDesc(g.plain_filter.dims(), memory::data_type::s8);
  // Outlives the descriptors made from it: walking on to the next implementation reads it again.
  const convolution_forward::desc op(prop_kind::forward_inference, algorithm::convolution_direct,
                                     src, filter, g.bias, dst, g.strides, g.dilations, g.pad_begin,
                                     g.pad_end);
  Desc offer(op, MakeAttr(epilogue), Engine());
  do {
    const std::string name = offer.impl_info_str();
    if (!IsReference(name) && SumsAreRight(problem, name)) return offer;
  } while (offer.next_impl());
  return Unimplemented("oneDNN has only a reference convolution, or one with wrong sums");
}

}  // namespace

absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> OnednnInt8Conv::Make(const ConvProblem& problem,
                                                                     const Int8Epilogue& epilogue) {
  if (!ProcessorHasInt8Products()) return Unimplemented("sums of two products would saturate");
  if (!epilogue.scales.empty() && !IsPostOp(epilogue.activation)) {
    return Unimplemented("an activation that is no post-op");
  }
  if (NeedsClip(epilogue) && EndsInClip(epilogue.activation)) {
    return Unimplemented("two post-ops that clip");
  }
  auto conv = std::make_unique<OnednnInt8Conv>();
  INTERP_RETURN_IF_ERROR(CatchErrorsOfMaking([&]() -> absl::Status {
    const ConvGeometry g = MakeGeometry(problem, HasBias(epilogue), DType::kFloat32);
    INTERP_ASSIGN_OR_RETURN(const Desc desc, Choose(problem, g, epilogue));
    conv->plain_desc_ = StridedDesc(g.plain_filter.dims(), {}, memory::data_type::s8);
    conv->packed_desc_ = desc.weights_desc();
    conv->implementation_ = desc.impl_info_str();
    conv->primitive_ =
        std::make_unique<Primitive>(convolution_forward(desc), desc.scratchpad_desc());
    conv->src_ = conv->primitive_->AddArg(DNNL_ARG_SRC, desc.src_desc());
    conv->dst_ = conv->primitive_->AddArg(DNNL_ARG_DST, desc.dst_desc());
    conv->filter_ = conv->primitive_->AddArg(DNNL_ARG_WEIGHTS, desc.weights_desc());
    if (!HasBias(epilogue)) return absl::OkStatus();
    for (size_t c = 0; c < epilogue.bias.size(); ++c) {
      conv->bias_.push_back(epilogue.bias[c] / epilogue.scales[c]);
    }
    const int bias = conv->primitive_->AddArg(DNNL_ARG_BIAS, desc.bias_desc());
    conv->primitive_->SetData(bias, conv->bias_.data());
    return absl::OkStatus();
  }));
  return conv;
}

absl::StatusOr<std::shared_ptr<const memory>> OnednnInt8Conv::Pack(const int8_t* filter) const {
  auto packed = std::make_shared<memory>();
  INTERP_RETURN_IF_ERROR(CatchErrors([&] {
    *packed = memory(packed_desc_, Engine());
    return absl::OkStatus();
  }));
  INTERP_RETURN_IF_ERROR(Reorder(plain_desc_, filter, *packed));
  return std::shared_ptr<const memory>(std::move(packed));
}

absl::Status OnednnInt8Conv::Run(const KernelContext& ctx,
                                 const std::shared_ptr<const memory>& filter, const int8_t* in,
                                 void* out) {
  if (bound_ != filter) {
    primitive_->SetMemory(filter_, *filter);
    bound_ = filter;
  }
  primitive_->SetData(src_, in);
  primitive_->SetData(dst_, out);
  return primitive_->Execute(ctx);
}

}  // namespace interp::nn
