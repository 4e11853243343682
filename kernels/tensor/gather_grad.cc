// gather_grad, index_select_grad: X@GRAD = 0, plus the entries of Out@GRAD added where Index says
// that they come from, along `axis` (`dim`).
//
// With an `axis` behind the first dimension gather_grad takes Out@GRAD's first block, the entries
// of index 0 in the dimensions before `axis`, for all blocks. So does Paddle up to 2.6 (on the
// host), and training that it started goes on as it would there. index_select_grad is right.
#include <complex>
#include <cstring>

#include "core/op_def.h"
#include "kernels/tensor/gather.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_rows.h"
#include "kernels/util/indices.h"
#include "kernels/util/row_add.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOutGrad = 0;
constexpr int kX = 1;
constexpr int kIndex = 2;
constexpr int kAxis = 3;
constexpr int kXGrad = 0;

absl::Status InferGatherGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& index = ctx.input(kIndex).shape;
  const Shape& given = ctx.input(kOutGrad).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, kX, kAxis));
  Shape expected;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) {
      expected.push_back(x[i]);
    } else if (index.rank() > 0) {
      expected.push_back(index.numel());
    }
  }
  if (!(given == expected)) {
    return InvalidArgument("'Out@GRAD' has shape ", ToString(given), ", expected ",
                           ToString(expected));
  }
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

// Copies the first of `rows.outer` blocks of `grad` to the others.
void RepeatFirstBlock(const AddedRows& rows, Tensor& grad) {
  const size_t bytes = static_cast<size_t>(rows.rows * rows.columns) * SizeOf(grad.dtype);
  char* const first = static_cast<char*>(grad.mutable_raw_data());
  for (int64_t block = 1; block < rows.outer; ++block) {
    std::memcpy(first + static_cast<size_t>(block) * bytes, first, bytes);
  }
}

template <typename T, bool kFirstBlockForAll>
absl::Status GatherGrad(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, GatherAxis(ctx, kX, kAxis));
  const Tensor& index = ctx.input(kIndex);
  Tensor& x_grad = ctx.output(kXGrad);
  const Shape& shape = x_grad.shape;
  const AddedRows rows = {.outer = shape.numel(0, axis),
                          .rows = shape[axis],
                          .columns = shape.numel(axis + 1, shape.rank())};
  return WithIndices(index, "Index", [&](const auto* values) {
    INTERP_RETURN_IF_ERROR(CheckIndices(values, index.numel(), rows.rows, "Index"));
    FillZero(ctx.num_threads(), x_grad);
    if (x_grad.numel() == 0) return absl::OkStatus();
    AddedRows added = rows;
    if (kFirstBlockForAll) added.outer = 1;
    AddRows(ctx.num_threads(), added, ctx.input(kOutGrad).data<T>(), values, index.numel(),
            x_grad.mutable_data<T>());
    if (kFirstBlockForAll) RepeatFirstBlock(rows, x_grad);
    return absl::OkStatus();
  });
}

template <bool kFirstBlockForAll>
OpDef GatherGradDef(absl::string_view type,
                    absl::StatusOr<ParsedAttrs> (*parse)(AttrReader& reader)) {
  return OpDef{
      .type = type,
      .inputs = {{"Out@GRAD"},
                 {"X", kNoNeedBuffer | kAnyDType | kAnyLayout},
                 {"Index", kAnyDType},
                 {"Axis", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"X@GRAD"}},
      .parse = parse,
      .infer = InferGatherGrad,
      .kernels =
          GradientRows([]<typename T>() -> KernelFn { return GatherGrad<T, kFirstBlockForAll>; }),
  };
}

OpDef IndexSelectGradDef() {
  OpDef def = GatherGradDef<false>("index_select_grad", ParseAttrs<GatherAttrs, ReadSelectAttrs>);
  def.kernels.push_back({DType::kComplex64, GatherGrad<std::complex<float>, false>});
  def.kernels.push_back({DType::kComplex128, GatherGrad<std::complex<double>, false>});
  return def;
}

INTERP_REGISTER_OP(GatherGradDef<true>("gather_grad", ParseAttrs<GatherAttrs, ReadGatherAttrs>));
INTERP_REGISTER_OP(IndexSelectGradDef());

}  // namespace
}  // namespace interp
