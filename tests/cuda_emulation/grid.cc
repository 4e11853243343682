#include "tests/cuda_emulation/grid.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace interp::cuda_emulation {
namespace {

constexpr size_t kSharedGapBytes = 64;  // between variables in shared memory
// Room for the gaps, too: what a block asks for is limited apart.
constexpr size_t kArenaBytes = 2 * kMaxSharedBytes;

// The runner whose device code runs on this thread of the host now; null in code of the emulation,
// which may share inline functions with instrumented code. And the thread of the grid.
thread_local GridRunner* running_grid = nullptr;
thread_local void* running_thread = nullptr;

// While one lives, code of this thread is the emulation's.
class OutsideDeviceCode {
 public:
  OutsideDeviceCode() : grid_(std::exchange(running_grid, nullptr)) {}
  ~OutsideDeviceCode() { running_grid = grid_; }
  OutsideDeviceCode(const OutsideDeviceCode&) = delete;
  OutsideDeviceCode& operator=(const OutsideDeviceCode&) = delete;
  GridRunner& grid() const { return *grid_; }

 private:
  GridRunner* const grid_;
};

struct BorrowedStack {
  void deallocate(boost::context::stack_context& /*stack*/) noexcept {}  // NOLINT(*-naming)
};

}  // namespace

absl::StatusOr<std::unique_ptr<GridRunner>> GridRunner::Create(uint64_t seed) {
  auto runner = std::unique_ptr<GridRunner>(new GridRunner(seed));
  const auto map = [](size_t bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
    return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
  };
  runner->stacks_ = map(kMaxBlockThreads * kStackBytes);
  runner->shared_ = map(kArenaBytes);
  if (runner->stacks_ == nullptr || runner->shared_ == nullptr) {
    return ResourceExhausted("cannot map the stacks of a block");
  }
  INTERP_ASSIGN_OR_RETURN(runner->shared_shadow_,
                          Shadow::Map(reinterpret_cast<uintptr_t>(runner->shared_), kArenaBytes));
  return runner;
}

GridRunner::~GridRunner() {
  if (stacks_ != nullptr) munmap(stacks_, kMaxBlockThreads * kStackBytes);
  if (shared_ != nullptr) munmap(shared_, kArenaBytes);
}

cudaError_t GridRunner::Run(const GridLaunch& launch, const GridMemory& memory,
                            std::vector<Finding>& findings) {
  launch_ = &launch;
  memory_ = &memory;
  launch_scope_ = ++last_scope_;
  error_ = cudaSuccess;
  mistakes_.clear();
  std::vector<uint32_t> blocks(size_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random_);
  for (size_t i = 0; i < blocks.size() && error_ == cudaSuccess; ++i) RunBlock(blocks[i]);
  // Threads that were stopped are given up as they stand: nothing of theirs is to be unwound.
  for (Thread& thread : threads_) new (&thread) Thread;
  for (const auto& [key, mistake] : mistakes_) {
    findings.push_back({.type = mistake.type, .text = Describe(mistake)});
  }
  return error_;
}

void GridRunner::RunBlock(uint32_t block) {
  const dim3 size = launch_->block;
  const uint32_t count = size.x * size.y * size.z;
  block_ = IndexOf(block, launch_->grid);
  block_number_ = block;
  block_scope_ = ++last_scope_;
  block_epoch_ = 0;
  warp_epochs_ = {};
  num_at_barrier_ = num_ended_ = 0;
  if (shared_used_ > 0) {
    shared_shadow_->SetState(reinterpret_cast<uintptr_t>(shared_), shared_used_,
                             Shadow::State::kUnallocated);
  }
  variables_.clear();
  shared_used_ = 0;
  threads_.resize(count);
  ready_.clear();
  for (uint32_t i = 0; i < count; ++i) StartThread(i);
  while (num_ended_ < count && error_ == cudaSuccess) {
    if (ready_.empty()) return ReportDivergence();
    const size_t drawn = random_() % ready_.size();
    std::swap(ready_[drawn], ready_.back());
    Thread& thread = threads_[ready_.back()];
    ready_.pop_back();
    Resume(thread);
  }
}

void GridRunner::StartThread(uint32_t index) {
  Thread& thread = threads_[index];
  thread.state = Thread::State::kReady;
  thread.index = IndexOf(index, launch_->block);
  boost::context::stack_context stack;
  stack.size = kStackBytes;
  stack.sp = stacks_ + (index + 1) * kStackBytes;
  const boost::context::preallocated room(stack.sp, stack.size, stack);
  thread.fiber = boost::context::fiber(std::allocator_arg, room, BorrowedStack(),
                                       [this, &thread](boost::context::fiber&& scheduler) {
                                         thread.scheduler = std::move(scheduler);
                                         running_grid = this;
                                         launch_->run(launch_->arguments.get());
                                         running_grid = nullptr;
                                         EndThread(thread);
                                         return std::move(thread.scheduler);
                                       });
  ready_.push_back(index);
}

void GridRunner::Resume(Thread& thread) {
  running_thread = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  running_thread = nullptr;
}

GridRunner::Thread& GridRunner::Self() { return *static_cast<Thread*>(running_thread); }

void GridRunner::Suspend(Thread& thread) {
  thread.scheduler = std::move(thread.scheduler).resume();
}

void GridRunner::MakeReady(Thread& thread) {
  thread.state = Thread::State::kReady;
  ready_.push_back(NumberOf(thread));
}

void GridRunner::EndThread(Thread& thread) {
  thread.state = Thread::State::kEnded;
  ++num_ended_;
  // Others of its warp may have waited for it in vain.
  const uint32_t warp = NumberOf(thread) / warpSize;
  for (int lane = 0; lane < warpSize; ++lane) {
    const uint32_t number = warp * warpSize + lane;
    if (number >= threads_.size() || threads_[number].state != Thread::State::kInWarp) continue;
    TryRelease(warp, threads_[number].mask, threads_[number].operation);
  }
}

void GridRunner::WaitAtBarrier(SourcePlace where) {
  Thread& self = Self();
  self.state = Thread::State::kAtBarrier;
  self.where = where;
  if (++num_at_barrier_ == threads_.size()) {
    const bool same = std::all_of(threads_.begin(), threads_.end(), [&where](const Thread& thread) {
      return thread.where.line == where.line && std::strcmp(thread.where.file, where.file) == 0;
    });
    // Otherwise all wait for ever, which the scheduler reports.
    if (same) {
      num_at_barrier_ = 0;
      ++block_epoch_;
      warp_epochs_ = {};
      for (Thread& thread : threads_) MakeReady(thread);
    }
  }
  Suspend(self);
}

unsigned GridRunner::LiveLanes(uint32_t warp) const {
  unsigned live = 0;
  for (uint32_t lane = 0; lane < warpSize; ++lane) {
    const uint32_t number = warp * warpSize + lane;
    if (number < threads_.size() && threads_[number].state != Thread::State::kEnded) {
      live |= 1u << lane;
    }
  }
  return live;
}

uint64_t GridRunner::ExchangeInWarp(WarpOperation operation, unsigned mask, uint64_t bits,
                                    int source, SourcePlace where) {
  Thread& self = Self();
  const uint32_t warp = NumberOf(self) / warpSize;
  const uint32_t lane = NumberOf(self) % warpSize;
  if ((mask >> lane & 1) == 0) {
    FailWarp(where, absl::StrFormat("is lane %d, which the mask %08x leaves out", lane, mask));
  }
  self.state = Thread::State::kInWarp;
  self.where = where;
  self.operation = operation;
  self.mask = mask;
  self.bits = bits;
  self.source = source;
  TryRelease(warp, mask, operation);
  Suspend(self);
  if (self.source < 0) {
    FailWarp(where, absl::StrCat("takes the value of lane ", source, ", which brings none"));
  }
  return self.bits;
}

void GridRunner::TryRelease(uint32_t warp, unsigned mask, WarpOperation operation) {
  const unsigned live = LiveLanes(warp);
  for (unsigned left = mask & live; left != 0; left &= left - 1) {
    const Thread& thread = threads_[warp * warpSize + std::countr_zero(left)];
    if (thread.state != Thread::State::kInWarp || thread.mask != mask ||
        thread.operation != operation) {
      return;
    }
  }
  ReleaseLanes(warp, mask & live, live);
}

void GridRunner::ReleaseLanes(uint32_t warp, unsigned lanes, unsigned live) {
  std::array<uint64_t, warpSize> brought = {};
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    brought[lane] = threads_[warp * warpSize + lane].bits;
  }
  for (unsigned left = lanes; left != 0; left &= left - 1) {
    Thread& thread = threads_[warp * warpSize + std::countr_zero(left)];
    if (thread.operation == WarpOperation::kShuffle) {
      const bool there = thread.source < warpSize && (lanes >> thread.source & 1) != 0;
      if (there) thread.bits = brought[thread.source];
      if (!there) thread.source = -1;
    }
    // Of what warps do together, only this orders accesses to memory.
    if (thread.operation == WarpOperation::kSync && lanes == live && left == lanes) {
      ++warp_epochs_[warp];
    }
    MakeReady(thread);
  }
}

void* GridRunner::FindShared(const void* key, size_t bytes, const char* name) {
  const auto it = variables_.find(key);
  if (it != variables_.end()) return it->second.at;
  if (key == nullptr) bytes = launch_->shared_bytes;
  size_t asked = bytes;
  for (const auto& [other, variable] : variables_) asked += variable.bytes;
  const size_t offset = (shared_used_ + kSharedGapBytes + 15) / 16 * 16;
  if (asked > kMaxSharedBytes || offset + bytes + kSharedGapBytes > kArenaBytes) {
    Fail({.type = Finding::Type::kSharedMemory,
          .text = absl::StrCat("'", name, "' makes ", asked,
                               " bytes of shared memory for a block, expected at most ",
                               kMaxSharedBytes)},
         cudaErrorLaunchFailure);
  }
  shared_used_ = offset + bytes;
  char* const at = shared_ + offset;
  variables_[key] = {.at = at, .bytes = bytes, .name = name};
  std::memset(at, 0xFB, bytes);
  shared_shadow_->SetState(reinterpret_cast<uintptr_t>(at), bytes, Shadow::State::kUninitialised);
  return at;
}

// Thread coordinates are read all the time, so these do without OutsideDeviceCode.
uint3 ThreadIndex() { return static_cast<GridRunner::Thread*>(running_thread)->index; }
uint3 BlockIndex() { return running_grid->block_; }
dim3 BlockSize() { return running_grid->launch_->block; }
dim3 GridSize() { return running_grid->launch_->grid; }
int Lane() {
  const auto& thread = *static_cast<GridRunner::Thread*>(running_thread);
  return static_cast<int>(running_grid->NumberOf(thread) % warpSize);
}

void Barrier(SourcePlace where) {
  const OutsideDeviceCode outside;
  outside.grid().WaitAtBarrier(where);
}

uint64_t Exchange(WarpOperation operation, unsigned mask, uint64_t bits, int source,
                  SourcePlace where) {
  const OutsideDeviceCode outside;
  return outside.grid().ExchangeInWarp(operation, mask, bits, source, where);
}

void* SharedMemory(const void* key, size_t bytes, const char* name) {
  const OutsideDeviceCode outside;
  return outside.grid().FindShared(key, bytes, name);
}

void NoteAtomic(const void* address, size_t bytes) {
  OnAccess(address, bytes, AccessKind::kAtomic,
           reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

void OnAccess(const void* address, size_t bytes, AccessKind kind, uintptr_t pc) {
  if (running_grid == nullptr) return;
  const OutsideDeviceCode outside;
  outside.grid().CheckAccess(reinterpret_cast<uintptr_t>(address), bytes, kind, pc);
}

}  // namespace interp::cuda_emulation
