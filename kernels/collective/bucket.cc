// What a data-parallel program does with its gradients (passes/train/data_parallel.h); Paddle has
// no such ops.
//
// c_bucket_allreduce: Bucket = the elements of all X one after the other, times Weight, added up
// over the ranks of the ring. It returns while that is under way; X stay as they are.
// c_bucket_wait: waits for it; Out i has the elements that belong to X i.
// c_allreduce_rows: Out = selected rows X of all ranks, their values times their rank's Weight,
// those of rank 0 first: rows that repeat are added up by who reads them.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/collective/ring.h"
#include "kernels/util/all_present.h"
#include "kernels/util/arithmetic.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kWeight = 1;
constexpr int kBucketIn = 1;
constexpr int kOut = 0;

absl::StatusOr<int64_t> NumElements(absl::Span<const Tensor* const> tensors) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(tensors, "X"));
  int64_t count = 0;
  for (const Tensor* const tensor : tensors) {
    count += tensor->numel();
  }
  return count;
}

absl::Status CheckWeight(const Tensor& weight) {
  if (weight.numel() == 1 && weight.dtype == DType::kFloat64) return absl::OkStatus();
  return InvalidArgument("'Weight' is ", DescribeType(weight), ", expected one float64");
}

absl::Status InferBucket(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckWeight(ctx.input(kWeight)));
  INTERP_ASSIGN_OR_RETURN(const int64_t count, NumElements(ctx.inputs(kX)));
  ctx.SetShape(kOut, Shape{count});
  return absl::OkStatus();
}

// out[i] = in[i] * weight, rounded once: a weight of 16 bits would make the sum of all ranks'
// weights another number than one.
template <typename T>
void Scale(int num_threads, const Tensor& in, double weight, T* out) {
  using Compute = ComputeType<T>;
  const T* const from = in.data<T>();
  const auto factor = static_cast<Compute>(weight);
  ParallelFor(num_threads, in.numel(), kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<T>(static_cast<Compute>(from[i]) * factor);
    }
  });
}

template <typename T>
absl::Status StartBucket(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  Tensor& bucket = ctx.output(kOut);
  T* out = bucket.mutable_data<T>();
  const double weight = *ctx.input(kWeight).data<double>();
  for (const Tensor* const x : ctx.inputs(kX)) {
    Scale<T>(ctx.num_threads(), *x, weight, out);
    out += x->numel();
  }
  return ring->Launch({.kind = CommKind::kAllReduce,
                       .dtype = bucket.dtype,
                       .count = bucket.numel(),
                       .in = bucket.raw_data(),
                       .out = bucket.mutable_raw_data(),
                       .name = "c_bucket_allreduce"},
                      {bucket.buffer()});
}

absl::Status InferWait(InferContext& ctx) {
  const auto inputs = ctx.inputs(kX);
  const auto outputs = ctx.outputs(kOut);
  const Tensor& bucket = ctx.input(kBucketIn);
  INTERP_ASSIGN_OR_RETURN(const int64_t count, NumElements(inputs));
  if (inputs.size() != outputs.size() || count != bucket.numel()) {
    return InvalidArgument("'Out' has ", outputs.size(), " arguments, 'X' has ", inputs.size(),
                           " of ", count, " elements, and 'Bucket' has ", bucket.numel(),
                           " elements: expected the same");
  }
  INTERP_RETURN_IF_ERROR(CheckAllPresent(outputs, "Out"));
  for (size_t i = 0; i < inputs.size(); ++i) {
    outputs[i]->shape = inputs[i]->shape;
    outputs[i]->lod.clear();
  }
  return absl::OkStatus();
}

absl::Status WaitForBucket(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  const Tensor& bucket = ctx.input(kBucketIn);
  INTERP_RETURN_IF_ERROR(ring->WaitFor(bucket.raw_data()));
  const char* from = static_cast<const char*>(bucket.raw_data());
  for (Tensor* const out : ctx.outputs(kOut)) {
    if (out->size_bytes() == 0) continue;
    std::memcpy(out->mutable_raw_data(), from, out->size_bytes());
    from += out->size_bytes();
  }
  return absl::OkStatus();
}

CommCall GatherOf(DType dtype, std::vector<int64_t> counts, const void* in, void* out) {
  return {.kind = CommKind::kAllGather,
          .dtype = dtype,
          .count = 1,
          .counts = std::move(counts),
          .in = in,
          .out = out,
          .name = "c_allreduce_rows"};
}

template <typename T>
absl::Status AllReduceRows(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  INTERP_ASSIGN_OR_RETURN(const bool are_rows, AreRows(ctx, kX, kOut));
  if (!are_rows) return InvalidArgument("'X' is a tensor, expected selected rows");
  INTERP_RETURN_IF_ERROR(CheckWeight(ctx.input(kWeight)));
  const Variable& x = ctx.input_variable(kX);
  const std::vector<int64_t>& rows = x.selected_rows->rows;
  const auto own = static_cast<int64_t>(rows.size());
  std::vector<int64_t> counts(ring->size());
  INTERP_RETURN_IF_ERROR(ring->Run(GatherOf(DType::kInt64, {}, &own, counts.data())));
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  std::vector<int64_t> all_rows(total);
  INTERP_RETURN_IF_ERROR(ring->Run(GatherOf(DType::kInt64, counts, rows.data(), all_rows.data())));
  const int64_t width = RowWidth(x.tensor);
  INTERP_ASSIGN_OR_RETURN(const Workspace scaled, ctx.workspace(x.tensor.size_bytes()));
  if (own > 0) {
    Scale<T>(ctx.num_threads(), x.tensor, *ctx.input(kWeight).data<double>(), scaled.data<T>());
  }
  Variable out;
  out.selected_rows.emplace();
  out.tensor.dtype = x.tensor.dtype;
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, std::move(all_rows), TallShape(x), out));
  for (int64_t& count : counts) count *= width;
  INTERP_RETURN_IF_ERROR(ring->Run(
      GatherOf(DTypeOf<T>, std::move(counts), scaled.data<T>(), out.tensor.mutable_raw_data()),
      {scaled.buffer(), out.tensor.buffer()}));
  Variable& result = ctx.output_variable(kOut);
  result.tensor = std::move(out.tensor);
  result.selected_rows = std::move(out.selected_rows);
  return absl::OkStatus();
}

// GPUs have rows of their own (kernels/cuda/bucket_rows.cc).
KernelDef OnHost(DType dtype, KernelFn run) {
  return {.dtype = dtype, .run = run, .host_only = true};
}

INTERP_REGISTER_OP(OpDef{
    .type = "c_bucket_allreduce",
    .inputs = {{"X", kVariadic}, {"Weight", kAnyDType}},
    .outputs = {{"Bucket"}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferBucket,
    .kernels = {OnHost(DType::kFloat32, StartBucket<float>),
                OnHost(DType::kFloat64, StartBucket<double>),
                OnHost(DType::kFloat16, StartBucket<float16>),
                OnHost(DType::kBFloat16, StartBucket<bfloat16>)},
    .side_effect = true,
});
INTERP_REGISTER_OP(OpDef{
    .type = "c_bucket_wait",
    .inputs = {{"X", kVariadic | kNoNeedBuffer}, {"Bucket"}},
    .outputs = {{"Out", kVariadic}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .infer = InferWait,
    .kernels = {OnHost(DType::kUndefined, WaitForBucket)},
    .side_effect = true,
});
INTERP_REGISTER_OP(OpDef{
    .type = "c_allreduce_rows",
    .inputs = {{"X", kMayBeRows}, {"Weight", kAnyDType}},
    .outputs = {{"Out", kMayBeRows}},
    .parse = ParseAttrs<RingAttrs, RingAttrs::Read>,
    .kernels = {{DType::kFloat32, AllReduceRows<float>}, {DType::kFloat64, AllReduceRows<double>}},
    .dynamic_outputs = true,
    .side_effect = true,
    .host_only = true,
});

}  // namespace
}  // namespace interp
