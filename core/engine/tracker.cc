#include "core/engine/tracker.h"

#include <algorithm>
#include <mutex>

namespace interp::engine {
namespace {

AccessKind Merge(AccessKind a, AccessKind b) { return a == b ? a : AccessKind::kUpdate; }

void SortByVar(Access* begin, size_t count) {
  const auto earlier = [](const Access& a, const Access& b) { return a.var < b.var; };
  if (count > 16) {
    std::sort(begin, begin + count, earlier);
    return;
  }
  for (size_t i = 1; i < count; ++i) {
    for (size_t k = i; k > 0 && earlier(begin[k], begin[k - 1]); --k) {
      std::swap(begin[k], begin[k - 1]);
    }
  }
}

// REQUIRES: the variable is locked. Whether the access may go ahead at once.
bool Append(Var& var, Access& access) {
  access.prev = var.last;
  access.next = nullptr;
  (var.last == nullptr ? var.first : var.last->next) = &access;
  var.last = &access;
  const bool writes = Writes(access.kind);
  if (writes) {
    var.pending_writes.store(var.pending_writes.load(std::memory_order_relaxed) + 1,
                             std::memory_order_relaxed);
  }
  access.granted = var.waiting == nullptr && (writes ? var.granted == 0 : var.granted >= 0);
  if (!access.granted) {
    if (var.waiting == nullptr) var.waiting = &access;
  } else {
    var.granted = writes ? -1 : var.granted + 1;
  }
  return access.granted;
}

// One access of the record less to wait for; true when it was the last.
bool Unblock(Record& record) {
  // Only grants lower the count: who sees a one is the last, and sees what the others did before.
  if (record.blocked.load(std::memory_order_acquire) == 1) {
    record.blocked.store(0, std::memory_order_relaxed);
    return true;
  }
  return record.blocked.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// Grants from the front what may go ahead now.
void Advance(Var& var, RecordList& ready) {
  while (Access* access = var.waiting) {
    const bool writes = Writes(access->kind);
    if (writes ? var.granted != 0 : var.granted < 0) return;
    var.granted = writes ? -1 : var.granted + 1;
    access->granted = true;
    var.waiting = access->next;
    if (Record& record = access->record(); Unblock(record)) ready.Append(record);
  }
}

}  // namespace

void SortAndMerge(Record& record) {
  if (record.num_accesses < 2) return;
  Access* accesses = record.accesses();
  SortByVar(accesses, record.num_accesses);
  uint16_t kept = 0;
  for (uint16_t i = 1; i < record.num_accesses; ++i) {
    if (accesses[i].var == accesses[kept].var &&
        accesses[i].generation == accesses[kept].generation) {
      accesses[kept].kind = Merge(accesses[kept].kind, accesses[i].kind);
    } else {
      accesses[++kept] = accesses[i];
    }
  }
  record.num_accesses = static_cast<uint16_t>(kept + 1);
  for (uint16_t i = 0; i < record.num_accesses; ++i) accesses[i].index = i;
}

int32_t AppendAll(Record& record) {
  Access* const begin = record.accesses();
  Access* const end = begin + record.num_accesses;
  bool stale = false;
  Access* at = begin;
  for (; at != end && !stale; ++at) {
    // Only a stale handle makes a variable appear twice here; it is locked once.
    if (at != begin && at[-1].var == at->var) {
      stale = true;
      break;
    }
    at->var->lock.lock();
    stale = at->var->generation != at->generation;
  }
  Access* const locked_end = at;
  int32_t blocked = kStale;
  if (!stale) {
    blocked = 0;
    for (at = begin; at != end; ++at) blocked += Append(*at->var, *at) ? 0 : 1;
    // It is lowered only after the locks are open, which publish it.
    record.blocked.store(static_cast<uint16_t>(blocked), std::memory_order_relaxed);
  }
  for (at = begin; at != locked_end; ++at) at->var->lock.unlock();
  return blocked;
}

void RemoveLocked(Access& access, RecordList& ready) {
  Var& var = *access.var;
  const bool writes = Writes(access.kind);
  if (access.granted) {
    var.granted = writes ? 0 : var.granted - 1;
  } else if (var.waiting == &access) {
    var.waiting = access.next;
  }
  (access.prev == nullptr ? var.first : access.prev->next) = access.next;
  (access.next == nullptr ? var.last : access.next->prev) = access.prev;
  if (writes) {
    var.pending_writes.store(var.pending_writes.load(std::memory_order_relaxed) - 1,
                             std::memory_order_release);
  }
  Advance(var, ready);
}

bool AppendLast(Record& record) {
  Access& access = *record.accesses();
  const bool granted = Append(*access.var, access);
  record.blocked.store(granted ? 0 : 1, std::memory_order_relaxed);
  return granted;
}

void Release(Access& access, const ErrorRef* error, RecordList& ready) {
  Var& var = *access.var;
  // Destroyed without the lock: an error may hold an exception of the user's.
  ErrorRef replaced;
  std::lock_guard<SpinLock> guard(var.lock);
  if (Writes(access.kind)) {
    var.version.store(var.version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (error != nullptr && !(var.error == *error)) {
      replaced = std::exchange(var.error, *error);
      var.spoilt.store(static_cast<bool>(*error), std::memory_order_relaxed);
    }
  }
  RemoveLocked(access, ready);
}

}  // namespace interp::engine
