// fused_seqpool_cvm: for each X, the sums over the rows of each sequence, plus pad_value, then as
// in cvm: with `use_cvm`, the show and click counts in front become their logarithms, without, they
// are left out.
// fused_seqpool_cvm_grad: each row of X@GRAD is that of Out@GRAD of its sequence; in place of the
// counts stand those of CVM, which is no derivative but what Paddle's trainers count with.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/sequence/pool_sequence.h"
#include "kernels/tensor/cvm.h"
#include "kernels/util/all_present.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/read_choice.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kCvm = 1;
constexpr int kOut = 0;
// Of the gradient.
constexpr int kOutGrad = 2;
constexpr int kXGrad = 0;
constexpr int kCvmGrad = 1;

struct Attrs {
  float pad_value = 0;
  bool use_cvm = true;
};

Attrs ReadAttrs(AttrReader& reader) {
  ReadChoiceIndex(reader, "pooltype", {"SUM"});
  const int32_t counts = reader.Int("cvm_offset", kCvmCounts);
  if (counts != kCvmCounts) {
    reader.Fail(absl::StrCat("attribute 'cvm_offset' is ", counts, ", expected 2"));
  }
  return {reader.Float("pad_value", 0), reader.Bool("use_cvm", true)};
}

// The shape of the result of `x`.
absl::StatusOr<Shape> PooledShape(const OpContext& ctx, const Tensor& x) {
  if (x.shape.rank() != 2 || x.shape[1] < kCvmCounts) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape),
                           ", expected [rows, 2 or more]");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  const int64_t left_out = ctx.attrs<Attrs>().use_cvm ? 0 : kCvmCounts;
  return Shape{SequenceCount(offsets), x.shape[1] - left_out};
}

absl::Status CheckCount(size_t count, size_t expected, absl::string_view name) {
  if (count == expected) return absl::OkStatus();
  return InvalidArgument("there are ", count, " '", name, "' for ", expected, " inputs 'X'");
}

absl::Status Infer(InferContext& ctx) {
  const auto xs = ctx.inputs(kX);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(xs, "X"));
  INTERP_RETURN_IF_ERROR(CheckCount(ctx.outputs(kOut).size(), xs.size(), "Out"));
  for (size_t i = 0; i < xs.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const Shape shape, PooledShape(ctx, *xs[i]));
    Tensor* const out = ctx.outputs(kOut)[i];
    if (out == nullptr) continue;
    out->shape = shape;
    out->lod.clear();
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status PoolCvm(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  int64_t widest = 0;
  for (const Tensor* const x : ctx.inputs(kX)) widest = std::max(widest, x->shape[1]);
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(widest) * sizeof(T)));
  T* const sum = memory.data<T>();
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    const Tensor& x = *ctx.inputs(kX)[i];
    const Offsets offsets = x.lod.back();
    const int64_t width = x.shape[1];
    if (ctx.outputs(kOut)[i] == nullptr) continue;
    T* out = ctx.outputs(kOut)[i]->template mutable_data<T>();
    for (int64_t n = 0; n < SequenceCount(offsets); ++n) {
      PoolSequence(Pooling::kSum, x.data<T>() + offsets[n] * width, offsets[n + 1] - offsets[n],
                   width, sum);
      for (int64_t k = 0; k < width; ++k) sum[k] += static_cast<T>(attrs.pad_value);
      if (attrs.use_cvm) {
        LogCounts(sum, out);
        out += kCvmCounts;
      }
      out = std::copy(sum + kCvmCounts, sum + width, out);
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_seqpool_cvm",
    .inputs = {{"X", kVariadic}, {"CVM", kNoNeedBuffer | kAnyDType}},
    .outputs = {{"Out", kVariadic}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PoolCvm<float>}, {DType::kFloat64, PoolCvm<double>}},
    .gradient = {.inputs = {"X", "CVM", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferGrad(InferContext& ctx) {
  const auto xs = ctx.inputs(kX);
  const auto grads = ctx.inputs(kOutGrad);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(xs, "X"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(grads, "Out@GRAD"));
  INTERP_RETURN_IF_ERROR(CheckCount(grads.size(), xs.size(), "Out@GRAD"));
  INTERP_RETURN_IF_ERROR(CheckCount(ctx.outputs(kXGrad).size(), xs.size(), "X@GRAD"));
  const Shape& counts = ctx.input(kCvm).shape;
  for (size_t i = 0; i < xs.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const Shape expected, PooledShape(ctx, *xs[i]));
    INTERP_RETURN_IF_ERROR(CheckInputShape(*grads[i], "Out@GRAD", expected));
    if (!(counts == Shape{expected[0], kCvmCounts})) {
      return InvalidArgument("input 'CVM' has shape ", ToString(counts), ", expected [",
                             expected[0], ",2]");
    }
    Tensor* const x_grad = ctx.outputs(kXGrad)[i];
    if (x_grad == nullptr) continue;
    x_grad->shape = xs[i]->shape;
    x_grad->lod = xs[i]->lod;
  }
  ctx.SetShape(kCvmGrad, {0});  // counts are data
  return absl::OkStatus();
}

template <typename T>
absl::Status PoolCvmGrad(KernelContext& ctx) {
  const int64_t skipped = ctx.attrs<Attrs>().use_cvm ? kCvmCounts : 0;
  const T* const counts = ctx.input(kCvm).data<T>();
  for (size_t i = 0; i < ctx.inputs(kX).size(); ++i) {
    Tensor* const x_grad = ctx.outputs(kXGrad)[i];
    if (x_grad == nullptr) continue;
    const Tensor& grad = *ctx.inputs(kOutGrad)[i];
    const int64_t width = x_grad->shape[1] - kCvmCounts;
    T* out = x_grad->mutable_data<T>();
    const Offsets offsets = ctx.inputs(kX)[i]->lod.back();
    for (int64_t n = 0; n < SequenceCount(offsets); ++n) {
      for (int64_t row = offsets[n]; row < offsets[n + 1]; ++row) {
        out = std::copy_n(counts + n * kCvmCounts, kCvmCounts, out);
        out = std::copy_n(grad.data<T>() + n * grad.shape[1] + skipped, width, out);
      }
    }
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "fused_seqpool_cvm_grad",
    .inputs = {{"X", kVariadic | kNoNeedBuffer | kAnyDType}, {"CVM"}, {"Out@GRAD", kVariadic}},
    .outputs = {{"X@GRAD", kVariadic}, {"CVM@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernel_dtype = [](const DTypeContext& ctx) { return ctx.input(kOutGrad); },
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, PoolCvmGrad<float>}, {DType::kFloat64, PoolCvmGrad<double>}},
});

}  // namespace
}  // namespace interp
