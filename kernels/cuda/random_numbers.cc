#include "kernels/cuda/random_numbers.h"

#include "core/op_def.h"
#include "core/resource/random_addresses.h"

namespace interp::cuda {

absl::StatusOr<RandomNumbers> RandomNumbersOf(const KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const RandomAddresses* const addresses,
                          RandomAddresses::Of(ctx.place_resources()));
  return RandomNumbers{.stream = ctx.random(), .address = addresses->Find(ctx.instruction())};
}

}  // namespace interp::cuda
