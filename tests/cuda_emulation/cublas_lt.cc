// cuBLASLt on the machine that lives: products are computed on the host, in the order of streams.
#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/cublas_lt_types.h"
#include "tests/cuda_emulation/library_values.h"
#include "tests/cuda_emulation/library_work.h"

namespace interp::cuda_emulation {
namespace {

using Layout = cublasLtMatrixLayoutOpaque_t;
using Matmul = cublasLtMatmulDescOpaque_t;

std::mutex blas_mutex;  // guards the handles
std::set<cublasLtHandle_t>& BlasHandles() {
  static auto& handles = *new std::set<cublasLtHandle_t>();
  return handles;
}

cublasStatus_t ToBlas(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUBLAS_STATUS_ALLOC_FAILED;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
      return CUBLAS_STATUS_INVALID_VALUE;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
      return CUBLAS_STATUS_NOT_INITIALIZED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

// A handle serves the device that was current when it was made.
bool ServesDevice(cublasLtHandle_t handle) {
  std::lock_guard<std::mutex> guard(blas_mutex);
  return BlasHandles().contains(handle) && handle->device == LibraryDevice();
}

// op(A) of a layout.
struct Sides {
  uint64_t rows;
  uint64_t cols;
};
Sides SidesOf(const Layout& layout, int32_t trans) {
  return trans == CUBLAS_OP_N ? Sides{layout.rows, layout.cols} : Sides{layout.cols, layout.rows};
}

bool SameLayout(const Layout& c, const Layout& d) {
  return c.type == d.type && c.rows == d.rows && c.cols == d.cols && c.batch_count == d.batch_count;
}

bool ValidLayout(const Layout& layout) {
  return layout.rows > 0 && layout.cols > 0 && layout.ld >= static_cast<int64_t>(layout.rows) &&
         layout.batch_count > 0 && layout.batch_step >= 0;
}

cublasStatus_t CheckMatmul(const Matmul& matmul, const Layout& a, const Layout& b, const Layout& c,
                           const Layout& d) {
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (!ValidLayout(*layout)) return CUBLAS_STATUS_INVALID_VALUE;
  }
  // Some kernels have the batch in the grid's z: no algorithm may be found for more.
  if (d.batch_count > 65535) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Sides left = SidesOf(a, matmul.trans_a);
  const Sides right = SidesOf(b, matmul.trans_b);
  if (left.cols != right.rows || left.rows != d.rows || right.cols != d.cols || !SameLayout(c, d) ||
      a.batch_count != d.batch_count || b.batch_count != d.batch_count) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool wide = matmul.compute == CUBLAS_COMPUTE_64F;
  const bool types =
      a.type == b.type && (a.type == d.type || (ElementBytes(a.type) == 2 && d.type == CUDA_R_32F));
  const bool as_tf32 = matmul.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!types || wide != (a.type == CUDA_R_64F) || (as_tf32 && a.type != CUDA_R_32F) ||
      matmul.scale != (wide ? CUDA_R_64F : CUDA_R_32F) ||
      (wide && matmul.epilogue != CUBLASLT_EPILOGUE_DEFAULT)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

// What an algorithm is good for: this very product, and addresses as aligned as was said.
cublasLtMatmulAlgo_t AlgorithmFor(const Matmul& matmul, const Layout& a, const Layout& d) {
  const Sides left = SidesOf(a, matmul.trans_a);
  return {{left.rows, left.cols, d.cols, static_cast<uint64_t>(d.batch_count),
           static_cast<uint64_t>(a.type) << 32 | static_cast<uint64_t>(d.type),
           static_cast<uint64_t>(matmul.compute) << 48 |
               static_cast<uint64_t>(matmul.trans_a) << 40 |
               static_cast<uint64_t>(matmul.trans_b) << 32 | matmul.epilogue,
           /*workspace=*/0, /*alignments=*/0}};
}
constexpr int kWorkspaceWord = 6;
constexpr int kAlignmentWord = 7;
// Of the word of the workspace: its size lies below them.
constexpr uint64_t kNarrowParts = uint64_t{1} << 63;
constexpr int kBiasShift = 48;  // how the bias is aligned, as a power of two
constexpr uint64_t kWorkspaceMask = (uint64_t{1} << kBiasShift) - 1;
constexpr uintptr_t kWorkspaceAlignment = 256;

// Long sums are cut in two, whose parts lie in the workspace, where it is large enough. The parts
// have the type of the result where the preference allows that.
size_t WorkspaceFor(const Matmul& matmul, const Layout& a, const Layout& d, uint64_t most) {
  constexpr uint64_t kLongSum = 32;
  const uint64_t bytes = 2 * d.rows * d.cols * d.batch_count * sizeof(float);
  const bool splits = SidesOf(a, matmul.trans_a).cols >= kLongSum && bytes <= most;
  return splits ? bytes : 0;
}

uint64_t AlignmentBits(const uint32_t (&alignments)[4]) {
  uint64_t bits = 0;
  for (const uint32_t alignment : alignments) bits = bits << 16 | alignment;
  return bits;
}

bool HasBias(const Matmul& matmul) { return (matmul.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

// An algorithm is chosen for a bias that is aligned as the one of the heuristic's descriptor.
uint64_t BiasAlignment(const Matmul& matmul) {
  constexpr uintptr_t kMost = 256;
  const auto address = reinterpret_cast<uintptr_t>(matmul.bias) | kMost;
  return HasBias(matmul) ? static_cast<uint64_t>(std::countr_zero(address)) : 0;
}

bool TakesBias(uint64_t word, const Matmul& matmul) {
  if (!HasBias(matmul)) return true;
  return matmul.bias != nullptr && BiasAlignment(matmul) >= ((word & ~kNarrowParts) >> kBiasShift);
}

bool Aligned(uint64_t bits, const void* const (&addresses)[4]) {
  for (int i = 0; i < 4; ++i) {
    const uint64_t alignment = bits >> (16 * (3 - i)) & 0xffff;
    if (reinterpret_cast<uintptr_t>(addresses[i]) % alignment != 0) return false;
  }
  return true;
}

// All that a layout spans; matrices that lie apart count one by one.
void AddRanges(const Layout& layout, const void* address, bool write,
               std::vector<LibraryWork::Range>& ranges) {
  const size_t element = ElementBytes(layout.type);
  const size_t bytes = ((layout.cols - 1) * layout.ld + layout.rows) * element;
  const int32_t count = layout.batch_step == 0 ? 1 : layout.batch_count;
  for (int32_t i = 0; i < count; ++i) {
    ranges.push_back(
        {static_cast<const char*>(address) + i * layout.batch_step * element, bytes, write});
  }
}
size_t RangesOf(const Layout& layout) {
  return layout.batch_step == 0 ? 1 : static_cast<size_t>(layout.batch_count);
}

struct MatmulCall {
  Matmul matmul;
  Layout a, b, c, d;
  double alpha = 0;
  double beta = 0;
  bool narrow_parts = false;
};

double RoundedTo(cudaDataType_t type, double value) {
  alignas(double) char bytes[sizeof(double)];
  Store(type, {value}, bytes);
  return Load(type, bytes, 1)[0];
}

double Activate(uint32_t epilogue, double x) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x > 0 ? x : 0;
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
    return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

std::vector<double> LoadMatrix(const Layout& layout, const char* from) {
  return Load(layout.type, from, static_cast<int64_t>((layout.cols - 1) * layout.ld + layout.rows));
}

// The matrices of A, B, C, D and the bias of one step of the batch; null where there is none.
struct MatmulPlaces {
  const char* a;
  const char* b;
  const char* c;
  const char* bias;
  char* d;
};

void Multiply(const MatmulCall& call, const MatmulPlaces& at) {
  std::vector<double> a = LoadMatrix(call.a, at.a);
  std::vector<double> b = LoadMatrix(call.b, at.b);
  if (call.matmul.compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
    RoundToTf32(a);
    RoundToTf32(b);
  }
  std::vector<double> c;
  if (at.c != nullptr) c = LoadMatrix(call.c, at.c);
  std::vector<double> bias;
  if (at.bias != nullptr) bias = Load(call.d.type, at.bias, static_cast<int64_t>(call.d.rows));
  const bool ta = call.matmul.trans_a != CUBLAS_OP_N;
  const bool tb = call.matmul.trans_b != CUBLAS_OP_N;
  const auto depth = static_cast<int64_t>(SidesOf(call.a, call.matmul.trans_a).cols);
  const auto rows = static_cast<int64_t>(call.d.rows);
  for (int64_t j = 0; j < static_cast<int64_t>(call.d.cols); ++j) {
    std::vector<double> column(call.d.rows);
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      double first_part = 0;
      for (int64_t l = 0; l < depth; ++l) {
        if (call.narrow_parts && l == depth / 2) {
          first_part = RoundedTo(call.d.type, std::exchange(sum, 0.0));
        }
        sum += a[ta ? i * call.a.ld + l : l * call.a.ld + i] *
               b[tb ? l * call.b.ld + j : j * call.b.ld + l];
      }
      if (call.narrow_parts) sum = first_part + RoundedTo(call.d.type, sum);
      double value = call.alpha * sum;
      if (!c.empty()) value += call.beta * c[j * call.c.ld + i];
      if (!bias.empty()) value += bias[i];
      column[i] = Activate(call.matmul.epilogue, value);
    }
    Store(call.d.type, column, at.d + j * call.d.ld * ElementBytes(call.d.type));
  }
}

double ScalarAt(cudaDataType_t type, const void* at) {
  return type == CUDA_R_64F ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
}

// What runs later: its ranges are those of A, B, D, then C, bias and workspace where they are used.
LibraryWork WorkOf(const MatmulCall& call, const void* a, const void* b, const void* c, void* d,
                   LibraryWork::Range workspace) {
  LibraryWork work{.name = "cublasLtMatmul"};
  AddRanges(call.a, a, /*write=*/false, work.ranges);
  AddRanges(call.b, b, /*write=*/false, work.ranges);
  if (call.beta != 0) AddRanges(call.c, c, /*write=*/false, work.ranges);
  AddRanges(call.d, d, /*write=*/true, work.ranges);
  const bool has_bias = HasBias(call.matmul);
  if (has_bias) {
    work.ranges.push_back(
        {call.matmul.bias, call.d.rows * ElementBytes(call.d.type), /*write=*/false});
  }
  const size_t bias_at = work.ranges.size() - 1;
  work.ranges.push_back(workspace);
  work.run = [call, has_bias, bias_at](absl::Span<char* const> bytes) {
    const size_t b_at = RangesOf(call.a);
    const size_t c_at = b_at + RangesOf(call.b);
    const size_t d_at = c_at + (call.beta != 0 ? RangesOf(call.c) : 0);
    for (size_t i = 0; i < static_cast<size_t>(call.d.batch_count); ++i) {
      Multiply(call, {.a = bytes[call.a.batch_step == 0 ? 0 : i],
                      .b = bytes[b_at + (call.b.batch_step == 0 ? 0 : i)],
                      .c = call.beta != 0 ? bytes[c_at + i] : nullptr,
                      .bias = has_bias ? bytes[bias_at] : nullptr,
                      .d = bytes[d_at + i]});
    }
  };
  return work;
}

}  // namespace
}  // namespace interp::cuda_emulation

namespace emulation = interp::cuda_emulation;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = nullptr;
  if (const cudaError_t error = emulation::EnterLibrary("cublasLtCreate"); error != cudaSuccess) {
    return emulation::ToBlas(error);
  }
  std::lock_guard<std::mutex> guard(emulation::blas_mutex);
  *handle = new cublasLtContext{.device = emulation::LibraryDevice()};
  emulation::BlasHandles().insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  std::lock_guard<std::mutex> guard(emulation::blas_mutex);
  if (emulation::BlasHandles().erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  emulation::LeaveLibrary("cublasLtDestroy", handle->device, /*stream=*/nullptr);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  *returned = 0;
  if (const cudaError_t error = emulation::EnterLibrary("cublasLtMatmulAlgoGetHeuristic");
      error != cudaSuccess) {
    return emulation::ToBlas(error);
  }
  if (!emulation::ServesDevice(handle) || requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus_t status = emulation::CheckMatmul(*matmul, *a, *b, *c, *d);
      status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  results[0] = {
      .algo = emulation::AlgorithmFor(*matmul, *a, *d),
      .workspaceSize = emulation::WorkspaceFor(*matmul, *a, *d, preference->most_workspace),
      .state = CUBLAS_STATUS_SUCCESS,
      .wavesCount = 1,
      .reserved = {}};
  constexpr uint32_t kNarrow =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const bool narrow = results[0].workspaceSize > 0 && (preference->reductions & kNarrow) != 0;
  results[0].algo.data[emulation::kWorkspaceWord] =
      results[0].workspaceSize | emulation::BiasAlignment(*matmul) << emulation::kBiasShift |
      (narrow ? emulation::kNarrowParts : 0);
  results[0].algo.data[emulation::kAlignmentWord] =
      emulation::AlignmentBits(preference->alignments);
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (const cudaError_t error = emulation::EnterLibrary("cublasLtMatmul"); error != cudaSuccess) {
    return emulation::ToBlas(error);
  }
  if (!emulation::ServesDevice(handle) || algo == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t word = algo->data[emulation::kWorkspaceWord];
  const emulation::MatmulCall call = {*matmul,
                                      *a_layout,
                                      *b_layout,
                                      *c_layout,
                                      *d_layout,
                                      emulation::ScalarAt(matmul->scale, alpha),
                                      emulation::ScalarAt(matmul->scale, beta),
                                      (word & emulation::kNarrowParts) != 0};
  if (const cublasStatus_t status =
          emulation::CheckMatmul(call.matmul, call.a, call.b, call.c, call.d);
      status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  const cublasLtMatmulAlgo_t expected = emulation::AlgorithmFor(*matmul, call.a, call.d);
  const size_t needed = word & emulation::kWorkspaceMask;
  if (!std::equal(expected.data, expected.data + emulation::kWorkspaceWord, algo->data) ||
      !emulation::Aligned(algo->data[emulation::kAlignmentWord], {a, b, c, d}) ||
      !emulation::TakesBias(word, *matmul) || workspace_bytes < needed ||
      reinterpret_cast<uintptr_t>(workspace) % emulation::kWorkspaceAlignment != 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return emulation::ToBlas(emulation::EnqueueLibraryWork(
      emulation::WorkOf(call, a, b, c, d, {workspace, needed, /*write=*/true}), stream));
}
}
