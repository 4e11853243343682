// Attributes of optimizers that kernels of several places read.
#pragma once

#include <cstdint>
#include <vector>

namespace interp::optimizer {

// Of adagrad and decayed_adagrad.
struct AdagradAttrs {
  float keep = 1;  // of the moment
  float add = 1;   // of the squared gradient
  float epsilon = 1e-6f;
};

struct AdadeltaAttrs {
  float rho, epsilon;
};

struct AdamaxAttrs {
  float beta1, beta2, epsilon;
};

struct LarsAttrs {
  float mu, coefficient, epsilon, rescale;
  std::vector<float> decay = {};  // one for each parameter, or one for all
};

struct RmspropAttrs {
  float epsilon, decay, momentum;
  bool centered;
};

struct LambAttrs {
  float beta1, beta2, epsilon, decay;
  bool always_adapt;
};

struct LossScalingAttrs {
  int32_t grow_after = 0;
  int32_t shrink_after = 0;
  float grow = 0;
  float shrink = 0;
  bool stop = false;  // the scale and the counts stay as they are
};

}  // namespace interp::optimizer
