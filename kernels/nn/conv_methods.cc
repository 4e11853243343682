#include "kernels/nn/conv_methods.h"

#include "kernels/nn/conv_by_tap.h"
#include "kernels/nn/conv_few_outputs.h"
#include "kernels/nn/conv_grouped.h"
#include "kernels/nn/conv_product.h"

namespace interp::nn {
namespace {

constexpr auto kNoWork = [](const ConvProblem&, int) { return size_t{0}; };

template <auto kRun>
void RunWithoutWork(const ConvProblem& problem, const ConvEpilogue& epilogue, const float* packed,
                    const float* bias, const float* in, float* out, int num_threads,
                    float* /*work*/) {
  kRun(problem, epilogue, packed, bias, in, out, num_threads);
}

// 1 is Winograd's method, which takes other filters, too, and 2 the taps behind a 1x1 convolution.
constexpr ConvMethod kMethods[] = {
    {"product of taps", 4, ConvFewOutputsPays, ConvFewOutputsFilterSize, PackConvFewOutputsFilter,
     ConvFewOutputsWorkBytes, RunConvFewOutputs},
    {"product", 3, ConvProductPays, ConvProductFilterSize, PackConvProductFilter,
     [](const ConvProblem& problem, int) { return ConvProductWorkBytes(problem); }, RunConvProduct},
    {"product by tap", 5, ConvByTapPays, ConvByTapFilterSize, PackConvByTapFilter, kNoWork,
     RunWithoutWork<RunConvByTap>},
    {"groups in vectors", 6, ConvGroupedPays, ConvGroupedFilterSize, PackConvGroupedFilter, kNoWork,
     RunWithoutWork<RunConvGrouped>},
};

}  // namespace

absl::Span<const ConvMethod> ConvMethods() { return kMethods; }

const ConvMethod* FindConvMethod(const ConvProblem& problem) {
  for (const ConvMethod& method : kMethods) {
    if (method.pays(problem)) return &method;
  }
  return nullptr;
}

}  // namespace interp::nn
