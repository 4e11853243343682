#include <algorithm>

#include "interpreter/verify/checks.h"

namespace interp::verify {
namespace {

// By VarId: whether somebody outside the activation looks at the variable after it.
std::vector<bool> OutliveActivation(const Plan& plan) {
  std::vector<bool> outlive(plan.vars.size(), false);
  for (size_t id = 0; id < plan.vars.size(); ++id) {
    const PlanVar& var = plan.vars[id];
    outlive[id] = var.persistable || var.captured || var.folded || var.copy_of >= 0 ||
                  var.kind == VarKind::kFeedMinibatch || var.kind == VarKind::kFetchList;
  }
  for (const VarId id : {plan.feed_list, plan.fetch_list}) {
    if (id >= 0) outlive[id] = true;
  }
  for (const VarId id : plan.results) outlive[id] = true;
  for (const SavedVar& saved : plan.saved) outlive[saved.var] = true;
  return outlive;
}

// The variables whose memory or whole value an instruction touches, each once, sorted.
std::vector<VarId> Uses(const Plan& plan, const Instruction& instruction) {
  std::vector<VarId> uses;
  for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
    if (NeedsValue(plan, instruction, arg)) uses.push_back(instruction.inputs[arg]);
  }
  for (const VarId id : instruction.outputs) {
    if (id >= 0) uses.push_back(id);
  }
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  return uses;
}

class FreeChecker {
 public:
  FreeChecker(const Plan& plan, RunOrder& order, VerifyReport& report)
      : plan_(plan),
        order_(order),
        report_(report),
        outlive_(OutliveActivation(plan)),
        listers_(plan.vars.size()) {}

  void Run() {
    const size_t n = plan_.instructions.size();
    uses_.reserve(n);
    for (const Instruction& i : plan_.instructions) uses_.push_back(Uses(plan_, i));
    FindListers();
    // Later instructions first: what is known of them settles most earlier ones.
    settled_.resize(n);
    for (size_t i = n; i-- > 0;) CheckUses(static_cast<InstrId>(i));
    CheckTraceOrder();
  }

 private:
  void Fail(ViolationKind kind, InstrId first, InstrId second, VarId var, std::string detail) {
    Add(report_, {kind, first, second, var, false, std::move(detail)});
  }

  // Who lists each variable, in program order; checks the counts.
  void FindListers() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      for (const VarId var : plan_.gc_check[i]) {
        if (!listers_[var].empty() && listers_[var].back() == id) {
          Fail(ViolationKind::kFree, id, -1, var, "one instruction counts it down twice");
        }
        listers_[var].push_back(id);
      }
    }
    for (size_t v = 0; v < listers_.size(); ++v) {
      const auto var = static_cast<VarId>(v);
      const size_t listed = listers_[v].size();
      if (static_cast<size_t>(plan_.ref_counts[v]) != listed) {
        Fail(ViolationKind::kFree, -1, -1, var,
             absl::StrCat("its count is ", plan_.ref_counts[v], ", but ", listed,
                          " instructions count it down"));
      }
      if (listed == 0) continue;
      ++report_.frees;
      if (outlive_[var]) {
        Fail(ViolationKind::kFree, listers_[v].back(), -1, var, "it outlives the run");
      }
    }
  }

  // Notes for each use whether the instruction counts the variable down or is followed, over kept
  // edges, by one that does.
  void CheckUses(InstrId id) {
    std::vector<bool>& settled = settled_[id];
    settled.resize(uses_[id].size(), true);
    for (size_t u = 0; u < settled.size(); ++u) {
      const VarId var = uses_[id][u];
      if (listers_[var].empty() || IsSettled(id, var)) continue;
      settled[u] = false;
      const InstrId last = listers_[var].back();
      Fail(ViolationKind::kUseAfterFree, id, last, var,
           listers_[var].size() == 1
               ? absl::StrCat("#", last, " frees it, and no path of kept edges leads from #", id,
                              " to #", last)
               : absl::StrCat("the last of ", listers_[var].size(), " instructions, among them #",
                              last, ", frees it, and no path of kept edges leads from #", id,
                              " to any of them"));
    }
  }

  bool IsSettled(InstrId id, VarId var) {
    const std::vector<InstrId>& listers = listers_[var];
    if (std::binary_search(listers.begin(), listers.end(), id)) return true;
    for (const InstrId next : plan_.successors[id]) {
      const std::vector<VarId>& uses = uses_[next];
      const auto it = std::lower_bound(uses.begin(), uses.end(), var);
      if (it != uses.end() && *it == var && settled_[next][it - uses.begin()]) return true;
    }
    return std::any_of(
        std::upper_bound(listers.begin(), listers.end(), id), listers.end(),
        [&](InstrId lister) { return order_.IssuedBefore(id, lister) == Answer::kYes; });
  }

  void CheckTraceOrder() {
    // Positions in the trace order, -1: none.
    std::vector<int32_t> last_use(plan_.vars.size(), -1);
    std::vector<int32_t> freed(plan_.vars.size(), -1);
    for (size_t at = 0; at < plan_.order.size(); ++at) {
      const InstrId id = plan_.order[at];
      for (const VarId var : uses_[id]) last_use[var] = static_cast<int32_t>(at);
      for (const VarId var : plan_.frees_in_order[id]) {
        if (freed[var] >= 0) {
          Fail(ViolationKind::kFree, plan_.order[freed[var]], id, var,
               "it is freed twice in the trace order");
        } else if (outlive_[var]) {
          Fail(ViolationKind::kFree, id, -1, var, "it outlives the run");
        }
        freed[var] = static_cast<int32_t>(at);
      }
    }
    for (size_t v = 0; v < freed.size(); ++v) {
      const auto var = static_cast<VarId>(v);
      if (freed[v] >= 0 && freed[v] < last_use[v]) {
        Fail(ViolationKind::kUseAfterFree, plan_.order[last_use[v]], plan_.order[freed[v]], var,
             absl::StrCat("in the trace order #", plan_.order[freed[v]],
                          " comes earlier and frees"));
      } else if (freed[v] < 0 && plan_.ref_counts[v] > 0) {
        Fail(ViolationKind::kFree, listers_[v].empty() ? -1 : listers_[v].back(), -1, var,
             "in the trace order nothing frees it");
      }
    }
  }

  const Plan& plan_;
  RunOrder& order_;
  VerifyReport& report_;
  const std::vector<bool> outlive_;
  std::vector<std::vector<VarId>> uses_;       // by InstrId
  std::vector<std::vector<InstrId>> listers_;  // by VarId: who counts it down
  std::vector<std::vector<bool>> settled_;     // by InstrId and use: followed by a lister
};

}  // namespace

void CheckFrees(const Plan& plan, RunOrder& order, VerifyReport& report) {
  FreeChecker(plan, order, report).Run();
}

}  // namespace interp::verify
