// Ops that read what compressed embeddings are stored as.
//
//   dequantize_abs_max    Out = Scale X / max_range
//   dequantize_log        Out = Dict[X], and -Dict[X + 128] below 0
//   lookup_table_dequant  the rows of W that Ids name: two floats, the least and the greatest
//                         value, then bytes, four in a float, that count 256ths of the way between
#include <algorithm>
#include <limits>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kOut = 0;

void InferFloat(DTypeContext& ctx) { ctx.Set(kOut, DType::kFloat32); }

// InvalidArgument unless input `slot` has `count` floats.
absl::Status CheckFloats(const InferContext& ctx, int slot, absl::string_view name, int64_t count) {
  const Tensor& tensor = ctx.input(slot);
  if (tensor.dtype == DType::kFloat32 && tensor.numel() == count) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(tensor), ", expected ", count,
                         " elements of float32");
}

namespace abs_max {

constexpr int kX = 0;
constexpr int kScale = 1;

struct Attrs {
  float max_range = 127;
};

Attrs Read(AttrReader& reader) { return {reader.Float("max_range", 127)}; }

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFloats(ctx, kScale, "Scale", 1));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const float range = ctx.attrs<Attrs>().max_range;
  const float scale = *ctx.input(kScale).data<float>();
  const T* const x = ctx.input(kX).data<T>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  ParallelFor(ctx.num_threads(), ctx.input(kX).numel(), kElementwiseGrain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  out[i] = scale * static_cast<float>(x[i]) / range;
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dequantize_abs_max",
    .inputs = {{"X"}, {"Scale", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer_dtype = InferFloat,
    .infer = Infer,
    .kernels = {{DType::kInt8, Run<int8_t>}, {DType::kInt16, Run<int16_t>}},
    .gradient = {.none = true},
});

}  // namespace abs_max

namespace logarithm {

constexpr int kX = 0;
constexpr int kDict = 1;
constexpr int64_t kEntries = 128;

absl::Status Infer(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckFloats(ctx, kDict, "Dict", kEntries));
  ctx.ShareShape(kX, kOut);
  return absl::OkStatus();
}

absl::Status Run(KernelContext& ctx) {
  const int8_t* const x = ctx.input(kX).data<int8_t>();
  const float* const dict = ctx.input(kDict).data<float>();
  float* const out = ctx.output(kOut).mutable_data<float>();
  for (int64_t i = 0; i < ctx.input(kX).numel(); ++i) {
    out[i] = x[i] < 0 ? -dict[x[i] + kEntries] : dict[x[i]];
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "dequantize_log",
    .inputs = {{"X"}, {"Dict", kAnyDType}},
    .outputs = {{"Out"}},
    .infer_dtype = InferFloat,
    .infer = Infer,
    .kernels = {{DType::kInt8, Run}},
    .gradient = {.none = true},
});

}  // namespace logarithm

namespace lookup {

constexpr int kW = 0;
constexpr int kIds = 1;
constexpr int64_t kHead = 2;  // floats before the bytes of a row
constexpr int64_t kBytes = 4;

struct Attrs {
  int64_t padding_idx = -1;  // -1: none
};

Attrs Read(AttrReader& reader) { return {reader.Long("padding_idx", -1)}; }

absl::Status Infer(InferContext& ctx) {
  const Shape& w = ctx.input(kW).shape;
  const Tensor& ids = ctx.input(kIds);
  if (w.rank() != 2 || w[1] < kHead || w[1] > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("input 'W' has shape ", ToString(w), ", expected [N,2 + D / 4]");
  }
  if (ids.dtype != DType::kInt64 || ids.shape.rank() < 1 || ids.shape.back() != 1) {
    return InvalidArgument("input 'Ids' is ", DescribeType(ids), ", expected int64[...,1]");
  }
  Shape out = ids.shape;
  out[out.rank() - 1] = (w[1] - kHead) * kBytes;
  ctx.SetShape(kOut, out);
  ShareLod(ids, ctx.output(kOut));
  return absl::OkStatus();
}

void ReadRow(const float* row, int64_t width, float* out) {
  const float least = row[0];
  const float step = (row[1] - least) / 256;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(row + kHead);
  for (int64_t k = 0; k < width; ++k) out[k] = step * static_cast<float>(bytes[k]) + least;
}

absl::Status Run(KernelContext& ctx) {
  const Shape& w = ctx.input(kW).shape;
  const int64_t width = (w[1] - kHead) * kBytes;
  const int64_t padding = ctx.attrs<Attrs>().padding_idx;
  const int64_t* const ids = ctx.input(kIds).data<int64_t>();
  float* out = ctx.output(kOut).mutable_data<float>();
  for (int64_t i = 0; i < ctx.input(kIds).numel(); ++i, out += width) {
    if (ids[i] == padding && padding != -1) {
      std::fill_n(out, width, 0.0f);
      continue;
    }
    if (ids[i] < 0 || ids[i] >= w[0]) {
      return InvalidArgument("'Ids' has the value ", ids[i], " at position ", i, ", expected 0 to ",
                             w[0] - 1);
    }
    ReadRow(ctx.input(kW).data<float>() + ids[i] * w[1], width, out);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lookup_table_dequant",
    .inputs = {{"W"}, {"Ids", kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, Read>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Run}},
    .gradient = {.none = true},
});

}  // namespace lookup
}  // namespace
}  // namespace interp
