// RandomAddresses: where kernels that a device repeats as they are find their random numbers.
//
// A graph (core/device/device.h, WorkGraph) has the same kernels with the same arguments in every
// run, but their random numbers are others. So such a kernel is given the address of its
// RandomStream in memory of the device instead of the stream, which is put there before each run:
// interpreter/run/graph_random.h.
#pragma once

#include <map>
#include <memory>

#include "core/resource/place_resources.h"
#include "core/resource/random_stream.h"

namespace interp {

// Thread-safety: Find from any thread, and none during Set.
class RandomAddresses {
 public:
  // Those of a place, empty where nobody has set any.
  static absl::StatusOr<RandomAddresses*> Of(PlaceResources& place) {
    return place.GetOrMake<RandomAddresses>(
        "", []() -> absl::StatusOr<std::unique_ptr<RandomAddresses>> {
          return std::make_unique<RandomAddresses>();
        });
  }

  // The stream of an instruction, by its number in the program: memory of the device, which lasts
  // as long as kernels of the instruction run.
  void Set(int instruction, const RandomStream* stream) { addresses_[instruction] = stream; }
  // Null where the numbers are those of KernelContext::random.
  const RandomStream* Find(int instruction) const {
    const auto found = addresses_.find(instruction);
    return found == addresses_.end() ? nullptr : found->second;
  }

 private:
  std::map<int, const RandomStream*> addresses_;  // few
};

}  // namespace interp
