#include "interpreter/run/graph_random.h"

#include <algorithm>
#include <utility>

#include "core/resource/random_addresses.h"
#include "interpreter/analysis/graphs.h"

namespace interp {

absl::StatusOr<GraphRandom> GraphRandom::Create(const Parts& parts) {
  GraphRandom random(parts);
  random.FindInstructions();
  for (OnStream& on : random.streams_) INTERP_RETURN_IF_ERROR(random.TakeMemory(on));
  return random;
}

void GraphRandom::FindInstructions() {
  for (size_t i = 0; i < parts_.plan->instructions.size(); ++i) {
    const Instruction& instruction = parts_.plan->instructions[i];
    if (!instruction.def->random || !WhyInNoGraph(*parts_.plan, instruction).empty()) continue;
    auto on = std::find_if(streams_.begin(), streams_.end(), [&](const OnStream& other) {
      return other.stream == instruction.stream;
    });
    if (on == streams_.end()) on = streams_.insert(on, {.stream = instruction.stream});
    on->instructions.push_back(static_cast<InstrId>(i));
  }
}

absl::Status GraphRandom::TakeMemory(OnStream& on) {
  const Place place = parts_.plan->streams[on.stream].place;
  INTERP_ASSIGN_OR_RETURN(on.memory, parts_.devices->heap(place).allocator().Allocate(
                                         on.instructions.size() * sizeof(RandomStream)));
  INTERP_ASSIGN_OR_RETURN(RandomAddresses* const addresses,
                          RandomAddresses::Of((*parts_.resources)[Name(place)]));
  const auto* next = static_cast<const RandomStream*>(on.memory->data);
  for (const InstrId id : on.instructions) addresses->Set(parts_.plan->first_number + id, next++);
  return absl::OkStatus();
}

absl::Status GraphRandom::Update() const {
  for (const OnStream& on : streams_) {
    const absl::Status copied = Copy(on);
    if (!copied.ok()) return parts_.runner->Explain(on.instructions[0], copied);
  }
  return absl::OkStatus();
}

absl::Status GraphRandom::Copy(const OnStream& on) const {
  const size_t size_bytes = on.instructions.size() * sizeof(RandomStream);
  INTERP_ASSIGN_OR_RETURN(BufferRef host, parts_.host->Allocate(size_bytes));
  auto* next = static_cast<RandomStream*>(host->data);
  for (const InstrId id : on.instructions) {
    const RandomSource& source = parts_.runner->random(id);
    *next++ = RandomStream(*source.state, source.op);
  }
  const void* const from = host->data;
  return parts_.devices->stream(on.stream).CopyToDevice(
      on.memory->data, from, std::move(host), size_bytes,
      {.tag = parts_.plan->first_number + on.instructions[0], .errors = &parts_.devices->errors()});
}

}  // namespace interp
