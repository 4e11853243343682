#include "passes/declarations.h"

#include <utility>

namespace interp {

const Var* Declarations::FindLocal(int32_t block, VarId id) {
  if (positions_.size() < program_.blocks.size()) positions_.resize(program_.blocks.size());
  const std::vector<Var>& vars = program_.blocks[block].vars;
  absl::flat_hash_map<VarId, size_t>& positions = positions_[block];
  for (size_t i = positions.size(); i < vars.size(); ++i) positions.emplace(vars[i].id, i);
  const auto found = positions.find(id);
  return found == positions.end() ? nullptr : &vars[found->second];
}

const Var* Declarations::Find(int32_t block, VarId id) {
  // A chain of more blocks than there are goes in circles.
  for (size_t steps = 0; block >= 0 && steps <= program_.blocks.size(); ++steps) {
    if (const Var* var = FindLocal(block, id); var != nullptr) return var;
    const Block& at = program_.blocks[block];
    if (at.forward_block_idx >= 0 && at.forward_block_idx != block) {
      if (const Var* var = FindLocal(at.forward_block_idx, id); var != nullptr) return var;
    }
    block = at.parent_idx;
  }
  return nullptr;
}

void Declarations::Add(int32_t block, Var var) {
  program_.blocks[block].vars.push_back(std::move(var));
}

}  // namespace interp
