// gather_nd: the last dimension of Index holds coordinates into the first dimensions of X; Out has
// what of X is left there, in the shape of Index without its last dimension.
// scatter_nd_add: Out = X with Updates added at such coordinates.
#include "core/op_def.h"
#include "kernels/tensor/coordinates.h"
#include "kernels/util/copy.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kIndex = 1;
constexpr int kUpdates = 2;
constexpr int kOut = 0;

absl::Status InferGatherNd(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Shape shape, AddressedShape(x.shape, ctx.input(kIndex).shape));
  ctx.SetShape(kOut, shape);
  ShareLod(x, ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status GatherNd(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& index = ctx.input(kIndex);
  const int depth = static_cast<int>(index.shape.back());
  const size_t bytes = x.shape.numel(depth, x.shape.rank()) * SizeOf(x.dtype);
  const char* const src = static_cast<const char*>(x.raw_data());
  char* const dst = static_cast<char*>(ctx.output(kOut).mutable_raw_data());
  return WithIndices(index, "Index", [&](const auto* values) {
    return ForEachTuple(x.shape, index, values, [&](int64_t n, int64_t row) {
      if (bytes > 0) std::memcpy(dst + n * bytes, src + row * bytes, bytes);
    });
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "gather_nd",
    .inputs = {{"X"}, {"Index", kAnyDType}},
    .outputs = {{"Out"}},
    .infer = InferGatherNd,
    .kernels = {{DType::kUndefined, GatherNd}},
    .gradient = {.inputs = {"X", "Index", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

absl::Status InferScatterNdAdd(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Shape shape, AddressedShape(x.shape, ctx.input(kIndex).shape));
  if (!(ctx.input(kUpdates).shape == shape)) {
    return InvalidArgument("'Updates' has shape ", ToString(ctx.input(kUpdates).shape),
                           ", expected ", ToString(shape));
  }
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status ScatterNdAdd(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& index = ctx.input(kIndex);
  CopyUnlessShared(x, ctx.output(kOut));
  const int64_t length = x.shape.numel(static_cast<int>(index.shape.back()), x.shape.rank());
  const T* const updates = ctx.input(kUpdates).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  return WithIndices(index, "Index", [&](const auto* values) {
    return ForEachTuple(x.shape, index, values, [&](int64_t n, int64_t row) {
      const T* const from = updates + n * length;
      T* const to = out + row * length;
      for (int64_t i = 0; i < length; ++i) to[i] = static_cast<T>(to[i] + from[i]);
    });
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "scatter_nd_add",
    .inputs = {{"X"}, {"Index", kAnyDType}, {"Updates"}},
    .outputs = {{"Out"}},
    .infer = InferScatterNdAdd,
    .kernels = {{DType::kFloat32, ScatterNdAdd<float>},
                {DType::kFloat64, ScatterNdAdd<double>},
                {DType::kInt32, ScatterNdAdd<int32_t>},
                {DType::kInt64, ScatterNdAdd<int64_t>},
                {DType::kUInt8, ScatterNdAdd<uint8_t>}},
    .inplace = {{kX, kOut}},
    .gradient = {.inputs = {"Index", "Updates", "Out@GRAD"}, .outputs = {"X@GRAD", "Updates@GRAD"}},
});

}  // namespace
}  // namespace interp
