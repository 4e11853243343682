// Instruction: one op of a plan, with everything decided about it. Data only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/op_def.h"
#include "core/program.h"

namespace interp {

using InstrId = int32_t;  // index into Plan::instructions, which is in program order

// Short lists, which most instructions hold without an allocation of their own.
using VarIds = absl::InlinedVector<VarId, 4>;
using ArgCounts = absl::InlinedVector<int32_t, 4>;
using DTypes = absl::InlinedVector<DType, 16>;
using Layouts = absl::InlinedVector<Layout, 16>;
using SharePairs = absl::InlinedVector<InplacePair, 2>;

enum class QueueKind : int8_t { kHost, kDevice };
absl::string_view Name(QueueKind queue);

// Waiting for work of a device before an instruction starts.
struct EventWait {
  int32_t event = -1;         // index into Plan::events
  bool previous_run = false;  // for the record of the activation before this one
  // The issuing thread blocks; otherwise the instruction's stream waits and the thread goes on.
  // Instructions of the host always block, those of a device when they read what was copied to the
  // host while they are issued (a shape tensor, say).
  bool blocks_host = false;
};

// VarIds index Plan::vars.
struct Instruction {
  absl::string_view op_type;  // def->type
  const OpDef* def = nullptr;
  // Position of the op in the plan's block of the program after the passes; -1 for an inserted op.
  int32_t op_index = -1;
  // Of an inserted op (a transfer, the move of a split output) the index into Plan::inserted_ops;
  // else -1.
  int32_t inserted_op = -1;
  // The block that it runs; -1: none. What that block's plan captures are the hidden arguments.
  int32_t sub_block = -1;

  // Arguments in the order of OpDef::inputs (then OpDef::outputs), flattened. input_counts[s] is
  // the number of arguments of slot s. -1 stands for @EMPTY@. With a sub-block, one more slot at
  // the end has the hidden arguments: the captures that the block reads (or writes), in their
  // order.
  VarIds inputs;
  VarIds outputs;
  ArgCounts input_counts;
  ArgCounts output_counts;
  DTypes output_dtypes;    // by output argument
  Layouts output_layouts;  // by output argument
  SharePairs share;        // inplace and view pairs, positions in inputs and outputs

  ParsedAttrs attrs;
  DType dtype = DType::kUndefined;  // the kernel's
  LayoutRule layout_rule = LayoutRule::kPlain;
  int32_t kernel = -1;  // row of def->kernels

  // Shapes may differ from activation to activation although the shapes of what comes from outside
  // do not: infer every time.
  bool dynamic_shape = false;
  QueueKind queue = QueueKind::kHost;
  Place place = {};
  int32_t priority = 0;  // lower runs earlier among the ready
  int32_t stream = 0;    // index into Plan::streams; 0: the host's threads
  std::vector<EventWait> waits;
  int32_t record = -1;  // event recorded after the kernel, index into Plan::events; -1: none
};

// The slot (position in OpDef::inputs) of flattened input argument `arg`; the number of slots for a
// hidden argument.
int InputSlotOf(const Instruction& instruction, int arg);
// The same for output argument `arg`.
int OutputSlotOf(const Instruction& instruction, int arg);

// SlotFlags of input argument `arg`; those of a hidden one say that it is taken as it is.
int InputFlags(const Instruction& instruction, int arg);
// The same for output argument `arg`.
int OutputFlags(const Instruction& instruction, int arg);

// Whether an instruction makes the same of the same tensors in every run and does nothing else, on
// the host, so that it may be one of Plan::folded.
bool CanFold(const Instruction& instruction);

// Whether input argument `arg` may be of that dtype: the kernel's, where it does not take any.
bool TakesDType(const Instruction& instruction, int arg, DType dtype);

// Whether an argument is hidden: used by the sub-block.
bool IsHiddenInput(const Instruction& instruction, int arg);
bool IsHiddenOutput(const Instruction& instruction, int arg);

// Whether variable `id` is an input that is not hidden.
bool TakesInput(const Instruction& instruction, VarId id);

// Whether input argument `arg` is wanted in host memory although the instruction runs on a device:
// it is read while the instruction is issued, not when its kernel runs.
bool IsHostInput(const Instruction& instruction, int arg);

// True when the pair is a view: the output takes the input's memory without writing to it.
bool IsView(const Instruction& instruction, const InplacePair& pair);

// Takes the pairs that `drop` is true for out of instruction.share.
template <typename Predicate>
void EraseShares(Instruction& instruction, const Predicate& drop) {
  SharePairs& share = instruction.share;
  share.erase(std::remove_if(share.begin(), share.end(), drop), share.end());
}

// Whether the definition lets output argument `out` take over the memory of input argument `in`, as
// an inplace pair or as a view.
bool DeclaresShare(const Instruction& instruction, int in, int out);

}  // namespace interp
