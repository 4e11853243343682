#include "absl/container/flat_hash_set.h"
#include "core/engine/engine_core.h"

namespace interp::engine {
namespace {

// Entries of a chain or a queue that are shown.
constexpr int kMaxShown = 20;

absl::string_view Name(AccessKind kind) {
  constexpr absl::string_view kNames[] = {"read", "write", "update"};
  return kNames[static_cast<int>(kind)];
}

std::string NameOf(const Record& record) {
  return record.kind == RecordKind::kWaiter
             ? "a thread that waits"
             : absl::StrCat(NumberText(record.number), " '", record.name, "'");
}

std::string StateOf(const Record& record) {
  const int32_t blocked = record.blocked.load(std::memory_order_relaxed);
  if (blocked > 0) return absl::StrCat("blocked by ", blocked);
  return record.holders.load(std::memory_order_relaxed) > 0 ? "running" : "ready";
}

bool IsOf(const Access& access, uint64_t number) {
  const Record& record = const_cast<Access&>(access).record();
  return record.kind == RecordKind::kOperation && record.number == number;
}

// The access of operation `number` that is not granted; null when the operation waits for no grant
// of this variable. REQUIRES: var.lock is held.
const Access* FindWaiting(const Var& var, uint64_t number) {
  const Access* at = var.waiting;
  while (at != nullptr && !IsOf(*at, number)) at = at->next;
  return at;
}

// The variable among `vars` that operation `number` waits for; null when it has moved on.
Var* FindWaitedFor(absl::Span<Var* const> vars, uint64_t number) {
  for (Var* const var : vars) {
    std::lock_guard<SpinLock> guard(var->lock);
    if (FindWaiting(*var, number) != nullptr) return var;
  }
  return nullptr;
}

// The operations that have to end before a waiter is granted, found one after the other.
class BlockerSearch {
 public:
  // An access that waits: a waiter's, or that of the operation `number` in the queue of `var`.
  struct Waiting {
    Var* var;
    const Access* waiter;
    uint64_t number;
  };

  // Calls `visit(record)`, under the lock of a variable, for operations not visited before.
  template <typename Visit>
  void VisitBlockersOf(const Waiting& waiting, const Visit& visit) {
    std::lock_guard<SpinLock> guard(waiting.var->lock);
    const Access* const at =
        waiting.waiter != nullptr ? waiting.waiter : FindWaiting(*waiting.var, waiting.number);
    if (at == nullptr || at->granted) return;
    bool writes = Writes(at->kind);
    for (const Access* ahead = at->prev; ahead != nullptr; ahead = ahead->prev) {
      if (!writes && !Writes(ahead->kind)) continue;
      Record& record = const_cast<Access*>(ahead)->record();
      if (record.kind == RecordKind::kOperation) {
        if (visited_.insert(record.number).second) visit(record);
      } else if (!ahead->granted && !reinterpret_cast<const Waiter&>(record).has_deadline) {
        // Another thread waits here; what that is for blocks this one, too.
        writes |= Writes(ahead->kind);
      }
    }
  }

 private:
  absl::flat_hash_set<uint64_t> visited_;
};

}  // namespace

std::string NumberText(uint64_t number) {
  const uint64_t home = number % kNumHomes;
  return home == 0 ? absl::StrCat("#", number / kNumHomes)
                   : absl::StrCat("#", number / kNumHomes, ".", home);
}

std::string EngineCore::NameOf(const Var& var) const {
  std::lock_guard<std::mutex> lock(names_mutex_);
  const auto at = names_.find(&var);
  return at == names_.end() ? "variable" : absl::StrCat("variable '", at->second, "'");
}

std::string EngineCore::DescribeQueue(const Var& var) const {
  std::string text;
  int granted = 0;
  int waiting = 0;
  for (const Access* a = var.first; a != nullptr; a = a->next) {
    ++(a->granted ? granted : waiting);
    if (granted + waiting > kMaxShown) continue;
    Record& record = const_cast<Access*>(a)->record();
    absl::StrAppend(&text, "\n  ", engine::NameOf(record), " ", Name(a->kind), ", ",
                    a->granted ? "granted" : "waiting");
    if (record.kind == RecordKind::kOperation) absl::StrAppend(&text, "; ", StateOf(record));
  }
  if (granted + waiting > kMaxShown) {
    absl::StrAppend(&text, "\n  and ", granted + waiting - kMaxShown, " more");
  }
  return absl::StrCat(": version ", var.version.load(std::memory_order_relaxed), ", ", granted,
                      " granted, ", waiting, " waiting",
                      var.error ? absl::StrCat(", spoilt by ", ToStatus(*var.error).message()) : "",
                      text, "\n");
}

std::string EngineCore::Describe(Variable variable) {
  if (variable.var == nullptr) return "no variable\n";
  if (variable.engine != id_) return "a variable of another engine\n";
  const std::string name = NameOf(*variable.var);
  std::lock_guard<SpinLock> guard(variable.var->lock);
  if (variable.var->generation != variable.generation) return "a deleted variable\n";
  return name + DescribeQueue(*variable.var);
}

template <typename Visit>
void EngineCore::FollowChain(Waiter& waiter, const Visit& visit) {
  Var* var = waiter.access.var;
  uint64_t behind = 0;  // the operation whose way is followed; 0: the waiter
  // Each step goes to an operation that was pushed earlier.
  while (var != nullptr) {
    std::vector<Var*> next;
    {
      std::lock_guard<SpinLock> guard(var->lock);
      const Access* stuck = var->waiting;
      if (behind == 0) {
        while (stuck != nullptr && stuck != &waiter.access) stuck = stuck->next;
      } else {
        stuck = FindWaiting(*var, behind);
      }
      if (stuck == nullptr) return;
      Record& front = var->first->record();
      visit(*var, front);
      if (front.kind == RecordKind::kWaiter || front.blocked.load(std::memory_order_acquire) == 0) {
        return;
      }
      behind = front.number;
      for (int i = 0; i < front.num_accesses; ++i) next.push_back(front.accesses()[i].var);
    }
    var = FindWaitedFor(next, behind);
  }
}

std::string EngineCore::ChainText(Waiter& waiter) {
  struct Link {
    const Var* var;
    std::string operation;
  };
  std::vector<Link> links;
  int more = 0;
  FollowChain(waiter, [&](const Var& var, const Record& record) {
    if (links.size() < kMaxShown) {
      links.push_back({&var, absl::StrCat(engine::NameOf(record), ", which is ", StateOf(record))});
    } else {
      ++more;
    }
  });
  std::string text;
  for (const Link& link : links) {
    absl::StrAppend(&text, "\n  ", NameOf(*link.var), " is held by ", link.operation);
  }
  if (more > 0) absl::StrAppend(&text, "\n  and ", more, " more");
  return text;
}

absl::Status EngineCore::CheckForCycle(Waiter& waiter) {
  // Waits inside operations stay as they are meanwhile, and an operation that was found to be
  // blocked stays so until its blocker has ended: what is found holds.
  std::lock_guard<std::mutex> lock(inside_mutex_);
  BlockerSearch search;
  std::vector<BlockerSearch::Waiting> todo{{waiter.access.var, &waiter.access, 0}};
  absl::Status status;
  while (!todo.empty() && status.ok()) {
    const BlockerSearch::Waiting waiting = todo.back();
    todo.pop_back();
    search.VisitBlockersOf(waiting, [&](Record& record) {
      if (record.blocked.load(std::memory_order_acquire) > 0) {
        for (int i = 0; i < record.num_accesses; ++i) {
          todo.push_back({record.accesses()[i].var, nullptr, record.number});
        }
      }
      const auto at = waits_inside_.find(record.number);
      if (at == waits_inside_.end()) return;
      for (const Waiter* inside : at->second) {
        if (inside == &waiter) {
          status = absl::FailedPreconditionError(
              absl::StrCat("operation ", engine::NameOf(record), " waits for itself"));
        } else if (!inside->has_deadline) {
          todo.push_back({inside->access.var, &inside->access, 0});
        }
      }
    });
  }
  return status;
}

}  // namespace interp::engine
