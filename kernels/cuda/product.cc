#include "kernels/cuda/product.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/cuda/current_device.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"

namespace interp::cuda {
namespace {

// What an algorithm may ask for: NVIDIA's advice for Hopper, and more than others use.
constexpr uint64_t kMostProductWorkspace = uint64_t{32} << 20;
// That of every allocation: better aligned ones are no other case.
constexpr uintptr_t kMostProductAlignment = kBufferAlignment;

// Matrices of one call: kernels of the library have one for each in the grid's z, which ends at
// 65535. A round number, so that what follows is aligned as well.
constexpr int64_t kMostBatch = 63 * 1024;

absl::Status BlasStatus(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", cublasLtGetStatusString(status), " (",
                                        cublasLtGetStatusName(status), ")");
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(text);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(text);
  return absl::InternalError(text);
}

struct DestroyBlas {
  void operator()(cublasLtMatmulDesc_t matmul) const { cublasLtMatmulDescDestroy(matmul); }
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulPreference_t preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
template <typename Handle>
using OwnedBlas = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyBlas>;

constexpr absl::string_view kCannotDescribe = "cannot describe a product to cuBLASLt";

// Sets attributes of one descriptor and keeps the first error.
template <auto kSet, typename Handle>
class AttributeSetter {
 public:
  explicit AttributeSetter(Handle handle) : handle_(handle) {}

  template <typename Attribute, typename Value>
  AttributeSetter& Set(Attribute attribute, const Value& value) {
    if (first_ == CUBLAS_STATUS_SUCCESS) first_ = kSet(handle_, attribute, &value, sizeof(value));
    return *this;
  }
  absl::Status status() const { return BlasStatus(first_, kCannotDescribe); }

 private:
  const Handle handle_;
  cublasStatus_t first_ = CUBLAS_STATUS_SUCCESS;
};
using MatmulSetter = AttributeSetter<cublasLtMatmulDescSetAttribute, cublasLtMatmulDesc_t>;
using LayoutSetter = AttributeSetter<cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayout_t>;
using PreferenceSetter =
    AttributeSetter<cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreference_t>;

cudaDataType_t DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

absl::Status CheckProduct(const ProductShape& shape) {
  const bool wide = shape.dtype == DType::kFloat64;
  const bool half = shape.dtype == DType::kFloat16 || shape.dtype == DType::kBFloat16;
  if (!wide && !half && shape.dtype != DType::kFloat32) {
    return Unimplemented("a product of ", Name(shape.dtype), " on a GPU");
  }
  if (shape.out_dtype != shape.dtype && !(half && shape.out_dtype == DType::kFloat32)) {
    return Unimplemented("a product of ", Name(shape.dtype), " as ", Name(shape.out_dtype),
                         " on a GPU");
  }
  if (wide && (shape.bias || shape.activation != ProductActivation::kNone)) {
    return Unimplemented("a product of float64 with a bias or an activation on a GPU");
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max({shape.m, shape.n, shape.k}) > kMost) {
    return InvalidArgument("a product of ", shape.count, " matrices ", shape.m, " x ", shape.k,
                           " and ", shape.k, " x ", shape.n,
                           " on a GPU, expected sizes below 2^31");
  }
  return absl::OkStatus();
}

uint32_t AlignmentOf(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address) | kMostProductAlignment;
  return static_cast<uint32_t>(number & -number);
}

// A matrix with `rows` rows of `columns` elements as the library sees it: transposed.
struct StoredMatrix {
  DType dtype;
  int64_t rows;
  int64_t columns;
  int64_t step;
};
absl::StatusOr<OwnedBlas<cublasLtMatrixLayout_t>> MakeLayout(const StoredMatrix& matrix,
                                                             int64_t count) {
  cublasLtMatrixLayout_t layout = nullptr;
  INTERP_RETURN_IF_ERROR(
      BlasStatus(cublasLtMatrixLayoutCreate(&layout, DataTypeOf(matrix.dtype),
                                            static_cast<uint64_t>(matrix.columns),
                                            static_cast<uint64_t>(matrix.rows), matrix.columns),
                 kCannotDescribe));
  OwnedBlas<cublasLtMatrixLayout_t> owned(layout);
  INTERP_RETURN_IF_ERROR(LayoutSetter(layout)
                             .Set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(count))
                             .Set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.step)
                             .status());
  return owned;
}

uint32_t EpilogueOf(const ProductShape& shape) {
  switch (shape.activation) {
    case ProductActivation::kRelu:
      return shape.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case ProductActivation::kGeluTanh:
      return shape.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case ProductActivation::kNone:
      break;
  }
  return shape.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

cublasComputeType_t ComputeTypeOf(const ProductShape& shape) {
  if (shape.dtype == DType::kFloat64) return CUBLAS_COMPUTE_64F;
  const bool tf32 = shape.tf32 && shape.dtype == DType::kFloat32;
  return tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// The library's x is our y.
absl::StatusOr<OwnedBlas<cublasLtMatmulDesc_t>> MakeMatmul(const ProductShape& shape) {
  const bool wide = shape.dtype == DType::kFloat64;
  cublasLtMatmulDesc_t matmul = nullptr;
  INTERP_RETURN_IF_ERROR(BlasStatus(
      cublasLtMatmulDescCreate(&matmul, ComputeTypeOf(shape), wide ? CUDA_R_64F : CUDA_R_32F),
      kCannotDescribe));
  OwnedBlas<cublasLtMatmulDesc_t> owned(matmul);
  const auto operation = [](bool transposed) {
    return static_cast<int32_t>(transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  INTERP_RETURN_IF_ERROR(MatmulSetter(matmul)
                             .Set(CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.trans_y))
                             .Set(CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.trans_x))
                             .Set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(shape))
                             .status());
  return owned;
}

// Where a result of 16 bits is summed up in parts, these are added in the wider type: in that of
// the result they could overflow.
uint32_t ReductionsFor(DType out) {
  const bool narrow = out == DType::kFloat16 || out == DType::kBFloat16;
  return narrow ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
}

absl::StatusOr<OwnedBlas<cublasLtMatmulPreference_t>> MakePreference(
    DType out_dtype, const ProductOperands& operands) {
  cublasLtMatmulPreference_t preference = nullptr;
  INTERP_RETURN_IF_ERROR(BlasStatus(cublasLtMatmulPreferenceCreate(&preference), kCannotDescribe));
  OwnedBlas<cublasLtMatmulPreference_t> owned(preference);
  const uint32_t out = AlignmentOf(operands.out);
  INTERP_RETURN_IF_ERROR(
      PreferenceSetter(preference)
          .Set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostProductWorkspace)
          .Set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, ReductionsFor(out_dtype))
          .Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(operands.y))
          .Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(operands.x))
          .Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out)
          .Set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out)
          .status());
  return owned;
}

// What the sums of no terms become.
absl::Status RunWithoutTerms(const ProductShape& shape, const ProductOperands& operands,
                             cudaStream_t stream) {
  const auto size = static_cast<size_t>(shape.m * shape.n);
  for (int64_t i = 0; i < shape.count; ++i) {
    char* const out = static_cast<char*>(operands.out) +
                      static_cast<size_t>(i * shape.out_step) * SizeOf(shape.out_dtype);
    std::vector<ElementwiseStep> steps;
    if (shape.beta == 0) {
      INTERP_RETURN_IF_ERROR(
          ToStatus(cudaMemsetAsync(out, 0, size * SizeOf(shape.out_dtype), stream),
                   "cannot clear the result of a product"));
    } else if (shape.beta != 1) {
      steps.push_back({.op = ElementwiseOp::kScale, .a = static_cast<float>(shape.beta)});
    }
    if (shape.bias) steps.push_back({.op = ElementwiseOp::kAdd, .operand = 1});
    if (shape.activation == ProductActivation::kRelu) steps.push_back({ElementwiseOp::kRelu});
    if (shape.activation == ProductActivation::kGeluTanh) {
      steps.push_back({ElementwiseOp::kGeluTanh});
    }
    if (steps.empty()) continue;
    const int64_t dims[] = {shape.m, shape.n};
    const int64_t bias_dims[] = {1, shape.n};
    std::vector<ElementwiseOperand> values = {{out, dims}};
    if (shape.bias) values.push_back({operands.bias, bias_dims});
    INTERP_RETURN_IF_ERROR(Elementwise(shape.out_dtype, steps, values, dims, out, stream));
  }
  return absl::OkStatus();
}

}  // namespace

struct ProductPlans::Plan {
  OwnedBlas<cublasLtMatmulDesc_t> matmul;
  OwnedBlas<cublasLtMatrixLayout_t> x;
  OwnedBlas<cublasLtMatrixLayout_t> y;
  OwnedBlas<cublasLtMatrixLayout_t> out;
  cublasLtMatmulAlgo_t algorithm = {};
  size_t workspace_bytes = 0;
};

ProductPlans::ProductPlans() = default;
ProductPlans::~ProductPlans() = default;

absl::StatusOr<std::unique_ptr<BlasHandle>> BlasHandle::Make() {
  int device = 0;
  INTERP_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&device), "cannot start cuBLASLt"));
  cublasLtHandle_t handle = nullptr;
  INTERP_RETURN_IF_ERROR(BlasStatus(cublasLtCreate(&handle), "cannot start cuBLASLt"));
  return std::unique_ptr<BlasHandle>(new BlasHandle(handle, device));
}

BlasHandle::~BlasHandle() {
  const CurrentDevice current(device_);
  cublasLtDestroy(handle_);
}

// Descriptors and the algorithm for addresses aligned as those of `operands`.
absl::StatusOr<std::unique_ptr<ProductPlans::Plan>> ProductPlans::MakePlan(
    const BlasHandle& blas, const ProductShape& shape, const ProductOperands& operands) {
  auto plan = std::make_unique<Plan>();
  INTERP_ASSIGN_OR_RETURN(plan->matmul, MakeMatmul(shape));
  // The heuristic looks at how the bias is aligned.
  INTERP_RETURN_IF_ERROR(MatmulSetter(plan->matmul.get())
                             .Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias)
                             .status());
  const int64_t x_rows = shape.trans_x ? shape.k : shape.m;
  const int64_t y_rows = shape.trans_y ? shape.n : shape.k;
  INTERP_ASSIGN_OR_RETURN(
      plan->x,
      MakeLayout({shape.dtype, x_rows, shape.m + shape.k - x_rows, shape.x_step}, shape.count));
  INTERP_ASSIGN_OR_RETURN(
      plan->y,
      MakeLayout({shape.dtype, y_rows, shape.n + shape.k - y_rows, shape.y_step}, shape.count));
  INTERP_ASSIGN_OR_RETURN(
      plan->out, MakeLayout({shape.out_dtype, shape.m, shape.n, shape.out_step}, shape.count));
  INTERP_ASSIGN_OR_RETURN(const auto preference, MakePreference(shape.out_dtype, operands));
  cublasLtMatmulHeuristicResult_t choice = {};
  int choices = 0;
  cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      blas.get(), plan->matmul.get(), plan->y.get(), plan->x.get(), plan->out.get(),
      plan->out.get(), preference.get(), /*requested=*/1, &choice, &choices);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = choices == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : choice.state;
  }
  INTERP_RETURN_IF_ERROR(
      BlasStatus(status, absl::StrCat("cuBLASLt finds no algorithm for ", shape.count,
                                      " products of ", Name(shape.dtype), ", ", shape.m, " x ",
                                      shape.k, " by ", shape.k, " x ", shape.n)));
  plan->algorithm = choice.algo;
  plan->workspace_bytes = choice.workspaceSize;
  return plan;
}

absl::StatusOr<ProductPlans::Plan*> ProductPlans::Find(const BlasHandle& blas,
                                                       const ProductShape& shape,
                                                       const ProductOperands& operands) {
  nn::ShapeCache<Plan>::Key key = {static_cast<int64_t>(shape.dtype),
                                   static_cast<int64_t>(shape.out_dtype),
                                   shape.tf32,
                                   shape.m,
                                   shape.n,
                                   shape.k,
                                   shape.trans_x,
                                   shape.trans_y,
                                   shape.count,
                                   shape.x_step,
                                   shape.y_step,
                                   shape.out_step,
                                   EpilogueOf(shape),
                                   AlignmentOf(operands.x),
                                   AlignmentOf(operands.y),
                                   AlignmentOf(operands.out),
                                   AlignmentOf(operands.bias)};
  if (Plan* const plan = plans_.Find(key)) return plan;
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(blas, shape, operands));
  return &plans_.Insert(std::move(key), std::move(plan));
}

absl::Status ProductPlans::Run(const BlasHandle& blas, const ProductShape& shape,
                               const ProductOperands& operands, cudaStream_t stream,
                               TakeWorkspace workspace) {
  INTERP_RETURN_IF_ERROR(CheckProduct(shape));
  if (shape.count == 0 || shape.m == 0 || shape.n == 0) return absl::OkStatus();
  if (shape.k == 0) return RunWithoutTerms(shape, operands, stream);
  const auto bytes = static_cast<int64_t>(SizeOf(shape.dtype));
  const auto out_bytes = static_cast<int64_t>(SizeOf(shape.out_dtype));
  for (int64_t first = 0; first < shape.count; first += kMostBatch) {
    ProductShape piece = shape;
    piece.count = std::min(kMostBatch, shape.count - first);
    const ProductOperands at = {
        .x = static_cast<const char*>(operands.x) + first * shape.x_step * bytes,
        .y = static_cast<const char*>(operands.y) + first * shape.y_step * bytes,
        .bias = operands.bias,
        .out = static_cast<char*>(operands.out) + first * shape.out_step * out_bytes};
    INTERP_RETURN_IF_ERROR(RunAtOnce(blas, piece, at, stream, workspace));
  }
  return absl::OkStatus();
}

absl::Status ProductPlans::RunAtOnce(const BlasHandle& blas, const ProductShape& shape,
                                     const ProductOperands& operands, cudaStream_t stream,
                                     TakeWorkspace workspace) {
  INTERP_ASSIGN_OR_RETURN(Plan* const plan, Find(blas, shape, operands));
  if (shape.bias) {
    INTERP_RETURN_IF_ERROR(MatmulSetter(plan->matmul.get())
                               .Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias)
                               .status());
  }
  std::optional<Workspace> work;
  if (plan->workspace_bytes > 0) {
    INTERP_ASSIGN_OR_RETURN(work, workspace(plan->workspace_bytes));
  }
  const float factors[] = {static_cast<float>(shape.alpha), static_cast<float>(shape.beta)};
  const bool wide = shape.dtype == DType::kFloat64;
  const void* const alpha = wide ? static_cast<const void*>(&shape.alpha) : &factors[0];
  const void* const beta = wide ? static_cast<const void*>(&shape.beta) : &factors[1];
  return BlasStatus(
      cublasLtMatmul(blas.get(), plan->matmul.get(), alpha, operands.y, plan->y.get(), operands.x,
                     plan->x.get(), beta, operands.out, plan->out.get(), operands.out,
                     plan->out.get(), &plan->algorithm, work.has_value() ? work->data() : nullptr,
                     plan->workspace_bytes, stream),
      "cannot enqueue a product");
}

}  // namespace interp::cuda
