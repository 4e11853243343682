#include "kernels/conv/conv_methods.h"

#include "kernels/conv/conv_by_tap.h"
#include "kernels/conv/conv_few_outputs.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_product.h"
#include "kernels/conv/conv_spread_depthwise.h"

namespace interp::nn {

const ConvMethod* FindConvMethod(const ConvProblem& problem) {
  for (const ConvMethod* method :
       {&kConvFewOutputs, &kConvProduct, &kConvByTap, &kConvGrouped, &kConvSpreadDepthwise}) {
    if (method->pays(problem)) return method;
  }
  return nullptr;
}

}  // namespace interp::nn
