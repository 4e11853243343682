// GridRunner: runs the threads of a kernel on one thread of the host.
//
// Blocks run one after another, in an order drawn from the seed. Each thread of a block is a fiber
// that runs until it waits at a barrier or in an operation of its warp; who goes on next is drawn,
// too. Accesses to memory are reported by the instrumentation of the kernels (access_hooks.cc) and
// checked against the shadow of what they touch before they happen.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_emulation/device_memory.h"
#include "tests/cuda_emulation/finding.h"
#include "tests/cuda_emulation/shadow.h"

namespace interp::cuda_emulation {

inline constexpr unsigned kMaxBlockThreads = 1024;
inline constexpr size_t kMaxSharedBytes = size_t{48} << 10;

// What device code may use besides shared memory, its arguments and its own stack.
struct GridMemory {
  std::vector<DeviceMemory*> devices;
  const std::map<uintptr_t, size_t>* pinned = nullptr;  // host memory, address -> bytes
  StreamWork work = {};                                 // what the kernel is among the streams'
  std::function<std::string(WorkStamp)> name_of_work = nullptr;
};

// Thread-safety: none; a run may be on any thread.
class GridRunner {
 public:
  static absl::StatusOr<std::unique_ptr<GridRunner>> Create(uint64_t seed);
  ~GridRunner();
  GridRunner(const GridRunner&) = delete;
  GridRunner& operator=(const GridRunner&) = delete;

  // Runs all of it, or up to the first mistake that a GPU would not survive. Adds to `findings`
  // each mistake once for a place in the source. REQUIRES: the launch fits the limits.
  cudaError_t Run(const GridLaunch& launch, const GridMemory& memory,
                  std::vector<Finding>& findings);

 private:
  // What device code calls; see cuda_runtime.h.
  friend uint3 ThreadIndex();
  friend uint3 BlockIndex();
  friend dim3 BlockSize();
  friend dim3 GridSize();
  friend int Lane();
  friend void Barrier(SourcePlace where);
  friend uint64_t Exchange(WarpOperation operation, unsigned mask, uint64_t bits, int source,
                           SourcePlace where);
  friend void* SharedMemory(const void* key, size_t bytes, const char* name);
  friend void OnAccess(const void* address, size_t bytes, AccessKind kind, uintptr_t pc);

  struct Thread {
    enum class State : int8_t { kReady, kAtBarrier, kInWarp, kEnded };
    State state = State::kReady;
    boost::context::fiber fiber;      // of the thread while the scheduler runs
    boost::context::fiber scheduler;  // while the thread runs
    uint3 index = {};
    SourcePlace where;
    WarpOperation operation = WarpOperation::kSync;
    unsigned mask = 0;
    uint64_t bits = 0;
    int source = 0;
  };
  struct Variable {
    char* at;
    size_t bytes;
    const char* name;
  };
  // A finding before its text is made, which takes more stack than a thread has.
  struct Mistake {
    Finding::Type type = Finding::Type::kRace;
    uint32_t thread = 0;  // as in Touch
    uintptr_t pc = 0;
    uintptr_t address = 0;
    size_t bytes = 0;
    AccessKind kind = AccessKind::kRead;
    Conflict conflict = {};
    std::string text = {};  // where there was no access
  };

  static constexpr size_t kStackBytes = size_t{64} << 10;

  explicit GridRunner(uint64_t seed) : random_(seed) {}

  static uint3 IndexOf(uint32_t number, dim3 size) {
    return {number % size.x, number / size.x % size.y, number / size.x / size.y};
  }

  void RunBlock(uint32_t block);
  void StartThread(uint32_t index);
  void Resume(Thread& thread);
  void Suspend(Thread& thread);
  // The thread that runs. REQUIRES: called from device code.
  static Thread& Self();
  char* StackOf(const Thread& thread) const { return stacks_ + NumberOf(thread) * kStackBytes; }
  void EndThread(Thread& thread);
  uint32_t NumberOf(const Thread& thread) const { return &thread - threads_.data(); }
  Toucher ToucherOf(const Thread& thread, uint32_t scope, uintptr_t pc) const;

  void WaitAtBarrier(SourcePlace where);
  uint64_t ExchangeInWarp(WarpOperation operation, unsigned mask, uint64_t bits, int source,
                          SourcePlace where);
  // Lets the lanes of `mask` go on if all of them that are there wait for the same.
  void TryRelease(uint32_t warp, unsigned mask, WarpOperation operation);
  void ReleaseLanes(uint32_t warp, unsigned lanes, unsigned live);
  unsigned LiveLanes(uint32_t warp) const;
  void MakeReady(Thread& thread);
  void* FindShared(const void* key, size_t bytes, const char* name);

  void CheckAccess(uintptr_t address, size_t bytes, AccessKind kind, uintptr_t pc);
  bool MayUse(uintptr_t address) const;
  // Notes a mistake of the running thread.
  void Report(Mistake mistake);
  // The same, and the grid ends: does not return.
  void Fail(Mistake mistake, cudaError_t error);
  void FailWarp(SourcePlace where, std::string text);
  // Nobody can go on: says who waits where.
  void ReportDivergence();
  std::string ThreadName(uint32_t thread) const;
  std::string Describe(const Mistake& mistake) const;
  std::string DescribeMemory(uintptr_t address) const;

  std::mt19937_64 random_;
  char* stacks_ = nullptr;
  char* shared_ = nullptr;  // the shared memory of the block that runs
  std::unique_ptr<Shadow> shared_shadow_;

  // Of the run.
  const GridLaunch* launch_ = nullptr;
  const GridMemory* memory_ = nullptr;
  uint32_t last_scope_ = 0;
  uint32_t launch_scope_ = 0;
  cudaError_t error_ = cudaSuccess;
  std::map<std::array<uintptr_t, 3>, Mistake> mistakes_;

  // Of the block.
  uint3 block_ = {};
  uint32_t block_number_ = 0;
  uint32_t block_scope_ = 0;
  uint16_t block_epoch_ = 0;
  std::array<uint16_t, kMaxBlockThreads / warpSize> warp_epochs_ = {};
  std::vector<Thread> threads_;
  std::vector<uint32_t> ready_;
  uint32_t num_at_barrier_ = 0;
  uint32_t num_ended_ = 0;
  std::map<const void*, Variable> variables_;
  size_t shared_used_ = 0;
};

// An access of code that was compiled with instrumentation; cheap where no device code runs.
void OnAccess(const void* address, size_t bytes, AccessKind kind, uintptr_t pc);

}  // namespace interp::cuda_emulation
