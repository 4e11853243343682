// Instruction: one op of a plan, with everything decided about it. Data only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"

namespace interp {

using InstrId = int32_t;  // index into Plan::instructions, which is in program order

enum class QueueKind : int8_t { kHost, kDevice };
absl::string_view Name(QueueKind queue);

// Waiting for work of a device before an instruction starts.
struct EventWait {
  int32_t event = -1;         // index into Plan::events
  bool previous_run = false;  // for the record of the run before this one
  // The issuing thread blocks; otherwise the instruction's stream waits and the thread goes on.
  // Instructions of the host always block, those of a device when they read what was copied to the
  // host while they are issued (a shape tensor, say).
  bool blocks_host = false;
};

struct Instruction {
  std::string op_type;
  const OpDef* def = nullptr;
  // Position of the op in block 0 of the program after the passes; -1 for an inserted op.
  int32_t op_index = -1;
  // Of an inserted op (a transfer, the move of a split output) the index into Plan::inserted_ops;
  // else -1.
  int32_t inserted_op = -1;

  // Arguments in the order of OpDef::inputs (then OpDef::outputs), flattened. input_counts[s] is
  // the number of arguments of slot s. -1 stands for @EMPTY@.
  std::vector<VarId> inputs;
  std::vector<VarId> outputs;
  std::vector<int32_t> input_counts;
  std::vector<int32_t> output_counts;
  std::vector<DType> output_dtypes;    // by output argument
  std::vector<Layout> output_layouts;  // by output argument
  std::vector<InplacePair> share;      // inplace and view pairs, positions in inputs and outputs

  ParsedAttrs attrs;
  DType dtype = DType::kUndefined;  // the kernel's
  int32_t kernel = -1;              // row of def->kernels
  LayoutRule layout_rule = LayoutRule::kPlain;

  // Shapes may differ from run to run although the feeds' shapes do not: infer every time.
  bool dynamic_shape = false;

  int32_t priority = 0;  // lower runs earlier among the ready
  Place place = {};
  int32_t stream = 0;  // index into Plan::streams; 0: the host's threads
  QueueKind queue = QueueKind::kHost;
  std::vector<EventWait> waits;
  int32_t record = -1;  // event recorded after the kernel, index into Plan::events; -1: none
};

// The slot (position in OpDef::inputs) of flattened input argument `arg`.
int InputSlotOf(const Instruction& instruction, int arg);

// Whether input argument `arg` is wanted in host memory although the instruction runs on a device:
// it is read while the instruction is issued, not when its kernel runs.
bool IsHostInput(const Instruction& instruction, int arg);

}  // namespace interp
