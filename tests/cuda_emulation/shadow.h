// Shadow: what is known of each byte of a memory that device code uses: whether it is allocated and
// written, and which threads touched it last.
//
// Threads of a block are ordered by its barriers alone, those of a warp by __syncwarp, too, and
// blocks of a grid by nothing. Two touches of one byte by different threads that nothing orders are
// a race unless both read or both are atomic. Of the reads of a byte three are kept, of the writes
// the last, which misses no race of plain accesses: any two unordered touches are found when the
// second comes, or something else that is unordered was found between.
//
// Of each word of four bytes the last work that wrote it and the last that read it are kept, too:
// work of streams that nothing orders (stream_order.h) must not meet there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.h"
#include "tests/cuda_emulation/stream_order.h"

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
  const StreamWork* work = nullptr;  // null for shared memory
};

// What is wrong with an access; `with` is the other touch of a race, `work` the other work that
// nothing orders with this one.
struct Conflict {
  enum class Type : int8_t { kNone, kOutOfBounds, kUninitialised, kRace, kUnordered };
  Type type = Type::kNone;
  uintptr_t address = 0;  // of the byte
  Touch with = {};
  WorkStamp work = {};
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
  // REQUIRES for both: the bytes are of this memory. What becomes uninitialised is fresh: no work
  // has touched it.
  void SetState(uintptr_t address, size_t bytes, State state);
  // Copies the states of `bytes` bytes of `from`, which may be another memory.
  void CopyState(uintptr_t address, const Shadow& from, uintptr_t from_address, size_t bytes);
  // How many of the bytes, from the first on, somebody wrote. REQUIRES: they are of this memory.
  size_t WrittenBytes(uintptr_t address, size_t bytes) const;
  // Checks and notes that work touches some bytes, as a whole. REQUIRES: they are of this memory.
  Conflict TouchByWork(uintptr_t address, size_t bytes, bool write, const StreamWork& work);
  // Checks and notes an access of a kernel. REQUIRES: Contains(address).
  Conflict Access(uintptr_t address, size_t bytes, AccessKind kind, const Toucher& who);

 private:
  // What is known of a byte. The cell of the first byte of a word of kWordBytes stands for all of
  // them until one is touched apart.
  struct Cell {
    uint32_t scope = 0;
    bool split = false;  // of a first byte: each byte has its own
    bool write_atomic = false;
    Touch write = {};
    Touch read = {};            // the last
    Touch other_read = {};      // the last by another thread of the block of `read`
    Touch elsewhere_read = {};  // one of another block
  };

  static constexpr size_t kWordBytes = 4;
  struct Word {
    WorkStamp write;
    WorkStamp read;
  };

  Shadow(uintptr_t base, size_t bytes) : base_(base), bytes_(bytes) {}

  size_t num_words() const { return bytes_ / kWordBytes + 1; }
  // Whether one of the bytes is in that state.
  bool HasState(size_t offset, size_t bytes, State state) const;
  size_t cells_bytes() const { return num_words() * kWordBytes * sizeof(Cell); }
  // The cell of the byte at `offset`, or of its word where `whole` is asked for and it is not split
  // yet. It is of scope `scope`.
  Cell& CellOf(size_t offset, bool whole, uint32_t scope);

  static bool Ordered(const Touch& before, const Toucher& who);
  static void CheckRaces(const Cell& cell, AccessKind kind, const Toucher& who, Conflict& conflict);
  static void Note(Cell& cell, AccessKind kind, const Toucher& who);

  const uintptr_t base_;
  const size_t bytes_;
  State* states_ = nullptr;
  Cell* cells_ = nullptr;
  Word* words_ = nullptr;
};

}  // namespace interp::cuda_emulation
