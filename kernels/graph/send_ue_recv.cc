// graph_send_ue_recv: row v of Out = the sum, mean, largest or smallest of the messages
// X[Src_index[e]] op Y[e] over the edges e with Dst_index[e] = v; 0 without one. Rows of X and Y
// are broadcast against each other. Dst_count: of the mean, the number of edges.
// graph_send_ue_recv_grad: each message has the gradient of the row it went to; of a mean its part,
// of an extreme where it equals it.
#include "kernels/graph/messages.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/zeroed_output.h"

namespace interp::graph {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr EdgeSlots kEdges = {2, 3};
constexpr int kOutSize = 4;
constexpr int kOut = 0;
constexpr int kDstCount = 1;

struct SendAttrs {
  Reduce reduce = Reduce::kSum;
  bool multiplies = false;
  IntList out_size;
};

SendAttrs ReadSendAttrs(AttrReader& reader) {
  return {ReadReduce(reader, "reduce_op"), ReadMultiplies(reader),
          ReadIntListAttr(reader, "out_size")};
}

// The rows, once shapes and edges fit.
absl::StatusOr<Rows> CheckedRows(const OpContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEdges));
  const Shape& y = ctx.input(kY).shape;
  if (y.rank() == 0 || y[0] != ctx.input(kEdges.src).numel()) {
    return InvalidArgument("input 'Y' has shape ", ToString(y), ", expected one row for each of ",
                           ctx.input(kEdges.src).numel(), " edges");
  }
  return RowsOf(ctx.input(kX).shape, y);
}

Shape WithRows(int64_t count, const Rows& rows) {
  Shape shape = {count};
  for (const int64_t dim : rows.shape) shape.push_back(dim);
  return shape;
}

absl::Status InferSend(InferContext& ctx) {
  const SendAttrs& attrs = ctx.attrs<SendAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Rows rows, CheckedRows(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t count,
                          OutRows(ctx, kOutSize, attrs.out_size, ctx.input(kX).shape[0]));
  ctx.SetShape(kOut, WithRows(count, rows));
  ctx.SetShape(kDstCount, {attrs.reduce == Reduce::kMean ? count : 0});
  return absl::OkStatus();
}

template <typename T>
T MessageOf(bool multiplies, T a, T b) {
  return multiplies ? a * b : a + b;
}

template <typename T>
absl::Status Send(KernelContext& ctx) {
  const SendAttrs& attrs = ctx.attrs<SendAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Rows rows, CheckedRows(ctx));
  Tensor& out = ctx.output(kOut);
  const int64_t count = out.shape[0];
  FillZero(ctx.num_threads(), out);
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(count) * sizeof(int32_t)));
  int32_t* const counts = work.data<int32_t>();
  std::fill_n(counts, count, 0);
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  T* const to = out.mutable_data<T>();
  INTERP_RETURN_IF_ERROR(WithEdges(
      ctx, kEdges, ctx.input(kX).shape[0], count,
      [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
        for (int64_t e = 0; e < edges; ++e) {
          T* const row = to + dst[e] * rows.width;
          const bool first = counts[dst[e]]++ == 0;
          rows.ForEach([&](int64_t i, int64_t j, int64_t k) {
            const T message =
                MessageOf(attrs.multiplies, x[src[e] * rows.x_width + j], y[e * rows.y_width + k]);
            row[i] = first ? message : Joined(attrs.reduce, row[i], message);
          });
        }
        return absl::OkStatus();
      }));
  if (attrs.reduce == Reduce::kMean) {
    FinishMeans(counts, count, rows.width, to, ctx.optional_output(kDstCount));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_ue_recv",
    .inputs = {{"X"},
               {"Y"},
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
    .gradient = {.inputs = {"X", "Y", "Src_index", "Dst_index", "Out", "Dst_count", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD"}},
});

constexpr int kGradOut = 4;
constexpr int kGradCount = 5;
constexpr int kOutGrad = 6;

absl::Status InferSendGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Rows rows, CheckedRows(ctx));
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (grad.rank() == 0 || grad != WithRows(grad[0], rows)) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(grad), ", expected rows of ",
                           ToString(rows.shape));
  }
  INTERP_RETURN_IF_ERROR(CheckReduced(ctx.attrs<SendAttrs>().reduce, grad,
                                      ctx.optional_input(kGradOut),
                                      ctx.optional_input(kGradCount)));
  ctx.ShareShape(kX, kX);
  ctx.ShareShape(kY, kY);
  return absl::OkStatus();
}

// What one kernel reads and writes; gradients that nobody wants are null.
template <typename T>
struct SendGradients {
  const T* x;
  const T* y;
  const T* out;           // of an extreme
  const int32_t* counts;  // of a mean
  const T* grad;
  T* x_grad;
  T* y_grad;
};

// Of the message that edge `edge` takes from row `src` of X to row `dst` of Out.
template <typename T>
void AddEdge(const SendGradients<T>& g, const Rows& rows, bool multiplies, int64_t edge,
             int64_t src, int64_t dst) {
  const T divisor = g.counts == nullptr ? T{1} : static_cast<T>(std::max(g.counts[dst], 1));
  rows.ForEach([&](int64_t i, int64_t j, int64_t k) {
    const int64_t a = src * rows.x_width + j;
    const int64_t b = edge * rows.y_width + k;
    const int64_t at = dst * rows.width + i;
    if (g.out != nullptr && MessageOf(multiplies, g.x[a], g.y[b]) != g.out[at]) return;
    const T grad = g.grad[at] / divisor;
    if (g.x_grad != nullptr) g.x_grad[a] += multiplies ? grad * g.y[b] : grad;
    if (g.y_grad != nullptr) g.y_grad[b] += multiplies ? grad * g.x[a] : grad;
  });
}

template <typename T>
absl::Status SendGrad(KernelContext& ctx) {
  const SendAttrs& attrs = ctx.attrs<SendAttrs>();
  INTERP_ASSIGN_OR_RETURN(const Rows rows, CheckedRows(ctx));
  const bool extreme = attrs.reduce == Reduce::kMax || attrs.reduce == Reduce::kMin;
  const SendGradients<T> gradients = {
      ctx.input(kX).data<T>(),
      ctx.input(kY).data<T>(),
      extreme ? ctx.input(kGradOut).data<T>() : nullptr,
      attrs.reduce == Reduce::kMean ? ctx.input(kGradCount).data<int32_t>() : nullptr,
      ctx.input(kOutGrad).data<T>(),
      ZeroedOutput<T>(ctx, kX),
      ZeroedOutput<T>(ctx, kY)};
  return WithEdges(ctx, kEdges, ctx.input(kX).shape[0], ctx.input(kOutGrad).shape[0],
                   [&](const auto* src, const auto* dst, int64_t edges) -> absl::Status {
                     for (int64_t e = 0; e < edges; ++e) {
                       AddEdge(gradients, rows, attrs.multiplies, e, src[e], dst[e]);
                     }
                     return absl::OkStatus();
                   });
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_send_ue_recv_grad",
    .inputs = {{"X"},
               {"Y"},
               {"Src_index", kAnyDType},
               {"Dst_index", kAnyDType},
               {"Out", kOptional},
               {"Dst_count", kOptional | kAnyDType},
               {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}},
    .parse = ParseAttrs<SendAttrs, ReadSendAttrs>,
    .infer = InferSendGrad,
    .kernels = {{DType::kFloat32, SendGrad<float>}, {DType::kFloat64, SendGrad<double>}},
});

}  // namespace
}  // namespace interp::graph
