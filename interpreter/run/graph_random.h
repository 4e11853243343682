// GraphRandom: new random numbers for instructions whose work is repeated as it is.
//
// Kernels in graphs read their RandomStream from memory of their device (RandomAddresses). Each
// stream of the plan that has such instructions has one piece of memory for all of them, which one
// copy fills at the start of a run, in the order of the stream: after what the run before has
// enqueued there, before this run's kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/resource/place_resources.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/instruction_runner.h"

namespace interp {

// Thread-safety: none; the thread that enqueues all work of the plan.
class GraphRandom {
 public:
  // Borrowed.
  struct Parts {
    const Plan* plan = nullptr;
    const InstructionRunner* runner = nullptr;
    DeviceSet* devices = nullptr;
    Allocator* host = nullptr;                                   // for what is copied
    std::map<std::string, PlaceResources>* resources = nullptr;  // by place name
  };
  // Takes memory for the instructions that draw random numbers and may be part of a graph. Errors:
  // a device has no memory.
  static absl::StatusOr<GraphRandom> Create(const Parts& parts);

  // Enqueues the copies for a run that begins: from here on these instructions draw what the
  // state of the core says. Costs nothing where there are none. Errors: those of the device,
  // explained.
  absl::Status Update() const;

 private:
  struct OnStream {
    int32_t stream = -1;
    std::vector<InstrId> instructions = {};  // in the order of `memory`
    BufferRef memory = {};                   // a RandomStream for each
  };

  explicit GraphRandom(const Parts& parts) : parts_(parts) {}
  void FindInstructions();
  absl::Status TakeMemory(OnStream& on);
  absl::Status Copy(const OnStream& on) const;

  Parts parts_;
  std::vector<OnStream> streams_;
};

}  // namespace interp
