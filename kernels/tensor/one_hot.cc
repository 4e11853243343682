// one_hot_v2: Out[.., X[..]] = 1 along a new last dimension of length `depth`, 0 elsewhere.
// one_hot: the same for an X whose last dimension is 1, which the new one replaces.
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kDepthTensor = 1;
constexpr int kOut = 0;

struct OneHotAttrs {
  int64_t depth = 1;
  DType dtype = DType::kFloat32;
  bool allow_out_of_range = false;  // such an X gives zeros instead of an error
};

OneHotAttrs ReadOneHotAttrs(AttrReader& reader) {
  return {reader.Long("depth", 1), reader.Type("dtype", DType::kFloat32),
          reader.Bool("allow_out_of_range", false)};
}

DType OneHotDType(const DTypeContext& ctx) { return ctx.attrs<OneHotAttrs>().dtype; }

absl::Status SetOneHotShape(InferContext& ctx, int kept_dims) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int64_t depth, ReadInteger(ctx, kDepthTensor, "depth_tensor",
                                                           ctx.attrs<OneHotAttrs>().depth));
  if (depth <= 0) return InvalidArgument("depth is ", depth, ", expected at least 1");
  if (kept_dims == kMaxRank) return InvalidArgument("'X' has rank ", kMaxRank, " already");
  Shape shape;
  for (int i = 0; i < kept_dims; ++i) shape.push_back(x.shape[i]);
  shape.push_back(depth);
  ctx.SetShape(kOut, shape);
  ShareLod(x, ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status InferOneHotV2(InferContext& ctx) {
  return SetOneHotShape(ctx, ctx.input(kX).shape.rank());
}

absl::Status InferOneHot(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() == 0 || x.back() != 1) {
    return InvalidArgument("'X' has shape ", ToString(x), ", expected 1 as last dimension");
  }
  return SetOneHotShape(ctx, x.rank() - 1);
}

absl::Status OneHot(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const int64_t depth = out.shape.back();
  const size_t bytes = SizeOf(out.dtype);
  const ScalarBytes one = ToScalarBytes(out.dtype, int64_t{1});
  return WithIndices(x, "X", [&](const auto* values) {
    if (!ctx.attrs<OneHotAttrs>().allow_out_of_range) {
      INTERP_RETURN_IF_ERROR(CheckIndices(values, x.numel(), depth, "X"));
    }
    char* row = static_cast<char*>(out.mutable_raw_data());
    if (out.numel() > 0) std::memset(row, 0, out.size_bytes());
    for (int64_t i = 0; i < x.numel(); ++i, row += depth * bytes) {
      const int64_t hot = values[i];
      if (hot >= 0 && hot < depth) std::memcpy(row + hot * bytes, one.bytes.data(), bytes);
    }
    return absl::OkStatus();
  });
}

OpDef OneHotDef(absl::string_view type, absl::Status (*infer)(InferContext&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X", kAnyDType}, {"depth_tensor", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<OneHotAttrs, ReadOneHotAttrs>,
      .kernel_dtype = OneHotDType,
      .infer = infer,
      .kernels = {{DType::kUndefined, OneHot}},
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(OneHotDef("one_hot", InferOneHot));
INTERP_REGISTER_OP(OneHotDef("one_hot_v2", InferOneHotV2));

}  // namespace
}  // namespace interp
