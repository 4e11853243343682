#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "interpreter/analysis/dependencies.h"
#include "interpreter/verify/checks.h"

namespace interp::verify {
namespace {

class ImplicitOrderChecker {
 public:
  ImplicitOrderChecker(const Plan& plan, const std::vector<bool>& blocks_with_effects,
                       RunOrder& order, VerifyReport& report)
      : plan_(plan), blocks_with_effects_(blocks_with_effects), order_(order), report_(report) {}

  void Run() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      const Instruction& instruction = plan_.instructions[i];
      if (IsCommunication(instruction)) {
        Demand(communication_, id, "communication ops run in program order");
        communication_ = id;
      }
      if (KeepsOrder(instruction, blocks_with_effects_)) {
        Demand(effect_, id, "what is seen outside happens in program order");
        effect_ = id;
      }
      Demand(sync_, id, "all ops run after the synchronisation before them");
      if (instruction.op_type == "c_sync_comm_stream") sync_ = id;
      if (read_ >= 0) CheckAfterRead(id);
      if (instruction.op_type == "read") read_ = id;
      FollowCoalesced(id);
    }
  }

 private:
  // Of one coalesce_tensor: who wrote parts of it, until its fused output is read.
  struct Coalesced {
    VarId fused = -1;
    InstrId reader = -1;
    std::vector<InstrId> writers;
  };

  void Demand(InstrId first, InstrId second, absl::string_view rule, VarId var = -1) {
    if (first < 0 || first == second) return;
    ++report_.implicit_orders;
    if (order_.IssuedBefore(first, second) == Answer::kYes) return;
    Add(report_,
        {ViolationKind::kImplicitOrder, first, second, var, false,
         absl::StrCat(rule, ", but no path of kept edges leads from #", first, " to #", second)});
  }

  // What waits for nothing else waits for the `read` before it.
  void CheckAfterRead(InstrId id) {
    ++report_.implicit_orders;
    if (plan_.dep_counts[id] > 0) return;
    Add(report_, {ViolationKind::kImplicitOrder, read_, id, -1, false,
                  absl::StrCat("#", id, " waits for nothing, not even for the read op before it")});
  }

  void FollowCoalesced(InstrId id) {
    const Instruction& instruction = plan_.instructions[id];
    if (!coalesced_.empty()) {
      for (const VarId var : instruction.inputs) VisitRead(id, var);
      for (const VarId var : instruction.outputs) VisitWrite(id, var);
    }
    if (instruction.op_type != "coalesce_tensor") return;
    const int fused_slot = instruction.def->OutputIndex("FusedOutput");
    size_t begin = 0;
    for (int slot = 0; slot < fused_slot; ++slot) begin += instruction.output_counts[slot];
    if (fused_slot < 0 || instruction.output_counts[fused_slot] == 0) return;
    const VarId fused = instruction.outputs[begin];
    const auto index = static_cast<int32_t>(coalesced_.size());
    coalesced_.push_back({fused, -1, {}});
    for (const VarId var : instruction.outputs) {
      if (var >= 0) (var == fused ? of_fused_ : of_part_)[var] = index;
    }
  }

  void VisitRead(InstrId id, VarId var) {
    if (const auto it = of_fused_.find(var); it != of_fused_.end()) {
      Coalesced& coalesced = coalesced_[it->second];
      if (coalesced.reader < 0) {
        coalesced.reader = id;
        for (const InstrId writer : coalesced.writers) {
          Demand(writer, id, "readers of a coalesced tensor come after writers of its parts",
                 coalesced.fused);
        }
      }
    }
    if (const auto it = of_part_.find(var); it != of_part_.end()) {
      const Coalesced& coalesced = coalesced_[it->second];
      Demand(coalesced.reader, id,
             "readers of a part of a coalesced tensor come after the reader of the whole",
             coalesced.fused);
    }
  }

  void VisitWrite(InstrId id, VarId var) {
    const auto it = of_part_.find(var);
    if (it == of_part_.end()) return;
    Coalesced& coalesced = coalesced_[it->second];
    if (coalesced.reader < 0) coalesced.writers.push_back(id);
  }

  const Plan& plan_;
  const std::vector<bool>& blocks_with_effects_;
  RunOrder& order_;
  VerifyReport& report_;
  InstrId communication_ = -1;  // the latest of each kind
  InstrId effect_ = -1;
  InstrId sync_ = -1;
  InstrId read_ = -1;
  std::vector<Coalesced> coalesced_;
  absl::flat_hash_map<VarId, int32_t> of_fused_;  // index in coalesced_
  absl::flat_hash_map<VarId, int32_t> of_part_;
};

}  // namespace

void CheckEdges(const Plan& plan, VerifyReport& report) {
  const size_t n = plan.instructions.size();
  std::vector<int32_t> predecessors(n, 0);
  std::vector<size_t> position(n);
  for (size_t at = 0; at < n; ++at) position[plan.order[at]] = at;
  for (size_t i = 0; i < n; ++i) {
    const auto from = static_cast<InstrId>(i);
    for (const InstrId to : plan.successors[from]) {
      ++predecessors[to];
      if (position[from] < position[to]) continue;
      Add(report, {ViolationKind::kTraceOrder, from, to, -1, false,
                   absl::StrCat("the trace order has #", to, " before #", from)});
    }
  }
  for (size_t i = 0; i < n; ++i) {
    if (plan.dep_counts[i] == predecessors[i]) continue;
    Add(report, {ViolationKind::kDependencyCount, static_cast<InstrId>(i), -1, -1, false,
                 absl::StrCat(predecessors[i], " kept edges lead to it, but it waits for ",
                              plan.dep_counts[i])});
  }
  report.edges = static_cast<int64_t>(plan.successors.num_ids());
}

void CheckImplicitOrders(const Plan& plan, const std::vector<bool>& blocks_with_effects,
                         RunOrder& order, VerifyReport& report) {
  ImplicitOrderChecker(plan, blocks_with_effects, order, report).Run();
}

void CheckEvents(const Plan& plan, const RunOrder& order, VerifyReport& report) {
  for (size_t e = 0; e < plan.events.size(); ++e) {
    const InstrId recorder = plan.events[e].recorder;
    if (plan.instructions[recorder].record == static_cast<int32_t>(e)) continue;
    Add(report, {ViolationKind::kEvent, recorder, -1, -1, false,
                 absl::StrCat("event ", e, " is said to be recorded by it, but is not")});
  }
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (instruction.record < 0) continue;
    const auto id = static_cast<InstrId>(i);
    const InstrId recorder = plan.events[instruction.record].recorder;
    if (recorder != id) {
      Add(report, {ViolationKind::kEvent, std::min(recorder, id), std::max(recorder, id), -1, false,
                   absl::StrCat("both record event ", instruction.record)});
    } else if (instruction.place.on_host()) {
      Add(report,
          {ViolationKind::kEvent, id, -1, -1, false, "it records an event, but runs on the host"});
    }
  }
  for (const BadWait& wait : order.bad_waits()) {
    Add(report, {ViolationKind::kEvent, wait.recorder, wait.waiter, -1, false,
                 absl::StrCat("#", wait.waiter, " waits for nothing: ", wait.why)});
  }
  report.events = static_cast<int64_t>(plan.events.size());
  report.waits = order.num_waits() + static_cast<int64_t>(order.bad_waits().size());
}

}  // namespace interp::verify
