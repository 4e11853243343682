// The rows of c_bucket_allreduce and c_bucket_wait. Both lie on the stream of communication, beside
// the backward part: what has come in is unpacked as soon as it is there.
#include "kernels/collective/ring.h"
#include "kernels/cuda/bucket.h"
#include "kernels/cuda/row.h"

namespace interp::cuda {
namespace {

absl::Status StartBucket(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, FindRing(ctx, ctx.attrs<RingAttrs>()));
  Tensor& bucket = ctx.output(0);
  char* to = static_cast<char*>(bucket.mutable_raw_data());
  std::vector<ArrayUpdate> arrays;
  for (const Tensor* const x : ctx.inputs(0)) {
    arrays.push_back({.in = x->raw_data(), .out = to, .size = x->numel()});
    to += x->size_bytes();
  }
  INTERP_RETURN_IF_ERROR(
      ScaleArrays(bucket.dtype, arrays, ctx.input(1).data<double>(), StreamOf(ctx)));
  return BetweenDevices(ctx, *ring,
                        {.kind = CommKind::kAllReduce,
                         .dtype = bucket.dtype,
                         .count = bucket.numel(),
                         .in = bucket.raw_data(),
                         .out = bucket.mutable_raw_data(),
                         .name = "c_bucket_allreduce"});
}

absl::Status UnpackBucket(KernelContext& ctx) {
  const char* from = static_cast<const char*>(ctx.input(1).raw_data());
  std::vector<ArrayUpdate> arrays;
  for (Tensor* const out : ctx.outputs(0)) {
    const size_t bytes = out->size_bytes();
    arrays.push_back(
        {.in = from, .out = out->mutable_raw_data(), .size = static_cast<int64_t>(bytes)});
    from += bytes;
  }
  return CopyArrays(arrays, StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("c_bucket_allreduce", RowsFor({DType::kFloat32, DType::kFloat64,
                                                       DType::kFloat16, DType::kBFloat16},
                                                      StartBucket, GpusCommunicate));
INTERP_REGISTER_KERNELS("c_bucket_wait",
                        RowsFor({DType::kUndefined}, UnpackBucket, GpusCommunicate));

}  // namespace
}  // namespace interp::cuda
