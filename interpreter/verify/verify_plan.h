// VerifyPlan: a proof that a plan cannot disturb itself, made from the plan alone.
//
// What analysis derived is not believed: accesses, shared memory and last uses are found anew from
// the instructions, and order counts only where a run obeys it (interpreter/verify/run_order.h).
// Proved is that
//   - any two accesses to the same memory or variable of which one writes happen in program order,
//     over all threads, streams and two runs after each other (interpreter/verify/conflicts.h);
//   - no value is read after an instruction may have written another one over it;
//   - memory is freed once, after its last use, by counts and in the trace order alike; what
//     outlives the run is never freed;
//   - dependency counts and the trace order agree with the kept edges;
//   - random, communication, `read`, coalesce_tensor and output orders hold;
//   - the host touches memory of the host, a device its own;
//   - events are recorded by whom the plan says, and before anybody waits for them;
//   - what a block uses of enclosing blocks is among its captures, and so among the hidden
//   arguments
//     of the instruction that runs it: the points above, for the plan around it, cover it, too.
// "Two runs after each other" are two activations for a block that an op runs: a loop's iterations.
// A search that would take too long counts as not proved. docs/verify.md explains it with a
// failure.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interpreter/plan/plan.h"

namespace interp {

enum class ViolationKind : int8_t {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  kOverwritten,      // a value is read that an output was written over
  kUseAfterFree,     // memory may be freed before a use
  kFree,             // freed never, twice, or although it outlives the run
  kDependencyCount,  // a run would start an instruction early, or never
  kTraceOrder,       // the trace order contradicts an edge
  kImplicitOrder,
  kPlace,    // the wrong side touches memory
  kEvent,    // waited for in vain, or not recorded
  kCapture,  // used by a block, but not said to be
};
absl::string_view Name(ViolationKind kind);

struct Violation {
  ViolationKind kind = ViolationKind::kReadAfterWrite;
  InstrId first = -1;     // in program order; -1: none
  InstrId second = -1;    // -1: none
  VarId var = -1;         // -1: none
  bool next_run = false;  // `second` belongs to the run after
  std::string detail;     // the order that is missing, or what is wrong
  int32_t block = 0;      // whose plan the numbers are of
};

struct VerifyReport {
  // Not OK: the plan does not even hang together, and nothing else was looked at.
  absl::Status structure;
  std::vector<Violation> violations;  // the first kMaxReportedViolations
  int64_t num_violations = 0;

  // What was checked, in all blocks together.
  int64_t blocks = 0;
  int64_t instructions = 0;
  int64_t edges = 0;               // kept ones
  int64_t pairs = 0;               // of conflicting accesses in a run
  int64_t pairs_between_runs = 0;  // the same, of one run and the next
  int64_t variables = 0;
  int64_t shared_storages = 0;  // memory that several names share
  int64_t frees = 0;            // variables that a run frees
  int64_t implicit_orders = 0;
  int64_t events = 0;
  int64_t waits = 0;

  // Edges and waits that others imply: all of them could go. At least as many when not `all`.
  int64_t redundant_edges = 0;
  int64_t redundant_waits = 0;
  bool all_redundancy_found = true;

  bool proved() const { return structure.ok() && num_violations == 0; }
};

inline constexpr size_t kMaxReportedViolations = 20;

struct VerifyOptions {
  bool count_redundancy = true;
};

// Time and memory are near-linear in arguments and edges, for plans that fail, too.
// The plan of one block alone.
VerifyReport VerifyPlan(const Plan& plan, const VerifyOptions& options = {});
// The plans of a program, by block, those of all blocks that run and what they share.
VerifyReport VerifyPlans(absl::Span<const Plan> plans, const VerifyOptions& options = {});

// For people: what was proved, or each violation with its instructions. Ends with a line break.
std::string ToText(absl::Span<const Plan> plans, const VerifyReport& report);
// One JSON object.
std::string ToJson(absl::Span<const Plan> plans, const VerifyReport& report);

// Whether BuildPlans proves what it has made; a plan that cannot be proved is then an Internal
// error that shows the report. On from the start in Debug builds, and switched on by all tests. For
// the whole process. Thread-safety: both from any thread.
bool ProvesBuiltPlans();
void ProveBuiltPlans(bool on);

}  // namespace interp
