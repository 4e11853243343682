// FindBlocks: which blocks of a program run, and whose variables they use.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"

namespace interp {

// How a block uses a variable that an enclosing block owns. Ids are those of the program.
struct BlockCapture {
  VarId var = -1;
  bool read = false;
  bool written = false;
};

// A variable that an activation leaves for the block's gradient: one of the block's own as it is in
// the end or, `at_start`, a captured one as it is when the activation starts.
struct BlockSave {
  VarId var = -1;
  bool at_start = false;
};

struct BlockNode {
  int32_t parent = -1;  // the block whose op runs this one; -1 for block 0
  int32_t op = -1;      // position of that op
  // Declared here or used by this block or by what it runs, captures included; sorted.
  std::vector<VarId> vars;
  std::vector<BlockCapture> captures;  // sorted by var
  std::vector<int32_t> children;       // the blocks that it runs
  // The block that this one is the gradient of, and its gradient; -1: none.
  int32_t forward = -1;
  int32_t gradient = -1;
  std::vector<BlockSave> saved;  // what its gradient reads of its activations, sorted by var
};

struct BlockTree {
  std::vector<int32_t> order;    // the blocks that run, each behind the one that runs it
  std::vector<BlockNode> nodes;  // by block; empty for blocks that never run
  // By VarId of the program.
  std::vector<bool> written;      // by an op of some block that runs
  std::vector<bool> persistable;  // in any declaration of a block that runs
  // Declarations of block 0 by VarId, null without one; those of other blocks by block.
  std::vector<const Var*> declared_in_0;
  std::vector<absl::flat_hash_map<VarId, const Var*>> declared;
  // Declarations that programs leave out, of what kernels set and read; among `declared`.
  std::deque<Var> made;

  // The declaration of `var` in `block` itself, or null.
  const Var* OwnDeclaration(int32_t block, VarId var) const;
  // The declaration that `var` has in `block`: its own, that of its forward block, or that of the
  // nearest enclosing block that has one; null without one.
  const Var* Declaration(int32_t block, VarId var) const;
  // The use of `var` as a capture of `block`, or null, and whether the block has a variable of that
  // name for itself. Known once the block has been visited.
  const BlockCapture* FindCapture(int32_t block, VarId var) const;
  bool Owns(int32_t block, VarId var) const;
};

// Follows `sub_block` attributes from block 0. The scope chain is that of activations: a name that
// a block does not declare is looked up in the block whose op runs it, and so on. Persistable
// variables belong to block 0 wherever they are declared. A name that no block of the chain
// declares belongs to the outermost one whose ops mention it.
//
// A block whose forward_block_idx names another one that runs earlier is the gradient of that one:
// names are looked up there, too, after its own, and stand for what an activation left. Of tensors
// that the forward block captures, that is their value when the activation started, if the op
// that runs it says so (SubBlock::saves_captures), and no op of the block updates them in place.
//
// What the kernel sets before an activation and reads after it (SubBlock::entries, results) belongs
// to the block that it runs, declared there or not: programs leave out the gradients that a loop
// carries, which have the same name outside.
//
// Arguments of kOfSubBlock slots do not count as uses, nor does a persistable output that an op in
// test mode leaves as it is (LeavesUntouched) as written. `program` is borrowed by the result.
// Errors: Unimplemented that lists all ops without a definition, or for an op whose definition runs
// no block, a block that two ops run, a
// block with two gradients, or nesting beyond 100 levels; InvalidArgument for a block that is not
// there. Linear.
absl::StatusOr<BlockTree> FindBlocks(const Program& program, const OpRegistry& registry);

// The types of the program's ops, in any block, that have no definition, sorted.
std::vector<std::string> UnsupportedOps(const Program& program, const OpRegistry& registry);

// The block that `op` runs, or -1.
absl::StatusOr<int32_t> SubBlockOf(const Program& program, const Op& op, const OpDef& def);

}  // namespace interp
