#include "interpreter/analysis/streams.h"

#include "core/attr_reader.h"
#include "interpreter/analysis/dependencies.h"
#include "interpreter/analysis/select_kernels.h"

namespace interp {
namespace {

constexpr absl::string_view kDefaultStream = "DefaultStream";

// The name and priority of the stream an instruction of a device belongs to.
PlanStream WantedStream(const Instruction& instruction, const Op& op, bool single_stream) {
  PlanStream stream{.name = "compute", .place = instruction.place};
  if (single_stream) return stream;
  AttrReader reader(op);
  const std::string own = reader.String("execution_stream", kDefaultStream);
  if (!own.empty() && own != kDefaultStream) {
    stream.name = own;
    stream.priority = reader.Int("stream_priority", 0);
  } else if (instruction.op_type == "memcpy_h2d") {
    stream.name = "h2d";
  } else if (instruction.op_type == "memcpy_d2h") {
    stream.name = "d2h";
  } else if (instruction.op_type == "memcpy_p2p") {
    stream.name = "p2p";
  } else if (SpeaksWithRanks(instruction)) {
    stream.name = "comm";
  }
  return stream;
}

// The index of the stream, added when it is new.
int32_t FindOrAdd(std::vector<PlanStream>& streams, const PlanStream& wanted) {
  for (size_t i = 1; i < streams.size(); ++i) {
    if (streams[i].name == wanted.name && streams[i].place == wanted.place) {
      return static_cast<int32_t>(i);
    }
  }
  streams.push_back(wanted);
  return static_cast<int32_t>(streams.size() - 1);
}

}  // namespace

bool SpeaksWithRanks(const Instruction& instruction) {
  const OpDef& def = *instruction.def;
  return def.side_effect && def.kernels[instruction.kernel].place != PlaceKind::kCpu;
}

void AssignStreams(const Program& program, std::vector<PlanStream>& streams, Plan& plan) {
  if (streams.empty()) streams.push_back({.name = "host"});
  for (Instruction& instruction : plan.instructions) {
    const Op& op = OpOf(program, plan, instruction);
    const bool communication = instruction.op_type.rfind("c_", 0) == 0;
    AttrReader reader(op);
    instruction.priority = reader.Int("scheduling_priority", communication ? 1 : 0);
    instruction.queue = QueueKind::kHost;
    instruction.stream = 0;
    if (instruction.place.on_host()) continue;
    instruction.queue = QueueKind::kDevice;
    instruction.stream =
        FindOrAdd(streams, WantedStream(instruction, op, plan.options.single_stream));
  }
  AddStreamEdges(plan.instructions, plan.edges);
}

}  // namespace interp
