#include "core/resource/random_stream.h"

#include <random>

namespace interp {

uint64_t EntropySeed() {
  std::random_device device;
  const uint64_t seed = (uint64_t{device()} << 32) | device();
  return seed != 0 ? seed : 1;
}

}  // namespace interp
