#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/sum.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMostInputs = 64;

struct SumInputs {
  const void* data[kMostInputs];
  int count;
};

template <typename T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    AddInputs(const SumInputs inputs, T* out, int64_t size) {
  using V = Vector<T, N>;
  using C = ComputeType<T>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * N;
  for (int64_t index = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N; index < size;
       index += stride) {
    if (size - index < N) {
      for (int64_t i = index; i < size; ++i) {
        C total = ToCompute(static_cast<const T*>(inputs.data[0])[i]);
        for (int k = 1; k < inputs.count; ++k) {
          total = WrapAdd(total, ToCompute(static_cast<const T*>(inputs.data[k])[i]));
        }
        out[i] = FromCompute<T>(total);
      }
      continue;
    }
    C totals[N] = {};
    for (int k = 0; k < inputs.count; ++k) {
      const V values = *reinterpret_cast<const V*>(static_cast<const T*>(inputs.data[k]) + index);
      INTERP_UNROLL
      for (int i = 0; i < N; ++i) {
        const C value = ToCompute(values.values[i]);
        totals[i] = k == 0 ? value : WrapAdd(totals[i], value);
      }
    }
    V result;
    INTERP_UNROLL
    for (int i = 0; i < N; ++i) result.values[i] = FromCompute<T>(totals[i]);
    *reinterpret_cast<V*>(out + index) = result;
  }
}

template <typename T>
absl::Status AddBatch(const SumInputs& inputs, T* out, int64_t size, cudaStream_t stream) {
  constexpr int kWide = kVectorSize<T>;
  const bool aligned =
      AlignedTo(out, 16) && std::all_of(inputs.data, inputs.data + inputs.count,
                                        [](const void* data) { return AlignedTo(data, 16); });
  const auto kernel = aligned ? AddInputs<T, kWide> : AddInputs<T, 1>;
  return Launch(kernel, BlocksFor(size, int64_t{kBlockThreads} * (aligned ? kWide : 1)),
                kBlockThreads, /*shared_bytes=*/0, stream, inputs, out, size);
}

}  // namespace

absl::Status SumTensors(DType dtype, absl::Span<const void* const> inputs, void* out, int64_t size,
                        cudaStream_t stream) {
  if (inputs.empty()) return InvalidArgument("a sum of no tensors");
  if (size == 0) return absl::OkStatus();
  return WithNumbers("a sum", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    SumInputs batch = {};
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (batch.count == kMostInputs) {
        INTERP_RETURN_IF_ERROR(AddBatch<T>(batch, static_cast<T*>(out), size, stream));
        batch = {.data = {out}, .count = 1};
      }
      batch.data[batch.count++] = inputs[i];
    }
    return AddBatch<T>(batch, static_cast<T*>(out), size, stream);
  });
}

}  // namespace interp::cuda
