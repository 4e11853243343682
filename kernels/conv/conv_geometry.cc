#include "kernels/conv/conv_geometry.h"

#include "absl/strings/match.h"

namespace interp::nn {
namespace {

using dnnl::memory;

memory::dims ImageDims(int64_t batch, int64_t channels, const Window& window, bool output) {
  memory::dims dims = {batch, channels};
  for (int i = 0; i < window.rank; ++i) dims.push_back(output ? window[i].out : window[i].in);
  return dims;
}

MemDesc ImageDesc(const memory::dims& dims, DType dtype) {
  const auto tag = dims.size() == 4 ? memory::format_tag::nhwc : memory::format_tag::ndhwc;
  return MemDesc(dims, DataType(dtype), tag);
}

// Padding at the end so that the last window just fits; negative where input is left over.
int64_t FittedPad(const WindowAxis& axis) {
  return (axis.out - 1) * axis.stride + axis.extent() - axis.in - axis.pad_begin;
}

}  // namespace

ConvGeometry MakeGeometry(const ConvProblem& problem, bool bias, DType dtype) {
  return MakeGeometry(problem, bias, dtype, dtype);
}

ConvGeometry MakeGeometry(const ConvProblem& problem, bool bias, DType dtype, DType out_dtype) {
  const Window& window = problem.window;
  ConvGeometry g;
  g.src = ImageDesc(ImageDims(problem.batch, problem.in_channels, window, /*output=*/false), dtype);
  g.dst =
      ImageDesc(ImageDims(problem.batch, problem.out_channels, window, /*output=*/true), out_dtype);
  memory::dims filter = {problem.group_out(), problem.group_in()};
  if (problem.groups > 1) filter.insert(filter.begin(), problem.groups);
  for (int i = 0; i < window.rank; ++i) {
    filter.push_back(window[i].kernel);
    g.strides.push_back(window[i].stride);
    g.dilations.push_back(window[i].dilation - 1);
    g.pad_begin.push_back(window[i].pad_begin);
    g.pad_end.push_back(FittedPad(window[i]));
  }
  g.plain_filter = StridedDesc(filter, {}, DataType(dtype));
  g.any_filter = AnyDesc(filter, DataType(dtype));
  g.any_filter_sum = AnyDesc(filter);
  if (bias) g.bias = StridedDesc({problem.out_channels}, {});
  return g;
}

bool IsReference(const std::string& name) {
  return absl::StartsWith(name, "ref") || absl::StrContains(name, ":ref");
}

bool IsUsable(const ConvProblem& problem, const std::string& name) {
  const auto few_and_odd = [](int64_t channels) { return channels < 16 && channels % 2 == 1; };
  const bool wrong = problem.groups == 1 && absl::StartsWith(name, "jit_bf16_1x1") &&
                     (few_and_odd(problem.in_channels) || few_and_odd(problem.out_channels));
  return !IsReference(name) && !wrong;
}

}  // namespace interp::nn
