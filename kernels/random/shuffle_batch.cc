// shuffle_batch: the rows of X, of the last dimension, in another order, in which none stays where
// it was: row i of X is row ShuffleIdx[i] of Out. As in Paddle the order does not hang on Seed,
// from which only SeedOut is made.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "kernels/random/draw.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/indices.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kSeed = 1;
constexpr int kOut = 0;
constexpr int kShuffleIdx = 1;
constexpr int kSeedOut = 2;

struct Attrs {
  int64_t startup_seed = 0;  // where Seed has no value
};

Attrs ReadAttrs(AttrReader& reader) { return {reader.Int("startup_seed", 0)}; }

int64_t RowsOf(const Shape& shape) { return shape.numel(0, shape.rank() - 1); }

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() < 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected a dimension or more");
  }
  const Tensor& seed = ctx.input(kSeed);
  if (seed.has_memory() && (seed.dtype != DType::kInt64 || seed.numel() != 1)) {
    return InvalidArgument("input 'Seed' is ", DescribeType(seed), ", expected one int64");
  }
  ctx.ShareShape(kX, kOut);
  ctx.SetShape(kShuffleIdx, {RowsOf(x)});
  ctx.SetShape(kSeedOut, {1});
  return absl::OkStatus();
}

// An order in one cycle, all of them equally likely (Sattolo).
void DrawOrder(const RandomStream& stream, int64_t rows, int64_t* order) {
  std::iota(order, order + rows, int64_t{0});
  for (int64_t i = rows - 1; i > 0; --i) {
    std::swap(order[i], order[Below(BitsOf(stream, i), static_cast<uint64_t>(i))]);
  }
}

absl::Status ShuffleBatch(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& seed = ctx.input(kSeed);
  const int64_t rows = RowsOf(x.shape);
  const uint64_t first = static_cast<uint64_t>(seed.has_memory() ? *seed.data<int64_t>()
                                                                 : ctx.attrs<Attrs>().startup_seed);
  int64_t* const order = ctx.output(kShuffleIdx).mutable_data<int64_t>();
  DrawOrder(ctx.random(), rows, order);
  const size_t bytes = static_cast<size_t>(x.shape.back()) * SizeOf(x.dtype);
  const char* from = static_cast<const char*>(x.raw_data());
  char* const to = static_cast<char*>(ctx.output(kOut).mutable_raw_data());
  for (int64_t i = 0; i < rows && bytes != 0; ++i, from += bytes) {
    std::memcpy(to + static_cast<size_t>(order[i]) * bytes, from, bytes);
  }
  *ctx.output(kSeedOut).mutable_data<int64_t>() = static_cast<int64_t>(std::minstd_rand0(first)());
  return absl::OkStatus();
}

std::vector<KernelDef> Rows(KernelFn run) {
  return {
      {DType::kFloat32, run}, {DType::kFloat64, run}, {DType::kInt32, run}, {DType::kInt64, run}};
}

INTERP_REGISTER_OP(OpDef{
    .type = "shuffle_batch",
    .inputs = {{"X"}, {"Seed", kAnyDType | kMayBeEmpty}},
    .outputs = {{"Out"}, {"ShuffleIdx"}, {"SeedOut"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kShuffleIdx, DType::kInt64);
          ctx.Set(kSeedOut, DType::kInt64);
        },
    .infer = Infer,
    .kernels = Rows(ShuffleBatch),
    .random = true,
    .gradient = {.inputs = {"ShuffleIdx", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

constexpr int kOutGrad = 0;
constexpr int kIndex = 1;
constexpr int kXGrad = 0;

absl::Status InferGrad(InferContext& ctx) {
  const Tensor& index = ctx.input(kIndex);
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (grad.rank() < 1 || index.numel() != RowsOf(grad) || index.dtype != DType::kInt64) {
    return InvalidArgument("input 'ShuffleIdx' is ", DescribeType(index),
                           ", expected int64 for the rows of 'Out@GRAD', ", ToString(grad));
  }
  ctx.ShareShape(kOutGrad, kXGrad);
  return absl::OkStatus();
}

absl::Status ShuffleBatchGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(kOutGrad);
  const int64_t rows = RowsOf(grad.shape);
  const int64_t* const order = ctx.input(kIndex).data<int64_t>();
  INTERP_RETURN_IF_ERROR(CheckIndices(order, rows, rows, "ShuffleIdx"));
  const int64_t bytes = grad.shape.back() * static_cast<int64_t>(SizeOf(grad.dtype));
  GatherRows(ctx.num_threads(), {1, rows, bytes}, grad.raw_data(), order, rows,
             ctx.output(kXGrad).mutable_raw_data());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "shuffle_batch_grad",
    .inputs = {{"Out@GRAD"}, {"ShuffleIdx", kAnyDType}},
    .outputs = {{"X@GRAD"}},
    .infer = InferGrad,
    .kernels = Rows(ShuffleBatchGrad),
});

}  // namespace
}  // namespace interp::random
