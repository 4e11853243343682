// A convolution as oneDNN takes it. Images are channels-last.
#pragma once

#include <string>

#include "kernels/nn/conv_problem.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Descriptors and window lists.
struct ConvGeometry {
  MemDesc src, dst, plain_filter, any_filter, bias;
  dnnl::memory::dims strides, dilations, pad_begin, pad_end;
};

// May throw; call inside CatchErrors.
ConvGeometry MakeGeometry(const ConvProblem& problem, bool bias);

// Whether an implementation of that name is one of oneDNN's plain loops, which are slower than
// ours.
bool IsReference(const std::string& name);

}  // namespace interp::nn
