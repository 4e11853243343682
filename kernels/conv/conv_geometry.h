// A convolution as oneDNN takes it. Images are channels-last.
#pragma once

#include <string>

#include "kernels/conv/conv_problem.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Descriptors and window lists. Images have the dtypes asked for, the bias is float32.
struct ConvGeometry {
  MemDesc src, dst, plain_filter, any_filter, bias;
  MemDesc any_filter_sum;  // any_filter in float32: what sums of filter gradients are kept in
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;
};

// May throw; call inside CatchErrors.
ConvGeometry MakeGeometry(const ConvProblem& problem, bool bias, DType dtype);
// The same with results of another dtype.
ConvGeometry MakeGeometry(const ConvProblem& problem, bool bias, DType dtype, DType out_dtype);

// Whether an implementation of that name is one of oneDNN's plain loops, which are slower than
// ours.
bool IsReference(const std::string& name);

// Whether an implementation of that name is no plain loop and right. Those of 1x1 windows of
// bfloat16 give wrong sums of an odd number of channels below 16, for some numbers of pixels
// (oneDNN 2.6.3).
bool IsUsable(const ConvProblem& problem, const std::string& name);

}  // namespace interp::nn
