// Scope: variables by name, in a tree. A name is looked up in the scope and then in its ancestors.
#pragma once

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/variable.h"

namespace interp {

// Pointers to variables stay valid until the variable is erased or the scope is destroyed.
// Thread-safety: all methods from any thread; whoever erases a variable makes sure that nobody uses
// it. What the variables hold is guarded by whoever runs programs on them.
class Scope {
 public:
  Scope();
  // `parent` is kept alive by its children.
  explicit Scope(std::shared_ptr<Scope> parent);

  // The variable of that name in this scope, created empty when missing.
  Variable* FindOrCreate(absl::string_view name);
  // The variable in this scope or the nearest ancestor that has it, or null.
  Variable* Find(absl::string_view name) const;
  // The variable in this scope alone, or null.
  Variable* FindLocal(absl::string_view name) const;
  // Removes a variable of this scope; returns whether it was there.
  bool Erase(absl::string_view name);

  // Claims what the variables hold for a run: alone for one that writes them, else beside others
  // that only read. False when somebody else's claim is in the way. Thread-safety: both from any
  // thread.
  bool TryClaim(bool writes);
  void ReleaseClaim(bool writes);
  // Where what the variables hold lies: held shared by a run that reads them, and alone by one that
  // takes them to another place, which changes no value.
  std::shared_mutex& places() { return places_; }

  const std::shared_ptr<Scope>& parent() const { return parent_; }
  // The topmost ancestor: where persistable variables live.
  Scope& root();
  // Names in this scope, sorted.
  std::vector<std::string> LocalNames() const;
  // A number no other scope of the process has or had: identity for caches, never reused.
  uint64_t id() const { return id_; }

 private:
  const uint64_t id_;
  std::shared_ptr<Scope> parent_;
  // Of the names: programs that share a scope bind theirs when they are made, not when they run.
  mutable std::shared_mutex names_;
  absl::flat_hash_map<std::string, std::unique_ptr<Variable>> variables_;
  std::atomic<int32_t> claims_{0};  // of readers; -1: of a writer
  std::shared_mutex places_;
};

}  // namespace interp
