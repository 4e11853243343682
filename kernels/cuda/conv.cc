#include "kernels/cuda/conv.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/conv/conv_onednn.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/strided_copy.h"
#include "kernels/util/strides.h"

namespace interp::cuda {
namespace {

using nn::ConvProblem;
using nn::WindowAxis;

// Engines that want more are left out while there are others.
constexpr int64_t kMostConvWorkspace = int64_t{256} << 20;

// The three tensors of a convolution, by which cuDNN is told their memory.
enum TensorId : int64_t { kImage = 1, kFilter = 2, kResult = 3 };
struct TensorIds {
  TensorId first, second, out;
};
TensorIds IdsOf(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::kDataGrad:
      return {kFilter, kResult, kImage};
    case ConvDirection::kFilterGrad:
      return {kImage, kResult, kFilter};
    case ConvDirection::kForward:
      break;
  }
  return {kImage, kFilter, kResult};
}

absl::string_view NameOf(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::kDataGrad:
      return "the gradient of a convolution by its input";
    case ConvDirection::kFilterGrad:
      return "the gradient of a convolution by its filter";
    case ConvDirection::kForward:
      break;
  }
  return "a convolution";
}

std::vector<int64_t> DimsOf(const ConvProblem& problem, TensorId id) {
  std::vector<int64_t> dims = {problem.batch, problem.in_channels};
  if (id == kFilter) dims = {problem.out_channels, problem.group_in()};
  if (id == kResult) dims = {problem.batch, problem.out_channels};
  for (int i = 0; i < problem.window.rank; ++i) {
    const WindowAxis& axis = problem.window[i];
    dims.push_back(id == kImage ? axis.in : id == kFilter ? axis.kernel : axis.out);
  }
  return dims;
}

int64_t SizeOfTensor(const ConvProblem& problem, TensorId id) {
  const std::vector<int64_t> dims = DimsOf(problem, id);
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

cudnnDataType_t CudnnTypeOf(DType dtype) {
  if (dtype == DType::kFloat16) return CUDNN_DATA_HALF;
  return dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

absl::StatusOr<CudnnDescriptor> DescribeTensor(const ConvTask& task, TensorId id,
                                               int64_t alignment_bytes) {
  const std::vector<int64_t> dims = DimsOf(task.problem, id);
  INTERP_ASSIGN_OR_RETURN(CudnnDescriptor tensor,
                          CudnnDescriptor::Make(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(
      tensor.SetOne(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CudnnTypeOf(task.dtype))
          .SetInts(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
          .SetInts(CUDNN_ATTR_TENSOR_STRIDES, DenseStrides(dims))
          .SetInts(CUDNN_ATTR_TENSOR_UNIQUE_ID, {static_cast<int64_t>(id)})
          .SetInts(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {alignment_bytes})
          .Finalize("cannot describe a tensor to cuDNN"));
  return tensor;
}

absl::StatusOr<CudnnDescriptor> DescribeWindow(const nn::Window& window) {
  std::vector<int64_t> dilations, strides, paddings;
  for (int i = 0; i < window.rank; ++i) {
    dilations.push_back(window[i].dilation);
    strides.push_back(window[i].stride);
    paddings.push_back(window[i].pad_begin);
  }
  INTERP_ASSIGN_OR_RETURN(CudnnDescriptor conv,
                          CudnnDescriptor::Make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(
      conv.SetOne(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
          .SetOne(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                  CUDNN_CROSS_CORRELATION)
          .SetInts(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {int64_t{window.rank}})
          .SetInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
          .SetInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
          .SetInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, paddings)
          .SetInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, paddings)
          .Finalize("cannot describe a window to cuDNN"));
  return conv;
}

// What an operation of each direction calls its parts.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t conv, image, filter, result, alpha, beta;
};
OperationNames NamesOf(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::kDataGrad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvDirection::kFilterGrad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvDirection::kForward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// A graph of one operation. Its parts must live as long as it does.
struct ConvGraph {
  CudnnDescriptor image, filter, result, window, operation, graph;
};
absl::StatusOr<ConvGraph> MakeGraph(const CudnnHandle& cudnn, const ConvTask& task,
                                    int64_t alignment_bytes) {
  ConvGraph parts;
  INTERP_ASSIGN_OR_RETURN(parts.image, DescribeTensor(task, kImage, alignment_bytes));
  INTERP_ASSIGN_OR_RETURN(parts.filter, DescribeTensor(task, kFilter, alignment_bytes));
  INTERP_ASSIGN_OR_RETURN(parts.result, DescribeTensor(task, kResult, alignment_bytes));
  INTERP_ASSIGN_OR_RETURN(parts.window, DescribeWindow(task.problem.window));
  const OperationNames names = NamesOf(task.direction);
  INTERP_ASSIGN_OR_RETURN(parts.operation, CudnnDescriptor::Make(names.type));
  INTERP_RETURN_IF_ERROR(parts.operation.SetDescriptor(names.conv, parts.window)
                             .SetDescriptor(names.image, parts.image)
                             .SetDescriptor(names.filter, parts.filter)
                             .SetDescriptor(names.result, parts.result)
                             .SetOne(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
                             .SetOne(names.beta, CUDNN_TYPE_FLOAT, 0.0F)
                             .Finalize("cannot describe a convolution to cuDNN"));
  INTERP_ASSIGN_OR_RETURN(parts.graph,
                          CudnnDescriptor::Make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(
      parts.graph.SetOne(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cudnn.get())
          .SetDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts.operation)
          .Finalize("cannot describe a convolution to cuDNN"));
  return parts;
}

// Whether an engine that says this of itself computes what `task` asks for.
bool Allows(const ConvTask& task, cudnnBackendNumericalNote_t note) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      return false;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return task.dtype != DType::kFloat32 || task.tf32;  // they multiply float32 as TF32
    case CUDNN_NUMERICAL_NOTE_FFT:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
      return task.algorithms == Algorithms::kFast;
    default:
      return true;
  }
}

// Whether windows come out right with pad_begin at both ends.
bool PadsEvenly(const WindowAxis& axis) {
  const int64_t needed_end =
      (axis.out - 1) * axis.stride + axis.extent() - axis.in - axis.pad_begin;
  return axis.pad_begin >= needed_end && axis.pad_begin < needed_end + axis.stride;
}

// The problem on an image that has the padding of uneven axes in it. `begins`: where the image lies
// in that.
ConvProblem PutPaddingIntoImage(ConvProblem problem, std::vector<int64_t>& begins) {
  for (int i = 0; i < problem.window.rank; ++i) {
    WindowAxis& axis = problem.window[i];
    const bool even = PadsEvenly(axis);
    begins.push_back(even ? 0 : axis.pad_begin);
    if (even) continue;
    axis.in = std::max(axis.in + axis.pad_begin, (axis.out - 1) * axis.stride + axis.extent());
    axis.pad_begin = axis.pad_end = 0;
  }
  return problem;
}

int64_t CommonAlignment(const ConvOperands& operands) {
  const auto bits = reinterpret_cast<uintptr_t>(operands.first) |
                    reinterpret_cast<uintptr_t>(operands.second) |
                    reinterpret_cast<uintptr_t>(operands.out) | kBufferAlignment;
  return static_cast<int64_t>(bits & -bits);
}

}  // namespace

struct ConvPlans::Plan {
  ConvGraph graph;
  CudnnDescriptor config;
  CudnnDescriptor plan;
  int64_t engine = -1;
  int64_t workspace_bytes = 0;
};

ConvPlans::ConvPlans() = default;
ConvPlans::~ConvPlans() = default;

std::string ConvPlans::engine() const {
  return engine_ < 0 ? "" : absl::StrCat("cudnn engine ", engine_);
}

// Plans the computation by `engine`. Unimplemented where it cannot do it, or not as is promised.
absl::Status ConvPlans::PlanWith(CudnnEngine& engine, const CudnnHandle& cudnn,
                                 const ConvTask& task, Plan& plan) {
  for (const cudnnBackendNumericalNote_t note : engine.notes) {
    if (!Allows(task, note)) return Unimplemented("engine ", engine.index, " computes otherwise");
  }
  INTERP_ASSIGN_OR_RETURN(plan.plan,
                          CudnnDescriptor::Make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(
      plan.plan.SetOne(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cudnn.get())
          .SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config)
          .Finalize("cannot plan a convolution"));
  int64_t count = 0;
  INTERP_RETURN_IF_ERROR(CudnnStatus(
      cudnnBackendGetAttribute(plan.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                               CUDNN_TYPE_INT64, 1, &count, &plan.workspace_bytes),
      "cannot ask how much memory a convolution takes"));
  if (plan.workspace_bytes > kMostConvWorkspace) {
    return Unimplemented("engine ", engine.index, " wants ", plan.workspace_bytes, " bytes");
  }
  plan.config = std::move(engine.config);
  plan.engine = engine.index;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ConvPlans::Plan>> ConvPlans::MakePlan(const CudnnHandle& cudnn,
                                                                     const ConvTask& task,
                                                                     int64_t alignment_bytes) {
  auto plan = std::make_unique<Plan>();
  INTERP_ASSIGN_OR_RETURN(plan->graph, MakeGraph(cudnn, task, alignment_bytes));
  absl::Status last = Unimplemented("the heuristics name none");
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    absl::StatusOr<std::vector<CudnnEngine>> engines = CudnnEngines(plan->graph.graph, mode);
    if (!engines.ok()) {
      last = engines.status();
      continue;
    }
    for (CudnnEngine& engine : *engines) {
      last = PlanWith(engine, cudnn, task, *plan);
      if (last.ok()) return plan;
      if (absl::IsResourceExhausted(last)) return last;
    }
  }
  return absl::Status(last.code(),
                      absl::StrCat("no engine of cuDNN computes ", NameOf(task.direction), " of ",
                                   Name(task.dtype), "; the last one: ", last.message()));
}

absl::Status ConvPlans::RunEven(const CudnnHandle& cudnn, const ConvTask& task,
                                const ConvOperands& operands, TakeWorkspace workspace) {
  const int64_t alignment = CommonAlignment(operands);
  nn::ShapeCache<int>::Key key = nn::KeyOf(task.problem, /*num_threads=*/0);
  key.insert(key.end(), {static_cast<int64_t>(task.direction), static_cast<int64_t>(task.dtype),
                         static_cast<int64_t>(task.algorithms), task.tf32, alignment});
  Plan* plan = plans_.Find(key);
  if (plan == nullptr) {
    INTERP_ASSIGN_OR_RETURN(std::unique_ptr<Plan> made, MakePlan(cudnn, task, alignment));
    plan = &plans_.Insert(std::move(key), std::move(made));
  }
  engine_ = plan->engine;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          workspace(static_cast<size_t>(plan->workspace_bytes)));
  const TensorIds ids = IdsOf(task.direction);
  const std::array<void*, 3> pointers = {const_cast<void*>(operands.first),
                                         const_cast<void*>(operands.second), operands.out};
  INTERP_ASSIGN_OR_RETURN(CudnnDescriptor pack,
                          CudnnDescriptor::Make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  INTERP_RETURN_IF_ERROR(
      pack.SetInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {ids.first, ids.second, ids.out})
          .Set<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers)
          .SetOne(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, work.data())
          .Finalize("cannot tell cuDNN the memory of a convolution"));
  return CudnnStatus(cudnnBackendExecute(cudnn.get(), plan->plan.get(), pack.get()),
                     absl::StrCat("cannot enqueue ", NameOf(task.direction)));
}

absl::Status ConvPlans::RunPadded(const CudnnHandle& cudnn, const ConvTask& task,
                                  const ConvTask& even, absl::Span<const int64_t> begins,
                                  const ConvOperands& operands, TakeWorkspace workspace) {
  const std::vector<int64_t> dims = DimsOf(task.problem, kImage);
  const std::vector<int64_t> strides = DenseStrides(dims);
  const std::vector<int64_t> padded_strides = DenseStrides(DimsOf(even.problem, kImage));
  const size_t element = SizeOf(task.dtype);
  const size_t padded_bytes = static_cast<size_t>(SizeOfTensor(even.problem, kImage)) * element;
  INTERP_ASSIGN_OR_RETURN(const Workspace padded, workspace(padded_bytes));
  int64_t offset = 0;
  for (size_t d = 2; d < dims.size(); ++d) offset += begins[d - 2] * padded_strides[d];
  char* const inside = padded.data<char>() + static_cast<size_t>(offset) * element;
  ConvOperands moved = operands;
  if (task.direction == ConvDirection::kDataGrad) {
    moved.out = padded.data();
    INTERP_RETURN_IF_ERROR(RunEven(cudnn, even, moved, workspace));
    return StridedCopy(static_cast<int>(element), dims, {inside, padded_strides},
                       {operands.out, strides}, cudnn.stream());
  }
  moved.first = padded.data();
  INTERP_RETURN_IF_ERROR(ToStatus(cudaMemsetAsync(padded.data(), 0, padded_bytes, cudnn.stream()),
                                  "cannot clear the padding of a convolution"));
  INTERP_RETURN_IF_ERROR(StridedCopy(static_cast<int>(element), dims, {operands.first, strides},
                                     {inside, padded_strides}, cudnn.stream()));
  return RunEven(cudnn, even, moved, workspace);
}

absl::Status ConvPlans::Run(const CudnnHandle& cudnn, const ConvTask& task,
                            const ConvOperands& operands, TakeWorkspace workspace) {
  const ConvProblem& problem = task.problem;
  const size_t element = SizeOf(task.dtype);
  if (task.dtype != DType::kFloat32 && element != 2) {
    return Unimplemented(NameOf(task.direction), " of ", Name(task.dtype), " on a GPU");
  }
  const int64_t out_size = SizeOfTensor(problem, IdsOf(task.direction).out);
  if (out_size == 0) return absl::OkStatus();
  if (SizeOfTensor(problem, kResult) == 0) {
    return ToStatus(
        cudaMemsetAsync(operands.out, 0, static_cast<size_t>(out_size) * element, cudnn.stream()),
        "cannot clear a gradient");
  }
  std::vector<int64_t> begins;
  ConvTask even = task;
  even.problem = PutPaddingIntoImage(problem, begins);
  if (std::all_of(begins.begin(), begins.end(), [](int64_t begin) { return begin == 0; }) &&
      SizeOfTensor(even.problem, kImage) == SizeOfTensor(problem, kImage)) {
    return RunEven(cudnn, even, operands, workspace);
  }
  return RunPadded(cudnn, task, even, begins, operands, workspace);
}

}  // namespace interp::cuda
