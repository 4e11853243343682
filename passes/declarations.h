// Declarations: which block declares which variable, for passes that look many up and add some.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program.h"

namespace interp {

// Follows one program, whose declarations change by these calls alone while this lives.
class Declarations {
 public:
  explicit Declarations(Program& program) : program_(program) {}

  // As ops of `block` see it: in the block, its forward block, or those around it. Null: there is
  // none. Holds until something is added. Amortised O(depth of the block).
  const Var* Find(int32_t block, VarId id);
  // Only in the block itself.
  const Var* FindLocal(int32_t block, VarId id);
  // REQUIRES: the block declares no variable of that id.
  void Add(int32_t block, Var var);
  // Blocks from `block` on go.
  void ForgetFrom(int32_t block) {
    if (static_cast<size_t>(block) < positions_.size()) positions_.resize(block);
  }

 private:
  Program& program_;
  // By block: positions in Block::vars; empty where nobody has looked yet.
  std::vector<absl::flat_hash_map<VarId, size_t>> positions_;
};

}  // namespace interp
