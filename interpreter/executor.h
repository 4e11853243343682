// Executor: runs programs by value and keeps their cores.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"
#include "core/scope.h"
#include "core/status.h"
#include "interpreter/interpreter_core.h"

namespace interp {

struct ExecutorOptions {
  CoreOptions core = {};
  // Cores kept; the least recently used one goes. 8, as in Paddle's executor.
  size_t capacity = 8;
};

struct ExecutorStats {
  int64_t hits = 0;
  int64_t misses = 0;
  int64_t evictions = 0;
};

// A cache of InterpreterCores, keyed by the XXH64 (seed 1) of the serialised program, the feed and
// fetch names in order, and the identity of the scope.
//
// Thread-safety: all methods from any thread. Cores are shared: two threads that Run the same
// program at once get one core and the second fails; give each a Clone() of Get's core instead.
class Executor {
 public:
  explicit Executor(ExecutorOptions options = {});

  // The core for a program, made when the cache has none. Serialises the program to find it, which
  // takes time linear in its size: for a hot path keep the core. `scope` must not be null.
  absl::StatusOr<std::shared_ptr<InterpreterCore>> Get(const Program& program,
                                                       const std::vector<std::string>& feeds,
                                                       const std::vector<std::string>& fetches,
                                                       const std::shared_ptr<Scope>& scope);

  // Get, then Run with the named feeds. Random numbers come from the executor's state, of which
  // each Run of any program uses up one step, unless options.random says otherwise: a core that was
  // dropped and made again does not repeat itself.
  absl::StatusOr<std::vector<Tensor>> Run(const Program& program,
                                          const std::vector<std::pair<std::string, Tensor>>& feeds,
                                          const std::vector<std::string>& fetches,
                                          const std::shared_ptr<Scope>& scope,
                                          const RunOptions& options = {});

  // What the next Run draws from. A Run in another thread may take its step at any time.
  RandomState random_state() const;
  void SetRandomState(const RandomState& state);

  ExecutorStats stats() const;
  // Drops all cores.
  void Clear();

 private:
  struct Key {
    uint64_t program_hash;
    size_t program_bytes;
    std::vector<std::string> feeds;
    std::vector<std::string> fetches;
    uint64_t scope_id;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::shared_ptr<InterpreterCore> core;
  };

  std::shared_ptr<InterpreterCore> FindLocked(const Key& key);

  const ExecutorOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  std::list<Entry> entries_;  // most recently used first; few, so a list is searched fast enough
  ExecutorStats stats_;
  RandomState random_;
};

}  // namespace interp
