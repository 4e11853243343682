#include "tests/testing/brute_proof.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace interp::testing {
namespace {

constexpr size_t kMaxMoments = 1024;
using Matrix = std::vector<std::bitset<kMaxMoments>>;

void Close(Matrix& reaches) {
  for (size_t via = 0; via < reaches.size(); ++via) {
    for (std::bitset<kMaxMoments>& row : reaches) {
      if (row[via]) row |= reaches[via];
    }
  }
}

struct Access {
  InstrId id;
  bool completion;
  bool write;
};

class Prover {
 public:
  explicit Prover(const Plan& plan) : plan_(plan), n_(plan.instructions.size()) {}

  std::string Run() {
    INTERP_CHECK(4 * n_ <= kMaxMoments);
    CloseIssues();
    CloseMoments();
    CheckCounts();
    CheckEvents();
    CheckAccesses();
    CheckOverwritten();
    CheckFrees();
    return wrong_;
  }

 private:
  const Instruction& At(size_t i) const { return plan_.instructions[i]; }
  bool OnDevice(size_t i) const { return !At(i).place.on_host(); }
  size_t Node(int run, size_t i, bool completion) const {
    return run * 2 * n_ + 2 * i + (completion && OnDevice(i) ? 1 : 0);
  }
  template <typename... Args>
  void Wrong(const Args&... args) {
    if (wrong_.empty()) wrong_ = absl::StrCat(args...);
  }

  void CloseIssues() {
    issues_.assign(n_, {});
    for (size_t i = 0; i < n_; ++i) {
      for (const InstrId to : plan_.successors[static_cast<InstrId>(i)]) issues_[i][to] = true;
    }
    Close(issues_);
  }

  bool WaitCounts(size_t waiter, const EventWait& wait) const {
    const auto recorder = static_cast<size_t>(plan_.events[wait.event].recorder);
    return At(recorder).record == wait.event && OnDevice(recorder) &&
           (wait.previous_run || issues_[recorder][waiter]);
  }

  void CloseMoments() {
    moments_.assign(4 * n_, {});
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) {
        moments_[Node(0, i, false)][Node(1, j, false)] = true;
        const bool one_stream = OnDevice(i) && OnDevice(j) && At(i).stream == At(j).stream;
        if (one_stream) moments_[Node(0, i, true)][Node(1, j, true)] = true;
        for (const int run : {0, 1}) {
          if (!issues_[i][j]) continue;
          moments_[Node(run, i, false)][Node(run, j, false)] = true;
          if (one_stream) moments_[Node(run, i, true)][Node(run, j, true)] = true;
        }
      }
      for (const int run : {0, 1}) {
        if (OnDevice(i)) moments_[Node(run, i, false)][Node(run, i, true)] = true;
        for (const EventWait& wait : At(i).waits) {
          if (!WaitCounts(i, wait) || (wait.previous_run && run == 0)) continue;
          const size_t recorder = plan_.events[wait.event].recorder;
          moments_[Node(wait.previous_run ? 0 : run, recorder, true)]
                  [Node(run, i, !wait.blocks_host)] = true;
        }
      }
    }
    Close(moments_);
  }

  void CheckCounts() {
    std::vector<int32_t> counts(n_, 0);
    for (const InstrId to : plan_.successors.ids) ++counts[to];
    if (counts != plan_.dep_counts) Wrong("dependency counts");
    for (size_t a = 0; a < n_; ++a) {
      for (size_t b = a + 1; b < n_; ++b) {
        if (issues_[plan_.order[b]][plan_.order[a]]) Wrong("trace order of #", plan_.order[a]);
      }
    }
  }

  void CheckEvents() {
    for (size_t e = 0; e < plan_.events.size(); ++e) {
      const InstrId recorder = plan_.events[e].recorder;
      if (At(recorder).record != static_cast<int32_t>(e)) Wrong("event ", e, " is not recorded");
    }
    for (size_t i = 0; i < n_; ++i) {
      for (const EventWait& wait : At(i).waits) {
        if (!WaitCounts(i, wait)) Wrong("#", i, " waits for nothing");
      }
    }
  }

  // Hidden arguments have no flags.
  int InputFlags(size_t i, size_t arg) const {
    const int slot = SlotOf(At(i).input_counts, static_cast<int>(arg));
    const std::vector<SlotDef>& slots = At(i).def->inputs;
    return slot < static_cast<int>(slots.size()) ? slots[slot].flags : 0;
  }

  bool ReadsMemory(size_t i, size_t arg) const {
    return At(i).inputs[arg] >= 0 && (InputFlags(i, arg) & kNoNeedBuffer) == 0;
  }

  static int SlotOf(const ArgCounts& counts, int arg) {
    int slot = 0;
    while (arg >= counts[slot]) arg -= counts[slot++];
    return slot;
  }
  static int Begin(const ArgCounts& counts, int slot) {
    return std::accumulate(counts.begin(), counts.begin() + slot, 0);
  }
  bool IsView(size_t i, const InplacePair& pair) const {
    const int in = SlotOf(At(i).input_counts, pair.input);
    const int out = SlotOf(At(i).output_counts, pair.output);
    for (const SharePair& view : At(i).def->view) {
      const bool first = pair.input == Begin(At(i).input_counts, in);
      if (view.input == in && view.output == out && (view.each || first)) return true;
    }
    return false;
  }
  bool IsViewOutput(size_t i, size_t arg) const {
    for (const InplacePair& pair : At(i).share) {
      if (pair.output == static_cast<int32_t>(arg) && IsView(i, pair)) return true;
    }
    return false;
  }

  // By variable: a name for the memory it shares.
  std::vector<VarId> Storages() const {
    std::vector<VarId> storage(plan_.vars.size());
    for (size_t v = 0; v < storage.size(); ++v) storage[v] = static_cast<VarId>(v);
    for (const Instruction& instruction : plan_.instructions) {
      for (const InplacePair& pair : instruction.share) {
        const VarId a = storage[instruction.inputs[pair.input]];
        const VarId b = storage[instruction.outputs[pair.output]];
        std::replace(storage.begin(), storage.end(), b, a);
      }
    }
    return storage;
  }

  void CheckAccesses() {
    const std::vector<VarId> storage = Storages();
    std::map<VarId, std::vector<Access>> metadata, memory, shared;
    for (size_t i = 0; i < n_; ++i) {
      const auto id = static_cast<InstrId>(i);
      for (size_t arg = 0; arg < At(i).inputs.size(); ++arg) {
        const VarId var = At(i).inputs[arg];
        if (var < 0) continue;
        metadata[var].push_back({id, false, false});
        if (!ReadsMemory(i, arg)) continue;
        const bool at_issue = (InputFlags(i, arg) & (kHostInput | kValueInInfer)) != 0;
        memory[var].push_back({id, !at_issue, false});
        shared[storage[var]].push_back({id, !at_issue, false});
      }
      for (size_t arg = 0; arg < At(i).outputs.size(); ++arg) {
        const VarId var = At(i).outputs[arg];
        if (var < 0) continue;
        metadata[var].push_back({id, false, true});
        memory[var].push_back({id, true, true});
        if (!IsViewOutput(i, arg)) shared[storage[var]].push_back({id, true, true});
      }
    }
    const auto lives = [&](VarId v) {
      return plan_.vars[v].persistable || plan_.ref_counts[v] == 0;
    };
    std::set<VarId> lives_on;
    for (size_t v = 0; v < plan_.vars.size(); ++v) {
      if (lives(static_cast<VarId>(v))) lives_on.insert(storage[v]);
    }
    for (const auto& [var, all] : metadata) CheckPairs(all, false, plan_.vars[var].name);
    for (const auto& [var, all] : memory) {
      CheckPairs(all, lives(var), plan_.vars[var].name);
    }
    for (const auto& [root, all] : shared) {
      CheckPairs(all, lives_on.count(root) > 0, plan_.vars[root].name);
    }
  }

  void CheckPairs(const std::vector<Access>& all, bool across_runs, const std::string& name) {
    for (const Access& a : all) {
      for (const Access& b : all) {
        if (!a.write && !b.write) continue;
        const size_t from = Node(0, a.id, a.completion);
        if (a.id < b.id && !moments_[from][Node(0, b.id, b.completion)]) {
          Wrong("#", a.id, " and #", b.id, " over ", name);
        }
        if (across_runs && !moments_[from][Node(1, b.id, b.completion)]) {
          Wrong("#", a.id, " and #", b.id, " of the next run over ", name);
        }
      }
    }
  }

  // -1: `var` is not touched; 0: written first or only; 1: its memory is read.
  int FirstTouch(size_t i, VarId var) const {
    for (size_t arg = 0; arg < At(i).inputs.size(); ++arg) {
      if (At(i).inputs[arg] == var && ReadsMemory(i, arg)) return 1;
    }
    return Writes(i, var) ? 0 : -1;
  }

  // A sub-block may leave alone what it could have written.
  bool Writes(size_t i, VarId var) const {
    for (size_t arg = 0; arg < At(i).outputs.size(); ++arg) {
      const bool hidden = IsHiddenOutput(At(i), static_cast<int>(arg));
      if (At(i).outputs[arg] == var && !hidden) return true;
    }
    return false;
  }

  void CheckOverwritten() {
    for (size_t i = 0; i < n_; ++i) {
      for (const InplacePair& pair : At(i).share) {
        const VarId var = At(i).inputs[pair.input];
        const VarId out = At(i).outputs[pair.output];
        if (out != var && FirstTouch(i, out) == 1) Wrong("#", i, " moves what it reads");
        if (IsView(i, pair) || At(i).outputs[pair.output] == var) continue;
        for (size_t arg = 0; arg < At(i).inputs.size(); ++arg) {
          const bool other = arg != static_cast<size_t>(pair.input);
          if (other && At(i).inputs[arg] == var && ReadsMemory(i, arg))
            Wrong("#", i, " reads twice");
        }
        int users = 0;  // outputs that lie in this memory or are to share it
        for (const VarId out : At(i).outputs) users += out == var ? 1 : 0;
        for (const InplacePair& p : At(i).share) {
          const bool other = At(i).outputs[p.output] != var;
          users += At(i).inputs[p.input] == var && other ? 1 : 0;
        }
        if (users > 1) Wrong("#", i, " has two outputs in the memory of ", plan_.vars[var].name);
        CheckLaterReads(i, var);
        CheckLeft(i, var);
      }
    }
  }

  void CheckLaterReads(size_t i, VarId var) {
    const bool lives_on = plan_.vars[var].persistable || plan_.ref_counts[var] == 0;
    for (size_t later = i + 1; later < (lives_on ? 2 * n_ : n_); ++later) {
      const int touch = FirstTouch(later % n_, var);
      if (touch == 1)
        Wrong("#", later, " reads ", plan_.vars[var].name, ", which #", i, " has hit");
      if (touch >= 0) return;
    }
  }

  // Somebody outside may read the variable after the activation.
  void CheckLeft(size_t i, VarId var) {
    const bool left = std::count(plan_.results.begin(), plan_.results.end(), var) > 0 ||
                      std::count(plan_.saved.begin(), plan_.saved.end(), SavedVar{var}) > 0;
    if (!left) return;
    for (size_t later = i + 1; later < n_; ++later) {
      if (Writes(later, var)) return;
    }
    Wrong("#", i, " hits what the block leaves: ", plan_.vars[var].name);
  }

  bool TouchesMemory(size_t i, VarId var) const {
    const VarIds& outputs = At(i).outputs;
    return FirstTouch(i, var) >= 0 || std::count(outputs.begin(), outputs.end(), var) > 0;
  }

  void CheckFrees() {
    for (size_t v = 0; v < plan_.vars.size(); ++v) {
      const auto var = static_cast<VarId>(v);
      std::vector<size_t> listers;
      std::vector<size_t> freed;  // positions in the trace order
      std::vector<size_t> used;
      for (size_t i = 0; i < n_; ++i) {
        for (const VarId id : plan_.gc_check[i]) {
          if (id == var) listers.push_back(i);
        }
        const InstrId at = plan_.order[i];
        for (const VarId id : plan_.frees_in_order[at]) {
          if (id == var) freed.push_back(i);
        }
        if (TouchesMemory(at, var)) used.push_back(i);
      }
      if (static_cast<size_t>(plan_.ref_counts[v]) != listers.size()) Wrong("count of ", v);
      if (freed.size() > 1 || (freed.empty() && !listers.empty())) Wrong("frees of ", v);
      if (!freed.empty() && !used.empty() && freed[0] < used.back()) Wrong("early free of ", v);
      const bool outlives = plan_.vars[v].persistable || plan_.vars[v].copy_of >= 0 ||
                            plan_.vars[v].captured || IsLeftToOthers(static_cast<VarId>(v));
      if ((!freed.empty() || !listers.empty()) && outlives) Wrong("free of ", v);
      for (size_t i = 0; i < n_ && !listers.empty(); ++i) {
        const bool before = std::any_of(listers.begin(), listers.end(),
                                        [&](size_t l) { return l == i || issues_[i][l]; });
        if (TouchesMemory(i, var) && !before) Wrong("#", i, " uses freed ", plan_.vars[v].name);
      }
    }
  }

  // Whether the kernel that runs the block, or the block's gradient, takes the variable.
  bool IsLeftToOthers(VarId var) const {
    return std::count(plan_.results.begin(), plan_.results.end(), var) > 0 ||
           std::any_of(plan_.saved.begin(), plan_.saved.end(),
                       [&](const SavedVar& saved) { return saved.var == var; });
  }

  const Plan& plan_;
  const size_t n_;
  Matrix issues_;   // by instruction, over kept edges
  Matrix moments_;  // by Node
  std::string wrong_;
};

}  // namespace

std::string BruteProof(const Plan& plan) { return Prover(plan).Run(); }

}  // namespace interp::testing
