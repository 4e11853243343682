#include "kernels/conv/conv_grad_onednn.h"

#include <algorithm>
#include <utility>

#include "kernels/conv/conv_geometry.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

using dnnl::algorithm;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;

// Multiplications and additions worth a part of their own.
constexpr double kPartFlops = 4e6;
constexpr int64_t kMaxParts = 16;
// All parts' results together: beyond, adding them up would cost more than the threads gain.
constexpr int64_t kMaxSumBytes = int64_t{4} << 20;

int64_t CountParts(const ConvProblem& problem, size_t sum_bytes) {
  const int64_t by_work =
      static_cast<int64_t>(std::min(problem.flops() / kPartFlops, double{kMaxParts}));
  const int64_t by_size = kMaxSumBytes / std::max<int64_t>(1, static_cast<int64_t>(sum_bytes));
  return std::clamp<int64_t>(std::min(by_work, by_size), 1, std::max<int64_t>(problem.batch, 1));
}

// What the descriptors of gradients are derived from. May throw.
convolution_forward::primitive_desc Forward(const ConvGeometry& g) {
  const convolution_forward::desc op(dnnl::prop_kind::forward_training,
                                     algorithm::convolution_direct, g.src, g.any_filter, g.dst,
                                     g.strides, g.dilations, g.pad_begin, g.pad_end);
  return convolution_forward::primitive_desc(op, Engine());
}

// The first implementation that is of use.
template <typename Desc>
absl::Status FindUsable(const ConvProblem& problem, Desc& desc) {
  while (!IsUsable(problem, desc.impl_info_str())) {
    if (!desc.next_impl()) return Unimplemented("oneDNN has only a reference gradient");
  }
  return absl::OkStatus();
}

// May throw.
absl::StatusOr<convolution_backward_weights::primitive_desc> FilterGradDesc(
    const ConvProblem& problem, DType dtype) {
  const ConvGeometry g = MakeGeometry(problem, /*bias=*/false, dtype);
  const convolution_backward_weights::desc op(algorithm::convolution_direct, g.src,
                                              g.any_filter_sum, g.dst, g.strides, g.dilations,
                                              g.pad_begin, g.pad_end);
  const auto forward = Forward(g);  // oneDNN reads it for each offer
  convolution_backward_weights::primitive_desc desc(op, UserScratchpad(), Engine(), forward);
  INTERP_RETURN_IF_ERROR(FindUsable(problem, desc));
  return desc;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OnednnConvDataGrad>> OnednnConvDataGrad::Make(
    const ConvProblem& problem, DType dtype) {
  auto grad = std::make_unique<OnednnConvDataGrad>();
  INTERP_RETURN_IF_ERROR(CatchErrors([&]() -> absl::Status {
    const ConvGeometry g = MakeGeometry(problem, /*bias=*/false, dtype);
    const convolution_backward_data::desc op(algorithm::convolution_direct, g.src, g.any_filter,
                                             g.dst, g.strides, g.dilations, g.pad_begin, g.pad_end);
    const auto forward = Forward(g);  // oneDNN reads it for each offer
    convolution_backward_data::primitive_desc desc(op, UserScratchpad(), Engine(), forward);
    INTERP_RETURN_IF_ERROR(FindUsable(problem, desc));
    grad->implementation_ = desc.impl_info_str();
    grad->primitive_ =
        std::make_unique<Primitive>(convolution_backward_data(desc), desc.scratchpad_desc());
    grad->in_grad_ = grad->primitive_->AddArg(DNNL_ARG_DIFF_SRC, desc.diff_src_desc());
    grad->out_grad_ = grad->primitive_->AddArg(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
    grad->packed_ = memory(desc.weights_desc(), Engine());
    grad->primitive_->AddMemory(DNNL_ARG_WEIGHTS, grad->packed_);
    grad->pack_ = std::make_unique<FormatCopy>(g.plain_filter, desc.weights_desc());
    return absl::OkStatus();
  }));
  return grad;
}

absl::Status OnednnConvDataGrad::Run(const KernelContext& ctx, const void* filter,
                                     const void* out_grad, void* in_grad) {
  INTERP_RETURN_IF_ERROR(pack_->Run(ctx, filter, packed_));
  primitive_->SetData(in_grad_, in_grad);
  primitive_->SetData(out_grad_, out_grad);
  return primitive_->Execute(ctx);
}

absl::Status OnednnConvFilterGrad::AddPart(const ConvProblem& problem, DType dtype, int64_t first,
                                           int64_t images) {
  ConvProblem share = problem;
  share.batch = images;
  INTERP_ASSIGN_OR_RETURN(const auto desc, FilterGradDesc(share, dtype));
  if (parts_.empty()) {
    sum_desc_ = desc.diff_weights_desc();
    implementation_ = desc.impl_info_str();
  } else if (!(desc.diff_weights_desc() == sum_desc_)) {
    return Unimplemented("oneDNN wants filters of parts in different formats");
  }
  Part part;
  part.first_image = first;
  part.sum = memory(sum_desc_, Engine());
  part.primitive =
      std::make_unique<Primitive>(convolution_backward_weights(desc), desc.scratchpad_desc());
  part.in = part.primitive->AddArg(DNNL_ARG_SRC, desc.src_desc());
  part.out_grad = part.primitive->AddArg(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
  part.primitive->AddMemory(DNNL_ARG_DIFF_WEIGHTS, part.sum);
  scratchpad_bytes_ = std::max(scratchpad_bytes_, part.primitive->scratchpad_bytes());
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OnednnConvFilterGrad>> OnednnConvFilterGrad::Make(
    const ConvProblem& problem, int num_threads, DType dtype) {
  auto grad = std::make_unique<OnednnConvFilterGrad>();
  UseThreads(1);
  const absl::Status status = CatchErrors([&]() -> absl::Status {
    const ConvGeometry g = MakeGeometry(problem, /*bias=*/false, dtype);
    const int64_t images = std::max<int64_t>(problem.batch, 1);
    grad->in_image_bytes_ = static_cast<int64_t>(g.src.get_size()) / images;
    grad->out_image_bytes_ = static_cast<int64_t>(g.dst.get_size()) / images;
    const size_t sum_bytes = g.plain_filter.get_size() / SizeOf(dtype) * sizeof(float);
    const int64_t parts = CountParts(problem, sum_bytes);
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t first = problem.batch * i / parts;
      INTERP_RETURN_IF_ERROR(
          grad->AddPart(problem, dtype, first, problem.batch * (i + 1) / parts - first));
    }
    UseThreads(num_threads);
    grad->unpack_ = std::make_unique<FormatCopy>(grad->sum_desc_, g.plain_filter);
    return absl::OkStatus();
  });
  UseThreads(num_threads);
  if (!status.ok()) return status;
  return grad;
}

absl::Status OnednnConvFilterGrad::RunParts(const KernelContext& ctx, const void* in,
                                            const void* out_grad) {
  const int64_t count = std::ssize(parts_);
  const int64_t lanes = std::min<int64_t>(ctx.num_threads(), count);
  const size_t stride = (scratchpad_bytes_ + 63) / 64 * 64;
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(stride * static_cast<size_t>(lanes)));
  std::vector<absl::Status> statuses(static_cast<size_t>(lanes));
  ParallelFor(ctx.num_threads(), lanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    UseThreads(1);  // of a thread that is one of this loop's
    for (int64_t lane = begin; lane < end; ++lane) {
      for (int64_t i = count * lane / lanes; i < count * (lane + 1) / lanes; ++i) {
        Part& part = parts_[i];
        part.primitive->SetData(part.in,
                                static_cast<const char*>(in) + part.first_image * in_image_bytes_);
        part.primitive->SetData(part.out_grad, static_cast<const char*>(out_grad) +
                                                   part.first_image * out_image_bytes_);
        statuses[lane].Update(
            part.primitive->Execute(scratch.data<char>() + static_cast<size_t>(lane) * stride));
      }
    }
  });
  UseThreads(ctx.num_threads());
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

void OnednnConvFilterGrad::AddUp(int num_threads) {
  const int64_t size = static_cast<int64_t>(sum_desc_.get_size() / sizeof(float));
  auto* sum = static_cast<float*>(parts_[0].sum.get_data_handle());
  ParallelFor(num_threads, size, GrainFor(std::ssize(parts_)), [&](int64_t begin, int64_t end) {
    for (size_t p = 1; p < parts_.size(); ++p) {
      const auto* from = static_cast<const float*>(parts_[p].sum.get_data_handle());
      for (int64_t i = begin; i < end; ++i) sum[i] += from[i];
    }
  });
}

absl::Status OnednnConvFilterGrad::Run(const KernelContext& ctx, const void* in,
                                       const void* out_grad, void* filter_grad) {
  INTERP_RETURN_IF_ERROR(RunParts(ctx, in, out_grad));
  AddUp(ctx.num_threads());
  return unpack_->Run(ctx, parts_[0].sum, filter_grad);
}

}  // namespace interp::nn
