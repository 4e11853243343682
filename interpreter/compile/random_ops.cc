#include "interpreter/compile/random_ops.h"

#include <xxhash.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/attr_reader.h"

namespace interp {
namespace {

constexpr absl::string_view kNumberAttr = "interp_random_number";

// The first output by the definition's slots, as files may have them in any order; the op's type
// when it has none.
absl::string_view NameOf(const Program& program, const Op& op, const OpDef& def) {
  for (const SlotDef& slot : def.outputs) {
    const Slot* outputs = op.FindOutput(slot.name);
    if (outputs == nullptr) continue;
    for (const VarId id : outputs->args) {
      if (program.NameOf(id) != kEmptyVarName) return program.NameOf(id);
    }
  }
  return op.type;
}

}  // namespace

void NumberRandomOps(Program& program, const OpRegistry& ops) {
  for (Block& block : program.blocks) {
    absl::flat_hash_map<std::string, int32_t> writers;
    for (Op& op : block.ops) {
      const OpDef* def = ops.Find(op.type);
      if (def == nullptr || !def->random) continue;
      const int32_t number = writers[NameOf(program, op, *def)]++;
      if (number == 0 || op.FindAttr(kNumberAttr) != nullptr) continue;
      op.attrs.push_back({.name = std::string(kNumberAttr), .value = number});
    }
  }
}

uint64_t RandomOpId(const Program& program, const Op& op, const OpDef& def) {
  const absl::string_view name = NameOf(program, op, def);
  AttrReader reader(op);
  const int32_t number = reader.Int(kNumberAttr, 0);
  return XXH64(name.data(), name.size(), static_cast<uint64_t>(number));
}

std::vector<uint64_t> RandomOpIds(const Plan& plan, const Program& program) {
  std::vector<uint64_t> ids(plan.instructions.size(), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (!instruction.def->random || instruction.op_index < 0) continue;
    const Op& op = program.blocks[plan.block].ops[instruction.op_index];
    ids[i] = RandomOpId(program, op, *instruction.def);
  }
  return ids;
}

}  // namespace interp
