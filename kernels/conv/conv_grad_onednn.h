// The gradients of a convolution by oneDNN primitives on channels-last images of float32 or
// bfloat16. Sums are taken in float32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Gradient by the input, for one problem, one dtype of images and filter, and one number of
// threads. Thread-safety: not for concurrent use.
class OnednnConvDataGrad {
 public:
  // Error Unimplemented when oneDNN has nothing but its reference loops for the case.
  static absl::StatusOr<std::unique_ptr<OnednnConvDataGrad>> Make(const ConvProblem& problem,
                                                                  DType dtype);
  // `filter` is in dense O,I,kernel order.
  absl::Status Run(const KernelContext& ctx, const void* filter, const void* out_grad,
                   void* in_grad);
  const std::string& implementation() const { return implementation_; }

 private:
  std::unique_ptr<Primitive> primitive_;
  std::unique_ptr<FormatCopy> pack_;
  dnnl::memory packed_;
  std::string implementation_;
  int in_grad_ = 0;
  int out_grad_ = 0;
};

// Gradient by the filter. The images of a batch are cut into parts that depend on the problem
// alone; each part is one thread's, and the parts' results are added in their order. So the bits do
// not depend on the number of threads.
// Thread-safety: not for concurrent use.
class OnednnConvFilterGrad {
 public:
  static absl::StatusOr<std::unique_ptr<OnednnConvFilterGrad>> Make(const ConvProblem& problem,
                                                                    int num_threads, DType dtype);
  // `filter_grad` gets dense O,I,kernel order.
  absl::Status Run(const KernelContext& ctx, const void* in, const void* out_grad,
                   void* filter_grad);
  const std::string& implementation() const { return implementation_; }

 private:
  // A run of images and what one thread needs to do it.
  struct Part {
    int64_t first_image = 0;
    dnnl::memory sum;
    std::unique_ptr<Primitive> primitive;
    int in = 0;
    int out_grad = 0;
  };
  absl::Status AddPart(const ConvProblem& problem, DType dtype, int64_t first, int64_t images);
  absl::Status RunParts(const KernelContext& ctx, const void* in, const void* out_grad);
  void AddUp(int num_threads);

  std::vector<Part> parts_;
  std::unique_ptr<FormatCopy> unpack_;
  MemDesc sum_desc_;
  std::string implementation_;
  size_t scratchpad_bytes_ = 0;
  int64_t in_image_bytes_ = 0;
  int64_t out_image_bytes_ = 0;
};

}  // namespace interp::nn
