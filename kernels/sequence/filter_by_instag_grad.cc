// filter_by_instag_grad: the rows of Out@GRAD go back to where IndexMap says they were in Ins; all
// others are 0, and so is everything when nothing was left (a single LossWeight of 0).
#include <algorithm>
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kIns = 0;
constexpr int kIndexMap = 1;
constexpr int kLossWeight = 2;
constexpr int kOutGrad = 3;
constexpr int kInsGrad = 0;
constexpr int64_t kMapWidth = 3;

absl::Status InferFilterGrad(InferContext& ctx) {
  const Shape& ins = ctx.input(kIns).shape;
  const Shape& grad = ctx.input(kOutGrad).shape;
  const Tensor& map = ctx.input(kIndexMap);
  if (ins.rank() != 2 || grad.rank() != 2 || grad[1] != ins[1]) {
    return InvalidArgument("inputs 'Ins' ", ToString(ins), " and 'Out@GRAD' ", ToString(grad),
                           ": expected matrices with the same number of columns");
  }
  if (map.dtype != DType::kInt64 || map.shape.rank() != 2 || map.shape[1] != kMapWidth) {
    return InvalidArgument("input 'IndexMap' is ", DescribeType(map), ", expected int64[N,3]");
  }
  if (ctx.input(kLossWeight).numel() != map.shape[0]) {
    return InvalidArgument("input 'LossWeight' has shape ", ToString(ctx.input(kLossWeight).shape),
                           ", expected ", map.shape[0], " elements");
  }
  ctx.ShareShape(kIns, kInsGrad);
  return absl::OkStatus();
}

// Whether `count` rows from `begin` on are among `rows`.
bool AreInside(int64_t begin, int64_t count, int64_t rows) {
  return begin >= 0 && count >= 0 && begin <= rows && count <= rows - begin;
}

absl::Status FilterByInstagGrad(KernelContext& ctx) {
  Tensor* const ins_grad = ctx.optional_output(kInsGrad);
  if (ins_grad == nullptr || ins_grad->numel() == 0) return absl::OkStatus();
  const Tensor& grad = ctx.input(kOutGrad);
  const Tensor& weight = ctx.input(kLossWeight);
  std::memset(ins_grad->mutable_raw_data(), 0, ins_grad->size_bytes());
  if (weight.numel() == 1 && weight.data<float>()[0] == 0) return absl::OkStatus();
  const auto row_bytes = RowSize(grad) * static_cast<int64_t>(SizeOf(grad.dtype));
  const auto* map = ctx.input(kIndexMap).data<int64_t>();
  for (int64_t i = 0; i < ctx.input(kIndexMap).shape[0]; ++i, map += kMapWidth) {
    const int64_t from = map[0];
    const int64_t to = map[1];
    const int64_t rows = map[2];
    if (!AreInside(from, rows, grad.shape[0]) || !AreInside(to, rows, ins_grad->shape[0])) {
      return InvalidArgument("row ", i, " of input 'IndexMap' takes ", rows, " rows from ", from,
                             " to ", to, ", but 'Out@GRAD' has ", grad.shape[0], " and 'Ins' ",
                             ins_grad->shape[0]);
    }
    if (rows == 0) continue;
    std::memcpy(static_cast<char*>(ins_grad->mutable_raw_data()) + to * row_bytes,
                static_cast<const char*>(grad.raw_data()) + from * row_bytes, rows * row_bytes);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "filter_by_instag_grad",
    .inputs =
        {{"Ins", kNoNeedBuffer}, {"IndexMap", kAnyDType}, {"LossWeight", kAnyDType}, {"Out@GRAD"}},
    .outputs = {{"Ins@GRAD", kOptional}},
    .infer = InferFilterGrad,
    .kernels = {{DType::kFloat32, FilterByInstagGrad}, {DType::kFloat64, FilterByInstagGrad}},
});

}  // namespace
}  // namespace interp
