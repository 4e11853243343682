// graph_send_recv: row v of Out = the sum, mean, largest or smallest of the rows X[Src_index[e]]
// over the edges e with Dst_index[e] = v; 0 without one. Dst_count: of the mean, the number of
// edges. graph_send_recv_grad: a row of X gets the gradients of the rows that it went to; of a mean
// its part, of an extreme those elements that equal it.
#include "kernels/graph/messages.h"
#include "kernels/util/fill_zero.h"

namespace interp::graph {
namespace {

constexpr int kX = 0;
constexpr EdgeSlots kEdges = {1, 2};
constexpr int kOutSize = 3;
constexpr int kOut = 0;
constexpr int kDstCount = 1;

struct SendAttrs {
  Reduce reduce = Reduce::kSum;
  IntList out_size;
};

SendAttrs ReadSendAttrs(AttrReader& reader) {
  return {ReadReduce(reader, "reduce_op"), ReadIntListAttr(reader, "out_size")};
}

absl::Status InferSend(InferContext& ctx) {
  const SendAttrs& attrs = ctx.attrs<SendAttrs>();
  Shape shape = ctx.input(kX).shape;
  if (shape.rank() == 0) return InvalidArgument("input 'X' has no rows");
  INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEdges));
  INTERP_ASSIGN_OR_RETURN(shape[0], OutRows(ctx, kOutSize, attrs.out_size, shape[0]));
  ctx.SetShape(kOut, shape);
  ctx.SetShape(kDstCount, {attrs.reduce == Reduce::kMean ? shape[0] : 0});
  return absl::OkStatus();
}

template <typename T>
absl::Status Send(KernelContext& ctx) {
  const Reduce reduce = ctx.attrs<SendAttrs>().reduce;
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  const int64_t width = WidthOf(x.shape);
  const int64_t rows = out.shape[0];
  FillZero(ctx.num_threads(), out);
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(rows) * sizeof(int32_t)));
  int32_t* const counts = work.data<int32_t>();
  std::fill_n(counts, rows, 0);
  const T* const from = x.data<T>();
  T* const to = out.mutable_data<T>();
  INTERP_RETURN_IF_ERROR(
      WithEdges(ctx, kEdges, x.shape[0], rows,
                [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
                  for (int64_t e = 0; e < edges; ++e) {
                    const T* const message = from + src[e] * width;
                    T* const row = to + dst[e] * width;
                    const bool first = counts[dst[e]]++ == 0;
                    for (int64_t c = 0; c < width; ++c) {
                      row[c] = first ? message[c] : Joined(reduce, row[c], message[c]);
                    }
                  }
                  return absl::OkStatus();
                }));
  if (reduce == Reduce::kMean) {
    FinishMeans(counts, rows, width, to, ctx.optional_output(kDstCount));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_recv",
    .inputs = {{"X"},
               {"Src_index", kAnyDType},
               {"Dst_index", kAnyDType},
               {"Out_size", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}, {"Dst_count", kOptional}},
    .parse = ParseAttrs<SendAttrs, ReadSendAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kDstCount, DType::kInt32); },
    .infer = InferSend,
    .kernels = {{DType::kFloat32, Send<float>},
                {DType::kFloat64, Send<double>},
                {DType::kInt32, Send<int32_t>},
                {DType::kInt64, Send<int64_t>}},
    .gradient = {.inputs = {"X", "Src_index", "Dst_index", "Out", "Dst_count", "Out@GRAD"},
                 .outputs = {"X@GRAD"}},
});

constexpr int kGradOut = 3;
constexpr int kGradCount = 4;
constexpr int kOutGrad = 5;
constexpr int kXGrad = 0;

absl::Status InferSendGrad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (x.rank() == 0 || grad.rank() != x.rank() || WidthOf(grad) != WidthOf(x)) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(grad),
                           ", expected rows like those of 'X' ", ToString(x));
  }
  INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEdges));
  INTERP_RETURN_IF_ERROR(CheckReduced(ctx.attrs<SendAttrs>().reduce, grad,
                                      ctx.optional_input(kGradOut),
                                      ctx.optional_input(kGradCount)));
  ctx.ShareShape(kX, kXGrad);
  return absl::OkStatus();
}

template <typename T>
absl::Status SendGrad(KernelContext& ctx) {
  const Reduce reduce = ctx.attrs<SendAttrs>().reduce;
  const bool extreme = reduce == Reduce::kMax || reduce == Reduce::kMin;
  const Tensor& x = ctx.input(kX);
  const Tensor& grad = ctx.input(kOutGrad);
  const int64_t width = WidthOf(x.shape);
  FillZero(ctx.num_threads(), ctx.output(kXGrad));
  const T* const values = x.data<T>();
  const T* const outs = extreme ? ctx.input(kGradOut).data<T>() : nullptr;
  const int32_t* const counts =
      reduce == Reduce::kMean ? ctx.input(kGradCount).data<int32_t>() : nullptr;
  const T* const grads = grad.data<T>();
  T* const to = ctx.output(kXGrad).mutable_data<T>();
  return WithEdges(ctx, kEdges, x.shape[0], grad.shape[0],
                   [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
                     for (int64_t e = 0; e < edges; ++e) {
                       const int64_t in = src[e] * width;
                       const int64_t out = dst[e] * width;
                       const T divisor =
                           counts == nullptr ? T{1} : static_cast<T>(std::max(counts[dst[e]], 1));
                       for (int64_t c = 0; c < width; ++c) {
                         if (extreme && values[in + c] != outs[out + c]) continue;
                         to[in + c] += grads[out + c] / divisor;
                       }
                     }
                     return absl::OkStatus();
                   });
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_recv_grad",
    .inputs = {{"X"},
               {"Src_index", kAnyDType},
               {"Dst_index", kAnyDType},
               {"Out", kOptional},
               {"Dst_count", kOptional | kAnyDType},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD"}},
    .parse = ParseAttrs<SendAttrs, ReadSendAttrs>,
    .infer = InferSendGrad,
    .kernels = {{DType::kFloat32, SendGrad<float>}, {DType::kFloat64, SendGrad<double>}},
});

}  // namespace
}  // namespace interp::graph
