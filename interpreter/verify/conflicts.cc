#include "interpreter/verify/conflicts.h"

#include <algorithm>

#include "core/base/disjoint_sets.h"

namespace interp::verify {
namespace {

// Which variables share memory. By VarId.
class Storages {
 public:
  explicit Storages(const Plan& plan) : sets_(plan.vars.size()), shared_(plan.vars.size(), false) {
    for (const Instruction& instruction : plan.instructions) {
      for (const InplacePair& pair : instruction.share) {
        sets_.Join(instruction.inputs[pair.input], instruction.outputs[pair.output]);
      }
    }
    for (size_t id = 0; id < sets_.count(); ++id) {
      const auto var = static_cast<VarId>(id);
      if (Root(var) != var) shared_[Root(var)] = true;
    }
  }

  VarId Root(VarId id) { return sets_.Root(id); }
  bool IsShared(VarId id) { return shared_[Root(id)]; }
  int64_t num_shared() const { return std::count(shared_.begin(), shared_.end(), true); }

 private:
  DisjointSets sets_;
  std::vector<bool> shared_;  // valid at roots
};

struct Access {
  Moment moment;
  VarId var = -1;
};

// The last write of one thing and the reads since.
struct History {
  Access write;
  std::vector<Access> reads;
};

class ConflictFinder {
 public:
  ConflictFinder(const Plan& plan, bool has_devices, absl::FunctionRef<void(const Conflict&)> visit)
      : plan_(plan),
        has_devices_(has_devices),
        visit_(visit),
        storages_(plan),
        metadata_(plan.vars.size()),
        memory_(has_devices ? plan.vars.size() : 0),
        shared_memory_(plan.vars.size()),
        lives_on_(plan.vars.size(), true),
        storage_lives_on_(plan.vars.size(), true) {}

  ConflictCounts Run() {
    VisitRun();
    for (const History& history : metadata_) {
      if (history.write.moment.id >= 0 || !history.reads.empty()) ++counts_.variables;
    }
    counts_.shared_storages = storages_.num_shared();
    if (has_devices_) {
      FindWhatLivesOn();
      next_run_ = true;
      VisitRun();
    }
    return counts_;
  }

 private:
  void FindWhatLivesOn() {
    storage_lives_on_.assign(plan_.vars.size(), false);
    for (size_t id = 0; id < plan_.vars.size(); ++id) {
      lives_on_[id] = plan_.vars[id].persistable || plan_.ref_counts[id] == 0;
      if (lives_on_[id]) storage_lives_on_[storages_.Root(static_cast<VarId>(id))] = true;
    }
  }

  void VisitRun() {
    for (size_t i = 0; i < plan_.instructions.size(); ++i) {
      const auto id = static_cast<InstrId>(i);
      const Instruction& instruction = plan_.instructions[i];
      for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
        if (instruction.inputs[arg] >= 0) VisitInput(id, static_cast<int>(arg));
      }
      for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
        if (instruction.outputs[arg] >= 0) VisitOutput(id, static_cast<int>(arg));
      }
    }
  }

  void VisitInput(InstrId id, int arg) {
    const Instruction& instruction = plan_.instructions[id];
    const VarId var = instruction.inputs[arg];
    const int flags = InputFlags(instruction, arg);
    if (lives_on_[var]) Read(metadata_[var], {{id, /*completion=*/false, next_run_}, var});
    if ((flags & kNoNeedBuffer) != 0) return;
    const bool at_issue = instruction.place.on_host() || IsHostInput(instruction, arg);
    const Access read{{id, /*completion=*/!at_issue, next_run_}, var};
    if (has_devices_ && lives_on_[var]) Read(memory_[var], read);
    if (SharesWhatLivesOn(var)) Read(shared_memory_[storages_.Root(var)], read);
  }

  void VisitOutput(InstrId id, int arg) {
    const Instruction& instruction = plan_.instructions[id];
    const VarId var = instruction.outputs[arg];
    const Access write{{id, /*completion=*/!instruction.place.on_host(), next_run_}, var};
    if (SharesWhatLivesOn(var) && !IsViewOutput(instruction, arg)) {
      Write(shared_memory_[storages_.Root(var)], write);
    }
    if (!lives_on_[var]) return;
    if (has_devices_) Write(memory_[var], write);
    Write(metadata_[var], {{id, /*completion=*/false, next_run_}, var});
  }

  bool SharesWhatLivesOn(VarId var) {
    return storages_.IsShared(var) && storage_lives_on_[storages_.Root(var)];
  }

  static bool IsViewOutput(const Instruction& instruction, int arg) {
    return std::any_of(
        instruction.share.begin(), instruction.share.end(),
        [&](const InplacePair& pair) { return pair.output == arg && IsView(instruction, pair); });
  }

  void Read(History& history, const Access& read) {
    if (history.write.moment.id >= 0) Visit(EdgeKind::kReadAfterWrite, history.write, read);
    const bool repeated = !history.reads.empty() && history.reads.back().moment == read.moment;
    if (!repeated) history.reads.push_back(read);
  }

  void Write(History& history, const Access& write) {
    for (const Access& read : history.reads) Visit(EdgeKind::kWriteAfterRead, read, write);
    if (history.reads.empty() && history.write.moment.id >= 0) {
      Visit(EdgeKind::kWriteAfterWrite, history.write, write);
    }
    history.reads.clear();
    history.write = write;
  }

  void Visit(EdgeKind kind, const Access& first, const Access& second) {
    if (first.moment == second.moment) return;
    if (next_run_ && first.moment.next_run) return;  // as in the first run
    ++(next_run_ ? counts_.pairs_between_runs : counts_.pairs);
    visit_({kind, first.moment, second.moment, first.var, second.var});
  }

  const Plan& plan_;
  const bool has_devices_;
  const absl::FunctionRef<void(const Conflict&)> visit_;
  Storages storages_;
  std::vector<History> metadata_;       // by VarId
  std::vector<History> memory_;         // by VarId; without devices, metadata tell all
  std::vector<History> shared_memory_;  // by Storages::Root
  // Looked at in this run: every variable, then those that the run leaves for the next one. A view
  // of a parameter is made anew in each run, while the memory that it shares lives on.
  std::vector<bool> lives_on_;          // by VarId
  std::vector<bool> storage_lives_on_;  // by Storages::Root
  bool next_run_ = false;
  ConflictCounts counts_;
};

}  // namespace

ConflictCounts ForEachConflict(const Plan& plan, bool has_devices,
                               absl::FunctionRef<void(const Conflict&)> visit) {
  return ConflictFinder(plan, has_devices, visit).Run();
}

}  // namespace interp::verify
