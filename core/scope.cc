#include "core/scope.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace interp {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Scope::Scope() : id_(NextId()) {}
Scope::Scope(std::shared_ptr<Scope> parent) : id_(NextId()), parent_(std::move(parent)) {}

Variable* Scope::FindOrCreate(absl::string_view name) {
  const std::unique_lock lock(names_);
  std::unique_ptr<Variable>& slot = variables_[name];
  if (slot == nullptr) slot = std::make_unique<Variable>();
  return slot.get();
}

Variable* Scope::FindLocal(absl::string_view name) const {
  const std::shared_lock lock(names_);
  const auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : it->second.get();
}

Variable* Scope::Find(absl::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
    if (Variable* variable = scope->FindLocal(name)) return variable;
  }
  return nullptr;
}

bool Scope::Erase(absl::string_view name) {
  const std::unique_lock lock(names_);
  return variables_.erase(name) > 0;
}

bool Scope::TryClaim(bool writes) {
  int32_t claims = 0;
  if (writes) return claims_.compare_exchange_strong(claims, -1, std::memory_order_acquire);
  claims = claims_.load(std::memory_order_relaxed);
  while (claims >= 0) {
    if (claims_.compare_exchange_weak(claims, claims + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void Scope::ReleaseClaim(bool writes) {
  // Release: the next claim sees what this one wrote.
  if (writes) {
    claims_.store(0, std::memory_order_release);
  } else {
    claims_.fetch_sub(1, std::memory_order_release);
  }
}

Scope& Scope::root() {
  Scope* scope = this;
  while (scope->parent_ != nullptr) scope = scope->parent_.get();
  return *scope;
}

std::vector<std::string> Scope::LocalNames() const {
  const std::shared_lock lock(names_);
  std::vector<std::string> names;
  names.reserve(variables_.size());
  for (const auto& [name, variable] : variables_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace interp
