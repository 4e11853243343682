// Shadow: what is known of each byte of a memory that device code uses: whether it is allocated and
// written, and which threads touched it last.
//
// Threads of a block are ordered by its barriers alone, those of a warp by __syncwarp, too, and
// blocks of a grid by nothing. Two touches of one byte by different threads that nothing orders are
// a race unless both read or both are atomic. Of the reads of a byte three are kept, of the writes
// the last, which misses no race of plain accesses: any two unordered touches are found when the
// second comes, or something else that is unordered was found between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.h"

namespace interp::cuda_emulation {

enum class AccessKind : int8_t { kRead, kWrite, kAtomic };

// One touch of a byte. `thread` counts from 1 through the grid, block after block.
struct Touch {
  uint32_t thread = 0;  // 0: none
  uint16_t block_epoch = 0;
  uint16_t warp_epoch = 0;
  uintptr_t pc = 0;
};

// Who comes. `scope` is the launch for device memory and the block's run for shared memory: what
// other scopes touched is ordered with it.
struct Toucher {
  uint32_t scope = 0;
  uint32_t block_threads = 0;
  Touch touch = {};
};

// What is wrong with an access; `with` is the other touch of a race.
struct Conflict {
  enum class Type : int8_t { kNone, kOutOfBounds, kUninitialised, kRace };
  Type type = Type::kNone;
  uintptr_t address = 0;  // of the byte
  Touch with = {};
  bool with_write = false;
};

// Thread-safety: none.
class Shadow {
 public:
  // Of [base, base + bytes), all of it unallocated. What is never touched costs no memory.
  // ResourceExhausted when there is no room for its addresses.
  static absl::StatusOr<std::unique_ptr<Shadow>> Map(uintptr_t base, size_t bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  bool Contains(uintptr_t address) const { return address - base_ < bytes_; }

  enum class State : uint8_t { kUnallocated, kUninitialised, kInitialised };
  // REQUIRES for both: the bytes are of this memory.
  void SetState(uintptr_t address, size_t bytes, State state);
  // Copies the states of `bytes` bytes of `from`, which may be another memory.
  void CopyState(uintptr_t address, const Shadow& from, uintptr_t from_address, size_t bytes);
  // Whether all bytes are of this memory and allocated.
  bool Allocated(uintptr_t address, size_t bytes) const;

  // Checks and notes an access. REQUIRES: Contains(address).
  Conflict Access(uintptr_t address, size_t bytes, AccessKind kind, const Toucher& who);

 private:
  struct Cell {
    uint32_t scope = 0;
    bool write_atomic = false;
    Touch write = {};
    Touch read = {};            // the last
    Touch other_read = {};      // the last by another thread of the block of `read`
    Touch elsewhere_read = {};  // one of another block
  };

  Shadow(uintptr_t base, size_t bytes, State* states, Cell* cells)
      : base_(base), bytes_(bytes), states_(states), cells_(cells) {}

  static bool Ordered(const Touch& before, const Toucher& who);
  static void CheckRaces(const Cell& cell, AccessKind kind, const Toucher& who, Conflict& conflict);
  static void Note(Cell& cell, AccessKind kind, const Toucher& who);

  const uintptr_t base_;
  const size_t bytes_;
  State* const states_;
  Cell* const cells_;
};

}  // namespace interp::cuda_emulation
