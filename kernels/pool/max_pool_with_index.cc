// max_pool2d_with_index, max_pool3d_with_index: the maximum of each window, and in Mask where in
// the image's plane (or volume) its first occurrence lies. A window without a value (all NaN)
// gives the least finite float, for float64 as well, and -1.
#include <limits>

#include "core/op_def.h"
#include "kernels/pool/max_pool_index.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kMask = 1;

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const PoolShapes shapes, ResolveIndexPool(ctx.attrs<PoolAttrs>(), x));
  if (x.numel(2, x.rank()) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", more pixels than 32-bit positions");
  }
  ctx.SetShape(kOut, shapes.out);
  ctx.SetShape(kMask, shapes.out);
  return absl::OkStatus();
}

void InferTypes(DTypeContext& ctx) { ctx.Set(kMask, DType::kInt32); }

template <typename T>
void PoolWindow(const Pool& pool, const PoolAxis::Range (&covers)[3], const T* plane, T& out,
                int32_t& mask) {
  out = std::numeric_limits<float>::lowest();
  mask = -1;
  for (int64_t z = covers[0].begin; z < covers[0].end; ++z) {
    for (int64_t y = covers[1].begin; y < covers[1].end; ++y) {
      const int64_t row = (z * pool.axes[1].window.in + y) * pool.axes[2].window.in;
      for (int64_t i = row + covers[2].begin; i < row + covers[2].end; ++i) {
        if (!(out < plane[i])) continue;
        out = plane[i];
        mask = static_cast<int32_t>(i);
      }
    }
  }
}

template <typename T>
void PoolPlane(const Pool& pool, const T* plane, T* out, int32_t* mask) {
  PoolAxis::Range covers[3];
  int64_t at = 0;
  for (int64_t z = 0; z < pool.axes[0].window.out; ++z) {
    covers[0] = pool.axes[0].Cover(z, true);
    for (int64_t y = 0; y < pool.axes[1].window.out; ++y) {
      covers[1] = pool.axes[1].Cover(y, true);
      for (int64_t x = 0; x < pool.axes[2].window.out; ++x, ++at) {
        covers[2] = pool.axes[2].Cover(x, true);
        PoolWindow(pool, covers, plane, out[at], mask[at]);
      }
    }
  }
}

template <typename T>
absl::Status MaxPool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Pool pool, MakeIndexPool(ctx.attrs<PoolAttrs>(), x));
  const int64_t in = PlaneSize(x.shape), out = PlaneSize(ctx.output(kOut).shape);
  const T* const from = x.data<T>();
  T* const to = ctx.output(kOut).mutable_data<T>();
  int32_t* const mask = ctx.output(kMask).mutable_data<int32_t>();
  const int64_t grain = GrainFor(4 * in);
  ParallelFor(ctx.num_threads(), pool.batch * pool.channels, grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  PoolPlane(pool, from + i * in, to + i * out, mask + i * out);
                }
              });
  return absl::OkStatus();
}

OpDef PoolDef(absl::string_view type, absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = {{"Out"}, {"Mask"}},
      .parse = parse,
      .infer_dtype = InferTypes,
      .infer = Infer,
      .kernels = {{DType::kFloat32, MaxPool<float>}, {DType::kFloat64, MaxPool<double>}},
      .gradient = {.inputs = {"X", "Mask", "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

INTERP_REGISTER_OP(PoolDef("max_pool2d_with_index", ParseAttrs<PoolAttrs, ReadPool2d>));
INTERP_REGISTER_OP(PoolDef("max_pool3d_with_index", ParseAttrs<PoolAttrs, ReadPool3d>));

}  // namespace
}  // namespace interp::nn
