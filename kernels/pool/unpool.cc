// unpool, unpool3d: zeros, but for the elements of X, which go where Indices says in the plane (or
// volume) of their channel. Of two at one place the last one stays.
#include "kernels/pool/unpool.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = kUnpoolX;
constexpr int kIndices = kUnpoolIndices;
constexpr IntSlots kSize = {.name = "output_size", .tensor = 2, .list = 3};
constexpr int kOut = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveUnpool(ctx, kSize));
  ctx.SetShape(kOut, out);
  ctx.output(kOut).lod = ctx.input(kX).lod;
  return absl::OkStatus();
}

template <typename T, typename Index>
absl::Status Scatter(KernelContext& ctx, const Index* indices) {
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const int64_t in_plane = PlaneSize(x.shape), out_plane = PlaneSize(out.shape);
  INTERP_RETURN_IF_ERROR(CheckIndices(indices, x.numel(), out_plane, "Indices"));
  const T* const from = x.data<T>();
  T* const to = out.mutable_data<T>();
  const int64_t grain = GrainFor(out_plane);
  ParallelFor(ctx.num_threads(), x.shape.numel(0, 2), grain, [=](int64_t begin, int64_t end) {
    std::fill(to + begin * out_plane, to + end * out_plane, T{0});
    for (int64_t i = begin * in_plane; i < end * in_plane; ++i) {
      to[i / in_plane * out_plane + indices[i]] = from[i];
    }
  });
  return absl::OkStatus();
}

template <typename T>
absl::Status Unpool(KernelContext& ctx) {
  return WithIndices(ctx.input(kIndices), "Indices",
                     [&](const auto* indices) { return Scatter<T>(ctx, indices); });
}

OpDef UnpoolDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  constexpr int kSizeFlags = kOptional | kValueInInfer | kAnyDType;
  return OpDef{
      .type = type,
      .inputs = {{"X"},
                 {"Indices", kAnyDType},
                 {"OutputSizeTensor", kSizeFlags, "output_size"},
                 {"OutputSizeTensorList", kSizeFlags | kVariadic, "output_size"}},
      .outputs = {{"Out"}},
      .parse = parse,
      .infer = Infer,
      .kernels = {{DType::kFloat32, Unpool<float>}, {DType::kFloat64, Unpool<double>}},
      .gradient = {.inputs = {"X", "Indices", "OutputSizeTensor", "OutputSizeTensorList", "Out",
                              "Out@GRAD"},
                   .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(UnpoolDef("unpool", ParseAttrs<UnpoolAttrs, ReadUnpool<2>>));
INTERP_REGISTER_OP(UnpoolDef("unpool3d", ParseAttrs<UnpoolAttrs, ReadUnpool<3>>));

}  // namespace

absl::StatusOr<Shape> ResolveUnpool(const OpContext& ctx, const IntSlots& size_slots) {
  const auto& attrs = ctx.attrs<UnpoolAttrs>();
  const Tensor& x = ctx.input(kUnpoolX);
  if (x.shape.rank() != attrs.rank + 2) {
    return InvalidArgument("input 'X' has shape ", ToString(x.shape), ", expected ", attrs.rank + 2,
                           " dims");
  }
  INTERP_RETURN_IF_ERROR(CheckPositionsType(ctx.input(kUnpoolIndices), "Indices", x.shape));
  const absl::Span<const int64_t> in = x.shape.dims().subspan(2);
  INTERP_ASSIGN_OR_RETURN(const Window window, ResolveWindow(attrs.window, in, attrs.kernel));
  INTERP_ASSIGN_OR_RETURN(const IntList size, ReadIntList(ctx, size_slots, attrs.output_size));
  if (!size.empty() && static_cast<int>(size.size()) != attrs.rank) {
    return InvalidArgument("output_size [", absl::StrJoin(size, ","), "], expected ", attrs.rank,
                           " values");
  }
  Shape out = x.shape;
  for (int i = 0; i < attrs.rank; ++i) {
    const WindowAxis& axis = window[i];
    out[i + 2] = size.empty()
                     ? (axis.in - 1) * axis.stride - axis.pad_begin - axis.pad_end + axis.kernel
                     : size[i];
  }
  if (!out.CheckedNumel().has_value()) {
    return InvalidArgument("the output ", ToString(out), " has a negative dim or is too large");
  }
  return out;
}

}  // namespace interp::nn
