// Plan: one block of a program, analysed once, ready to be run any number of times.
//
// BuildPlans (compile/build_plan.h, which lists the analysis steps) makes it; the steps lie in
// interpreter/analysis.
// A plan holds no tensor and no pointer into the program; it is immutable once built and shared by
// all clones of a core.
//
// Long because all that a plan is, is read in one place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/plan/instruction.h"

namespace interp {

struct PlanVar {
  std::string name;
  VarId program_var = -1;  // in Program::names; -1: the plan's own
  VarKind kind = VarKind::kLodTensor;
  DType dtype = DType::kUndefined;  // after analysis: what its (first) writer makes
  Layout layout = Layout::kPlain;
  int32_t rank = -1;  // declared; -1 unknown
  bool declared = false;
  bool persistable = false;
  // Persistable and written by no instruction of any plan, or folded.
  bool constant = false;
  bool folded = false;    // written by an instruction of Plan::folded and by no other
  bool captured = false;  // of an enclosing plan; see Plan::captures
  // Several plans or several runs see what instructions write to it, so it keeps its dtype and is
  // plain: a writer that makes something else writes a variable of its own, which is converted.
  bool settled = false;
  int32_t storage = -1;  // variables of one storage id may share memory
  Place place = {};      // of its memory, in every run
  VarId copy_of = -1;  // a constant's copy on a device, made before the first run; no op writes it
};

// A list of ids for each instruction, all in one array: those of i are ids[begins[i]] ...
// ids[begins[i + 1] - 1].
struct IdLists {
  std::vector<int32_t> begins = {0};
  std::vector<int32_t> ids;

  absl::Span<const int32_t> operator[](InstrId i) const {
    return absl::MakeConstSpan(ids).subspan(begins[i], begins[i + 1] - begins[i]);
  }
  size_t size() const { return begins.size() - 1; }
  size_t num_ids() const { return ids.size(); }
  // Adds the list of the next instruction.
  void Append(absl::Span<const int32_t> list) {
    ids.insert(ids.end(), list.begin(), list.end());
    begins.push_back(static_cast<int32_t>(ids.size()));
  }
};

// A variable of an enclosing plan that this one uses.
struct Capture {
  VarId var = -1;        // in this plan
  bool read = false;     // by this block or a block that it runs
  bool written = false;  // likewise; maybe in some activations only
};

// A variable whose value activations leave for the gradient of their block.
struct SavedVar {
  VarId var = -1;  // in this plan
  // Of a capture: as it is when the activation starts. The value is shared, not moved.
  bool at_start = false;
  bool operator==(const SavedVar&) const = default;
};

// Why an edge exists; kept for dumps.
enum class EdgeKind : int8_t {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  kRead,
  kCommunication,
  kCoalesce,
  kSequential,
  kStream  // neighbours on one stream of a device: launched in this order
};
absl::string_view Name(EdgeKind kind);

// How Paddle's executor classes an edge by where its ends run (stream_analyzer.cc; the second class
// is of older versions). The realisation here is an event for both of the latter: a stream waits on
// the device, only an instruction of the host blocks.
enum class RunType : int8_t {
  kDirect,       // order of issue suffices
  kSynchronize,  // device to device-to-host copy
  kEvent,        // another stream, or the host, needs the result
};
absl::string_view Name(RunType type);

struct Edge {
  InstrId from = 0;
  InstrId to = 0;
  EdgeKind kind = EdgeKind::kReadAfterWrite;
  VarId var = -1;       // the variable or, by storage, one of its names; -1: none
  bool shrunk = false;  // implied by other edges, not waited for
  // The two touch the same memory: `from` must have completed. Otherwise it need only have been
  // issued (only metadata are read, or the order is implicit).
  bool memory = true;
  bool host_reads = false;  // `to` reads the memory while it is issued, see IsHostInput
  RunType run_type = RunType::kDirect;
};

// A queue of work that runs in order: the host's threads (stream 0, no order) or a device's stream.
struct PlanStream {
  std::string name;  // "host", "compute", "h2d", "d2h", "p2p", "comm" or an op's execution_stream
  Place place = {};
  int32_t priority = 0;  // lower first
};

// One per recorder, whoever waits.
struct PlanEvent {
  InstrId recorder = -1;
};

// What a caller may feed in one column.
struct FeedSpec {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape = {};          // -1: any
  bool check_shape = false;  // the program asks for feeds to match `shape`
  bool overwritten = false;  // by an op, so that `shape` may be that of the later value
  bool persistable = false;  // the value is kept beyond the run, so it is copied
  bool operator==(const FeedSpec&) const = default;
};

struct PlanOptions {
  // Edges i -> i+1 between all instructions: program order even for independent ops.
  bool sequential = false;
  // Off: variables live until the next run overwrites them.
  bool garbage_collection = true;
  // Channels-last layouts for ops that gain from them.
  bool optimize_layout = true;
  // What depends on constants alone is made once, not in every run.
  bool fold_constants = true;
  // Where ops run that can run there and have no `op_device` that says otherwise.
  Place place = {};
  // All work of a device on one stream; for comparison.
  bool single_stream = false;
};

struct Plan {
  int32_t block = 0;             // of the program after the passes
  std::vector<PlanVar> vars;     // by VarId: the block's, by Program::names, then the plan's own
  int32_t num_program_vars = 0;  // the plan's own come after these
  // By program_var. The instruction that runs this block has them as hidden arguments: those that
  // are read as inputs, those that are written as outputs.
  std::vector<Capture> captures;
  // Set by the kernel that runs the block, as SubBlock::entries, and the input arguments of its
  // instruction that they are like.
  std::vector<VarId> entries;
  std::vector<int32_t> entry_args;
  std::vector<VarId> results;  // read by it, as SubBlock::results
  // The block that is the gradient of this one, else -1, and what RunAndSave puts into a record for
  // it, in this order.
  int32_t gradient_block = -1;
  std::vector<SavedVar> saved;
  // Of a gradient: the block whose records it runs on, else -1, and by position in that block's
  // `saved` the variables here that take the values.
  int32_t forward_block = -1;
  std::vector<VarId> inherited;
  std::vector<Instruction> instructions;  // in program order
  // Run before the first activation and when a constant has changed, one after the other, on the
  // host. They have no number.
  std::vector<Instruction> folded;
  // Instructions have numbers of their own in the whole program: this one added to their InstrId.
  int32_t first_number = 0;
  std::vector<Op> inserted_ops;     // not in the program; arguments index `vars`
  std::vector<PlanStream> streams;  // the host first; the same in all plans of a program
  std::vector<PlanEvent> events;
  std::vector<Edge> edges;          // all hazards, in order of `to`, then `from`
  IdLists successors;               // edges that are not shrunk
  std::vector<int32_t> dep_counts;  // predecessors by instruction
  std::vector<InstrId> order;       // trace order: by priority, then program order
  // For each instruction the variables it uses last or may use last; `ref_counts[v]` instructions
  // list v, and the one that finishes last frees it.
  IdLists gc_check;
  std::vector<int32_t> ref_counts;  // by VarId; 0: never freed
  // What to free after each instruction when instructions run in `order`.
  IdLists frees_in_order;

  PlanOptions options;
  // Ops that were to run on a device and run on the host, each type once.
  std::vector<std::string> fallbacks;

  std::vector<FeedSpec> feeds;       // by column
  std::vector<std::string> fetches;  // by column
  VarId feed_list = -1;              // the FEED_MINIBATCH variable; -1: no feeds
  VarId fetch_list = -1;             // the FETCH_LIST variable; -1: no fetches
  // Largest number of instructions that can run at once, found level by level.
  int32_t max_width = 0;
  int32_t critical_path = 0;  // instructions on the longest path
};

// An instruction among those of all blocks.
struct InstrRef {
  const Plan* plan = nullptr;  // null: there is none of that number
  InstrId id = -1;
};
// The instruction with that number (Plan::first_number). Linear in blocks.
InstrRef FindInstruction(absl::Span<const Plan> plans, int32_t number);
// The name of a variable as text forms write it; @EMPTY@ for -1.
std::string VarText(const Plan& plan, VarId id);
// Whether a variable is folded or the copy of one that is.
inline bool IsFolded(const Plan& plan, VarId id) {
  const PlanVar& var = plan.vars[id];
  return var.folded || (var.copy_of >= 0 && plan.vars[var.copy_of].folded);
}
// How many instructions the plans of all blocks have; numbers lie below.
int32_t CountInstructions(absl::Span<const Plan> plans);

// Whether input argument `arg` is to be there when the instruction runs: memory that it reads, or
// an array or what else is no tensor, which collection empties. False for none.
bool NeedsValue(const Plan& plan, const Instruction& instruction, int arg);

// Calls visit(outer, inner) for each capture of `inner`, the plan of the block that `instruction`
// runs: the variable that stands for it among the instruction's hidden arguments, and its own.
template <typename Visit>
void ForEachCapture(const Instruction& instruction, const Plan& inner, const Visit& visit) {
  size_t in = instruction.inputs.size() - static_cast<size_t>(instruction.input_counts.back());
  size_t out = instruction.outputs.size() - static_cast<size_t>(instruction.output_counts.back());
  for (const Capture& capture : inner.captures) {
    VarId outer = -1;
    if (capture.read) outer = instruction.inputs[in++];
    if (capture.written) outer = instruction.outputs[out++];
    visit(outer, capture.var);
  }
}

}  // namespace interp
