// skip_layernorm: layer_norm(X + Y), as Paddle's inference passes fuse it.
// fused_embedding_eltwise_layernorm: layer_norm of the sum of one row of each of the tables Embs,
// those that Ids say; [B,S] or [B,S,1] ids give [B,S,H].
#include <algorithm>

#include "core/op_def.h"
#include "kernels/norm/layer_norm_row.h"
#include "kernels/util/all_present.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/indices.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kOut = 0;

namespace skip {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kScale = 2;
constexpr int kBias = 3;

struct Attrs {
  float epsilon = 1e-5f;
  int64_t begin = 2;
};

Attrs Read(AttrReader& reader) {
  const Attrs attrs = {reader.Float("epsilon", 1e-5f), reader.Int("begin_norm_axis", 2)};
  if (attrs.begin < 1) reader.Fail(absl::StrCat("attribute 'begin_norm_axis' is ", attrs.begin));
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const int64_t begin = ctx.attrs<Attrs>().begin;
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, kY, "Y", kX, "X"));
  if (begin >= x.rank()) {
    return InvalidArgument("attribute 'begin_norm_axis' is ", begin, " for input 'X' ",
                           ToString(x));
  }
  const int64_t columns = x.numel(static_cast<int>(begin), x.rank());
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kScale, "Scale", columns));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kBias, "Bias", columns));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  const Shape& shape = ctx.input(kX).shape;
  if (shape.numel() == 0) return absl::OkStatus();
  const int64_t n = ctx.input(kScale).numel();
  const int64_t rows = shape.numel(0, static_cast<int>(attrs.begin));
  const T epsilon = static_cast<T>(attrs.epsilon);
  const T* const x = ctx.input(kX).data<T>();
  const T* const y = ctx.input(kY).data<T>();
  const T* const scale = ctx.input(kScale).data<T>();
  const T* const bias = ctx.input(kBias).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  const int64_t grain = GrainFor(4 * n);
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const to = out + row * n;
      for (int64_t i = 0; i < n; ++i) to[i] = x[row * n + i] + y[row * n + i];
      LayerNormRow(to, n, epsilon, scale, bias, to);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "skip_layernorm",
    .inputs = {{"X"}, {"Y"}, {"Scale"}, {"Bias"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
    .inplace = {{kX, kOut}, {kY, kOut}},
});

}  // namespace skip

namespace embedding {

constexpr int kIds = 0;
constexpr int kEmbs = 1;
constexpr int kBias = 2;
constexpr int kScale = 3;

struct Attrs {
  float epsilon = 1e-5f;
};

Attrs Read(AttrReader& reader) { return {reader.Float("epsilon", 1e-5f)}; }

absl::Status Infer(InferContext& ctx) {
  const auto ids = ctx.inputs(kIds), embs = ctx.inputs(kEmbs);
  if (ids.empty() || ids.size() != embs.size()) {
    return InvalidArgument("there are ", ids.size(), " Ids and ", embs.size(),
                           " Embs, expected as many");
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ids, "Ids"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(embs, "Embs"));
  const Shape& first = ids[0]->shape;
  if (first.rank() != 2 && !(first.rank() == 3 && first[2] == 1)) {
    return InvalidArgument("input 'Ids' has shape ", ToString(first),
                           ", expected [B,S] or [B,S,1]");
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const Shape& table = embs[i]->shape;
    if (!(ids[i]->shape == first)) {
      return InvalidArgument("inputs 'Ids' have shapes ", ToString(first), " and ",
                             ToString(ids[i]->shape), ", expected the same");
    }
    if (table.rank() != 2 || table[1] != embs[0]->shape[1]) {
      return InvalidArgument("inputs 'Embs' have shapes ", ToString(embs[0]->shape), " and ",
                             ToString(table), ", expected matrices of as many columns");
    }
  }
  const int64_t columns = embs[0]->shape[1];
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kScale, "Scale", columns));
  INTERP_RETURN_IF_ERROR(CheckVector(ctx, kBias, "Bias", columns));
  ctx.SetShape(kOut, {first[0], first[1], columns});
  return absl::OkStatus();
}

// Adds the rows of `table` that `ids` name to those of `out`.
template <typename T>
absl::Status AddRows(int num_threads, const Tensor& ids, const Tensor& table, T* out) {
  const int64_t width = table.shape[1];
  const T* const from = table.data<T>();
  return WithIndices(ids, "Ids", [&](const auto* rows) {
    INTERP_RETURN_IF_ERROR(CheckIndices(rows, ids.numel(), table.shape[0], "Ids"));
    const int64_t grain = GrainFor(width);
    ParallelFor(num_threads, ids.numel(), grain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* const row = from + static_cast<int64_t>(rows[i]) * width;
        for (int64_t k = 0; k < width; ++k) out[i * width + k] += row[k];
      }
    });
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  Tensor& out_tensor = ctx.output(kOut);
  const int64_t n = out_tensor.shape[2], rows = out_tensor.shape.numel(0, 2);
  const T epsilon = static_cast<T>(ctx.attrs<Attrs>().epsilon);
  const T* const scale = ctx.input(kScale).data<T>();
  const T* const bias = ctx.input(kBias).data<T>();
  T* const out = out_tensor.mutable_data<T>();
  std::fill_n(out, rows * n, T{0});
  for (size_t i = 0; i < ctx.inputs(kIds).size(); ++i) {
    INTERP_RETURN_IF_ERROR(
        AddRows(ctx.num_threads(), *ctx.inputs(kIds)[i], *ctx.inputs(kEmbs)[i], out));
  }
  const int64_t grain = GrainFor(4 * n);
  ParallelFor(ctx.num_threads(), rows, grain, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      LayerNormRow(out + row * n, n, epsilon, scale, bias, out + row * n);
    }
  });
  return absl::OkStatus();
}

DType TableType(const DTypeContext& ctx) { return ctx.input(kEmbs); }

INTERP_REGISTER_OP(OpDef{
    .type = "fused_embedding_eltwise_layernorm",
    .inputs = {{"Ids", kVariadic | kAnyDType}, {"Embs", kVariadic}, {"Bias"}, {"Scale"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .kernel_dtype = TableType,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run<float>}, {DType::kFloat64, Run<double>}},
});

}  // namespace embedding
}  // namespace
}  // namespace interp::nn
