// graph_send_uv: row e of out = x[src_index[e]] op y[dst_index[e]] for op + or *, rows broadcast
// against each other. graph_send_uv_grad: its gradients.
#include "kernels/graph/messages.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/zeroed_output.h"

namespace interp::graph {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr EdgeSlots kEdges = {2, 3};
constexpr int kOut = 0;

struct MessageAttrs {
  bool multiplies = false;
};

MessageAttrs ReadMessageAttrs(AttrReader& reader) { return {ReadMultiplies(reader)}; }

Shape OutShape(const OpContext& ctx, const Rows& rows) {
  Shape out = {ctx.input(kEdges.src).numel()};
  for (const int64_t dim : rows.shape) out.push_back(dim);
  return out;
}

absl::Status InferSendUv(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEdges));
  INTERP_ASSIGN_OR_RETURN(const Rows rows, RowsOf(ctx.input(kX).shape, ctx.input(kY).shape));
  ctx.SetShape(kOut, OutShape(ctx, rows));
  return absl::OkStatus();
}

template <typename T>
absl::Status SendUv(KernelContext& ctx) {
  const bool multiplies = ctx.attrs<MessageAttrs>().multiplies;
  INTERP_ASSIGN_OR_RETURN(const Rows rows, RowsOf(ctx.input(kX).shape, ctx.input(kY).shape));
  const Tensor& y = ctx.input(kY);
  const T* const xs = ctx.input(kX).data<T>();
  const T* const ys = y.data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  return WithEdges(ctx, kEdges, ctx.input(kX).shape[0], y.shape[0],
                   [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
                     for (int64_t e = 0; e < edges; ++e) {
                       const T* const a = xs + src[e] * rows.x_width;
                       const T* const b = ys + dst[e] * rows.y_width;
                       T* const row = out + e * rows.width;
                       rows.ForEach([=](int64_t i, int64_t j, int64_t k) {
                         row[i] = multiplies ? a[j] * b[k] : a[j] + b[k];
                       });
                     }
                     return absl::OkStatus();
                   });
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_uv",
    .inputs = {{"x"}, {"y"}, {"src_index", kAnyDType}, {"dst_index", kAnyDType}},
    .outputs = {{"out"}},
    .parse = ParseAttrs<MessageAttrs, ReadMessageAttrs>,
    .infer = InferSendUv,
    .kernels = {{DType::kFloat32, SendUv<float>},
                {DType::kFloat64, SendUv<double>},
                {DType::kInt32, SendUv<int32_t>},
                {DType::kInt64, SendUv<int64_t>}},
    .gradient = {.inputs = {"x", "y", "src_index", "dst_index", "out@GRAD"},
                 .outputs = {"x@GRAD", "y@GRAD"}},
});

constexpr int kOutGrad = 4;

absl::Status InferSendUvGrad(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEdges));
  INTERP_ASSIGN_OR_RETURN(const Rows rows, RowsOf(ctx.input(kX).shape, ctx.input(kY).shape));
  const Shape expected = OutShape(ctx, rows);
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kOutGrad, "out@GRAD", expected));
  ctx.ShareShape(kX, kX);
  ctx.ShareShape(kY, kY);
  return absl::OkStatus();
}

template <typename T>
absl::Status SendUvGrad(KernelContext& ctx) {
  const bool multiplies = ctx.attrs<MessageAttrs>().multiplies;
  INTERP_ASSIGN_OR_RETURN(const Rows rows, RowsOf(ctx.input(kX).shape, ctx.input(kY).shape));
  const T* const xs = ctx.input(kX).data<T>();
  const T* const ys = ctx.input(kY).data<T>();
  const T* const grads = ctx.input(kOutGrad).data<T>();
  T* const x_grad = ZeroedOutput<T>(ctx, kX);
  T* const y_grad = ZeroedOutput<T>(ctx, kY);
  return WithEdges(ctx, kEdges, ctx.input(kX).shape[0], ctx.input(kY).shape[0],
                   [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
                     for (int64_t e = 0; e < edges; ++e) {
                       const int64_t a = src[e] * rows.x_width;
                       const int64_t b = dst[e] * rows.y_width;
                       const T* const row = grads + e * rows.width;
                       rows.ForEach([&](int64_t i, int64_t j, int64_t k) {
                         const T grad = row[i];
                         if (x_grad != nullptr) {
                           x_grad[a + j] += multiplies ? grad * ys[b + k] : grad;
                         }
                         if (y_grad != nullptr) {
                           y_grad[b + k] += multiplies ? grad * xs[a + j] : grad;
                         }
                       });
                     }
                     return absl::OkStatus();
                   });
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_uv_grad",
    .inputs = {{"x"}, {"y"}, {"src_index", kAnyDType}, {"dst_index", kAnyDType}, {"out@GRAD"}},
    .outputs = {{"x@GRAD", kOptional}, {"y@GRAD", kOptional}},
    .parse = ParseAttrs<MessageAttrs, ReadMessageAttrs>,
    .infer = InferSendUvGrad,
    .kernels = {{DType::kFloat32, SendUvGrad<float>}, {DType::kFloat64, SendUvGrad<double>}},
});

}  // namespace
}  // namespace interp::graph
