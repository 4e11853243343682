#include "interpreter/executor.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>

#include "core/program_load.h"

namespace interp {
namespace {

constexpr uint64_t kProgramHashSeed = 1;  // as Paddle's executor

}  // namespace

Executor::Executor(ExecutorOptions options)
    : options_(std::move(options)), random_{.seed = options_.core.random_seed} {}

std::shared_ptr<InterpreterCore> Executor::FindLocked(const Key& key) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.key == key; });
  if (it == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it);
  return it->core;
}

absl::StatusOr<std::shared_ptr<InterpreterCore>> Executor::Get(
    const Program& program, const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches, const std::shared_ptr<Scope>& scope) {
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, SaveProgram(program));
  const Key key{XXH64(bytes.data(), bytes.size(), kProgramHashSeed), bytes.size(), feeds, fetches,
                scope->id()};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::shared_ptr<InterpreterCore> core = FindLocked(key)) {
      ++stats_.hits;
      return core;
    }
    ++stats_.misses;
  }
  INTERP_ASSIGN_OR_RETURN(std::shared_ptr<InterpreterCore> core,
                          InterpreterCore::Create(program, feeds, fetches, scope, options_.core));
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::shared_ptr<InterpreterCore> other = FindLocked(key)) return other;  // made meanwhile
  entries_.push_front({key, core});
  while (entries_.size() > std::max<size_t>(1, options_.capacity)) {
    entries_.pop_back();
    ++stats_.evictions;
  }
  return core;
}

absl::StatusOr<std::vector<Tensor>> Executor::Run(
    const Program& program, const std::vector<std::pair<std::string, Tensor>>& feeds,
    const std::vector<std::string>& fetches, const std::shared_ptr<Scope>& scope,
    const RunOptions& options) {
  std::vector<std::string> names;
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : feeds) {
    names.push_back(name);
    tensors.push_back(tensor);
  }
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<InterpreterCore> core,
                          Get(program, names, fetches, scope));
  if (options.random.has_value()) return core->Run(tensors, options);
  RunOptions with_random = options;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    with_random.random = random_;
    ++random_.step;
  }
  return core->Run(tensors, with_random);
}

RandomState Executor::random_state() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return random_;
}

void Executor::SetRandomState(const RandomState& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  random_ = state;
}

ExecutorStats Executor::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Executor::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
}

}  // namespace interp
