// ForwardVersions: which version of a variable a gradient of one block would read, as ops of the
// block and of those around it write variables again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/program.h"
#include "core/status.h"
#include "passes/inserted_ops.h"
#include "passes/train/backward_context.h"

namespace interp {

// What an op that runs block `inner` writes, each once: its outputs, and the variables around the
// block that the ops of the block write. `inner` is -1 for other ops.
std::vector<VarId> WrittenBy(BackwardContext& context, const Op& op, int32_t inner);

// Follows the ops of a block from the last to the first: those whose gradients bring a variable
// back to what it was do not count as writers any more. Thread-safety: none.
class ForwardVersions {
 public:
  // Where a block is run: by op `position` of the block of `parent`, which is null for block 0.
  struct Caller {
    const ForwardVersions* parent = nullptr;
    size_t position = 0;
  };
  // `in_loop`: the op that runs the block keeps what its trips found (SubBlock::saves_captures).
  ForwardVersions(BackwardContext& context, int32_t block, bool in_loop, const Caller& caller,
                  InsertedOps& noted);

  // Lets a gradient of op `index`, `forward`, read what it reads of the forward part as it was at
  // the op: what is written again is copied there, also where the gradient reads no more than its
  // shape. Errors: InvalidArgument names the op that writes again what is no tensor.
  absl::Status ReadVersions(Op& gradient, const Op& forward, size_t index);

  // What has the shape that the variable has before op `position`: the variable, or zeros that are
  // made there, which a variable without a value gives, too.
  VarId ShapeAt(VarId id, size_t position);

  // From here on the variables are what they were before op `index` wrote them.
  void Undo(const std::vector<VarId>& vars, size_t index);
  // Of variables that the block writes, those that its gradient has brought back to what they were.
  std::vector<VarId> Undone(std::vector<VarId> written) const;
  // Whether op `index` counts in place, and what reads the counter on the way back is to find it as
  // it was: the gradient of `increment` counts down. Outside of loops only a counter whose earlier
  // values gradients may ask for does so.
  bool UndoesUpdate(const Op& op, size_t index);
  // The same of an op that gradients pass: they stay as they are.
  bool PassesCounting(const Op& op) const;

  // Whether the variable has a value when op `index` starts.
  bool HasValueBefore(VarId id, size_t index);

 private:
  void NoteWrites(size_t index);
  bool IsOnPath(VarId id) const;
  bool IsTensor(VarId id) const;
  absl::Status Check(VarId id, size_t position) const;
  absl::Status CheckLater(VarId id, size_t position) const;
  absl::Status CheckOutside(VarId id, size_t position) const;
  absl::Status WritesAgain(VarId id, size_t writer) const;
  VarId CopyAt(VarId id, size_t position);
  VarId AddBefore(VarId id, size_t position, absl::string_view suffix, Op op);
  const ForwardVersions* KeeperOf(VarId id) const;
  bool Declares(VarId id) const { return context_.declarations.FindLocal(block_, id) != nullptr; }
  const std::vector<size_t>& WritersOf(VarId id) const;

  BackwardContext& context_;
  const int32_t block_;
  const bool in_loop_;
  const ForwardVersions* const parent_;
  const size_t position_;  // in the parent's block
  InsertedOps& noted_;
  // Positions of the ops that write a variable, but those whose gradients have undone it.
  absl::flat_hash_map<VarId, std::vector<size_t>> writers_;
  // Of a loop's trip: what an op has as input and output.
  absl::flat_hash_set<VarId> updated_;
  // Positions of the first ops on the path to the loss that read a variable.
  absl::flat_hash_map<VarId, size_t> first_reads_;
  absl::flat_hash_map<std::pair<VarId, size_t>, VarId> copies_;  // of variables before ops
  absl::flat_hash_map<std::pair<VarId, size_t>, VarId> shapes_;
};

}  // namespace interp
