// Plan: a program analysed once, ready to be run any number of times.
//
// BuildPlan runs the analysis steps in order, one file each in interpreter/analysis:
//   BuildVariableTable   names to dense ids, who is fed, fetched, persistable
//   SelectKernels        op -> instruction with parsed attributes, dtype and kernel
//   InsertTransfers      casts and layout changes, one per source version
//   AnalyzeStorage       which variables share memory
//   BuildDependencies    hazards over variables and storage, then implicit orders
//   AssignStreams        queue, stream and priority per instruction; order within a stream
//   ShrinkDependencies   drops edges that others imply
//   LinkInstructions     successor lists, counts, the trace order
//   PlanGarbageCollection  last uses: what is freed when
//   PlaceEvents          what to record and to wait for where device work crosses streams
// A plan holds no tensor and no pointer into the program; it is immutable once built and shared by
// all clones of a core.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/program.h"
#include "core/status.h"
#include "interpreter/instruction.h"

namespace interp {

struct PlanVar {
  std::string name;
  VarKind kind = VarKind::kLodTensor;
  DType dtype = DType::kUndefined;  // after analysis: what its (first) writer makes
  Layout layout = Layout::kPlain;
  int32_t rank = -1;  // declared; -1 unknown
  bool declared = false;
  bool persistable = false;
  bool constant = false;  // persistable and written by no instruction
  int32_t storage = -1;   // variables of one storage id may share memory
  Place place = {};       // of its memory, in every run
  VarId copy_of = -1;  // a constant's copy on a device, made before the first run; no op writes it
};

// Successors of all instructions in one array: edges of i are targets[begins[i]] ...
// targets[begins[i+1]-1].
struct AdjacencyList {
  std::vector<int32_t> begins = {0};
  std::vector<InstrId> targets;

  absl::Span<const InstrId> operator[](InstrId i) const {
    return absl::MakeConstSpan(targets).subspan(begins[i], begins[i + 1] - begins[i]);
  }
  size_t num_edges() const { return targets.size(); }
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
  std::string name;  // "host", "compute", "h2d", "d2h" or an op's execution_stream
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
  bool operator==(const FeedSpec&) const = default;
};

struct PlanOptions {
  // Edges i -> i+1 between all instructions: program order even for independent ops.
  bool sequential = false;
  // Off: variables live until the next run overwrites them.
  bool garbage_collection = true;
  // Channels-last layouts for ops that gain from them.
  bool optimize_layout = true;
  // Where ops run that can run there and have no `op_device` that says otherwise.
  Place place = {};
  // All work of a device on one stream; for comparison.
  bool single_stream = false;
};

struct Plan {
  std::vector<PlanVar> vars;              // by VarId: the program's names, then the plan's own
  int32_t num_program_vars = 0;           // the plan's own are in no scope
  std::vector<Instruction> instructions;  // in program order
  std::vector<Op> inserted_ops;           // not in the program; arguments index `vars`
  std::vector<PlanStream> streams;        // the host first
  std::vector<PlanEvent> events;
  std::vector<Edge> edges;          // all hazards, in order of `to`, then `from`
  AdjacencyList successors;         // edges that are not shrunk
  std::vector<int32_t> dep_counts;  // predecessors by instruction
  std::vector<InstrId> order;       // trace order: by priority, then program order
  // For each instruction the variables it uses last or may use last; `ref_counts[v]` instructions
  // list v, and the one that finishes last frees it.
  std::vector<std::vector<VarId>> gc_check;
  std::vector<int32_t> ref_counts;  // by VarId; 0: never freed
  // What to free after each instruction when instructions run in `order`.
  std::vector<std::vector<VarId>> frees_in_order;

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

// Analyses block 0 of `program`, which has feed and fetch ops (passes/insert_feed_fetch).
// Errors name op, index and slot: InvalidArgument for malformed ops, Unimplemented for ops, dtypes
// or places without a kernel; all missing ops are listed in one message. Time and memory are linear
// in ops, arguments and edges.
absl::StatusOr<Plan> BuildPlan(const Program& program, const PlanOptions& options,
                               const OpRegistry& registry);

}  // namespace interp
