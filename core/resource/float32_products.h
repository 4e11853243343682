// Float32Products: how a place multiplies float32, for the kernels that ask a library to.
#pragma once

#include <memory>

#include "core/resource/place_resources.h"

namespace interp {

struct Float32Products {
  // Factors may be rounded to TF32, with 10 bits of fraction, of which tensor cores take products;
  // sums stay float32 (NVIDIA, "Accelerating AI Training with NVIDIA TF32 Tensor Cores").
  bool as_tf32 = false;

  // Those of the place, exact ones where nobody has set others. To be set before kernels run, and
  // read alone from then on.
  static absl::StatusOr<Float32Products*> Of(PlaceResources& place) {
    return place.GetOrMake<Float32Products>(
        "", []() -> absl::StatusOr<std::unique_ptr<Float32Products>> {
          return std::make_unique<Float32Products>();
        });
  }
};

}  // namespace interp
