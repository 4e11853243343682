#include "interpreter/analysis/streams.h"

#include "core/attr_reader.h"

namespace interp {

void AssignStreams(const Program& program, std::vector<Instruction>& instructions) {
  for (Instruction& instruction : instructions) {
    instruction.queue = QueueKind::kHost;
    instruction.stream = 0;
    const bool communication = instruction.op_type.rfind("c_", 0) == 0;
    instruction.priority = communication ? 1 : 0;
    if (instruction.op_index < 0) continue;
    AttrReader reader(program.blocks[0].ops[instruction.op_index]);
    instruction.priority = reader.Int("scheduling_priority", instruction.priority);
  }
}

}  // namespace interp
