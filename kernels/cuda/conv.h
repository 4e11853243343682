// Convolutions and their gradients, by the graphs of cuDNN.
//
// Images are [batch, channels, spatial dims], filters [out channels, in channels of a group,
// kernel]. float32 is computed as float32 unless ConvTask::tf32 allows less, sums of 16-bit floats
// are taken in float32, and engines that add in changing orders are left out, so that runs repeat
// to the bit.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/algorithms.h"
#include "core/dtype.h"
#include "core/status.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/take_workspace.h"
#include "kernels/nn/onednn.h"

namespace interp::cuda {

// What is computed of image, filter and result of a convolution, from the other two, in this order.
enum class ConvDirection : int8_t {
  kForward,     // the result, from image and filter
  kDataGrad,    // the image's gradient, from filter and the result's: a transposed convolution
  kFilterGrad,  // the filter's gradient, from image and the result's
};

struct ConvTask {
  ConvDirection direction = ConvDirection::kForward;
  DType dtype = DType::kFloat32;              // of all tensors: float32, float16 or bfloat16
  Algorithms algorithms = Algorithms::kFast;  // kDirect: no transforms by Fourier or Winograd
  bool tf32 = false;                          // factors of float32 may be rounded to TF32
  // in_channels and axes' `in` are those of the image, also of kDataGrad.
  nn::ConvProblem problem;
};

// Memory of the device.
struct ConvOperands {
  const void* first = nullptr;
  const void* second = nullptr;
  void* out = nullptr;
};

// What one instruction keeps for the cases it met last: plans of cuDNN.
// Thread-safety: none.
class ConvPlans {
 public:
  ConvPlans();
  ~ConvPlans();

  // Enqueues the computation on the stream of the handle. Nothing runs where `out` has no elements;
  // a filter's gradient by no images is 0. cuDNN pads both ends alike: where that does not give the
  // windows, a padded copy of the image is made.
  // Errors: Unimplemented for dtypes and cases that no engine computes, ResourceExhausted for
  // memory.
  absl::Status Run(const CudnnHandle& cudnn, const ConvTask& task, const ConvOperands& operands,
                   TakeWorkspace workspace);

  // What the last run computed with: "cudnn engine 38"; empty before.
  std::string engine() const;

 private:
  struct Plan;

  static absl::Status PlanWith(CudnnEngine& engine, const CudnnHandle& cudnn, const ConvTask& task,
                               Plan& plan);
  static absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const CudnnHandle& cudnn,
                                                        const ConvTask& task,
                                                        int64_t alignment_bytes);
  // The problem of `task` pads both ends alike.
  absl::Status RunEven(const CudnnHandle& cudnn, const ConvTask& task, const ConvOperands& operands,
                       TakeWorkspace workspace);
  // The same by way of `even`, whose image has that of `task` in it from `begins` on.
  absl::Status RunPadded(const CudnnHandle& cudnn, const ConvTask& task, const ConvTask& even,
                         absl::Span<const int64_t> begins, const ConvOperands& operands,
                         TakeWorkspace workspace);

  nn::ShapeCache<Plan> plans_;
  int64_t engine_ = -1;  // of the last run
};

}  // namespace interp::cuda
