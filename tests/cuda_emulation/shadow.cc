#include "tests/cuda_emulation/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace interp::cuda_emulation {
namespace {

// Zeroed memory that takes room where it is touched; null when there is none.
void* MapZeros(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, /*offset=*/0);
  return at == MAP_FAILED ? nullptr : at;
}

uint32_t BlockOf(uint32_t thread, const Toucher& who) { return (thread - 1) / who.block_threads; }

uint32_t WarpOf(uint32_t thread, const Toucher& who) {
  constexpr uint32_t kWarpSize = 32;
  return (thread - 1) % who.block_threads / kWarpSize;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shadow>> Shadow::Map(uintptr_t base, size_t bytes) {
  auto shadow = std::unique_ptr<Shadow>(new Shadow(base, bytes));
  shadow->states_ = static_cast<State*>(MapZeros(bytes));
  shadow->cells_ = static_cast<Cell*>(MapZeros(shadow->cells_bytes()));
  shadow->words_ = static_cast<Word*>(MapZeros(shadow->num_words() * sizeof(Word)));
  if (shadow->states_ == nullptr || shadow->cells_ == nullptr || shadow->words_ == nullptr) {
    return ResourceExhausted("cannot map the shadow of ", bytes, " bytes");
  }
  return shadow;
}

Shadow::~Shadow() {
  if (states_ != nullptr) munmap(states_, bytes_);
  if (cells_ != nullptr) munmap(cells_, cells_bytes());
  if (words_ != nullptr) munmap(words_, num_words() * sizeof(Word));
}

void Shadow::SetState(uintptr_t address, size_t bytes, State state) {
  std::memset(states_ + (address - base_), static_cast<int>(state), bytes);
  if (state != State::kUninitialised) return;
  std::fill(words_ + (address - base_) / kWordBytes,
            words_ + (address - base_ + bytes) / kWordBytes + 1, Word());
}

void Shadow::CopyState(uintptr_t address, const Shadow& from, uintptr_t from_address,
                       size_t bytes) {
  std::memmove(states_ + (address - base_), from.states_ + (from_address - from.base_), bytes);
}

bool Shadow::HasState(size_t offset, size_t bytes, State state) const {
  const State* const first = states_ + offset;
  return std::find(first, first + bytes, state) != first + bytes;
}

size_t Shadow::WrittenBytes(uintptr_t address, size_t bytes) const {
  const State* const first = states_ + (address - base_);
  const State* const last = first + bytes;
  return static_cast<size_t>(
      std::find_if(first, last, [](State state) { return state != State::kInitialised; }) - first);
}

Conflict Shadow::TouchByWork(uintptr_t address, size_t bytes, bool write, const StreamWork& work) {
  Conflict conflict;
  const size_t end = address - base_ + bytes;
  for (size_t i = (address - base_) / kWordBytes; i * kWordBytes < end; ++i) {
    Word& word = words_[i];
    const bool after_write = work.moment->Covers(word.write);
    if (!after_write || (write && !work.moment->Covers(word.read))) {
      conflict.type = Conflict::Type::kUnordered;
      conflict.address = base_ + i * kWordBytes;
      conflict.work = after_write ? word.read : word.write;
      conflict.with_write = !after_write;
    }
    (write ? word.write : word.read) = work.stamp;
  }
  return conflict;
}

Shadow::Cell& Shadow::CellOf(size_t offset, bool whole, uint32_t scope) {
  Cell* const word = cells_ + offset / kWordBytes * kWordBytes;
  if (word->scope != scope) {
    *word = Cell();
    word->scope = scope;
  }
  if (!whole && !word->split) {
    std::fill(word + 1, word + kWordBytes, *word);
    word->split = true;
  }
  return cells_[offset];
}

Conflict Shadow::Access(uintptr_t address, size_t bytes, AccessKind kind, const Toucher& who) {
  Conflict conflict;
  const size_t end = address - base_ + bytes;
  for (size_t offset = address - base_; offset < end;) {
    conflict.address = base_ + offset;
    const bool whole = offset % kWordBytes == 0 && end - offset >= kWordBytes;
    Cell& cell = CellOf(std::min(offset, bytes_), whole, who.scope);
    const size_t step = whole && !cell.split ? kWordBytes : 1;
    if (offset + step > bytes_ || HasState(offset, step, State::kUnallocated)) {
      conflict.type = Conflict::Type::kOutOfBounds;
      return conflict;
    }
    CheckRaces(cell, kind, who, conflict);
    Note(cell, kind, who);
    if (kind != AccessKind::kWrite && HasState(offset, step, State::kUninitialised)) {
      conflict.type = Conflict::Type::kUninitialised;
    }
    if (kind != AccessKind::kRead) std::fill_n(states_ + offset, step, State::kInitialised);
    if (conflict.type != Conflict::Type::kNone) return conflict;
    offset += step;
  }
  return who.work == nullptr ? conflict
                             : TouchByWork(address, bytes, kind != AccessKind::kRead, *who.work);
}

bool Shadow::Ordered(const Touch& before, const Toucher& who) {
  const Touch& now = who.touch;
  if (before.thread == 0 || before.thread == now.thread) return true;
  if (BlockOf(before.thread, who) != BlockOf(now.thread, who)) return false;
  if (before.block_epoch != now.block_epoch) return true;
  return WarpOf(before.thread, who) == WarpOf(now.thread, who) &&
         before.warp_epoch != now.warp_epoch;
}

void Shadow::CheckRaces(const Cell& cell, AccessKind kind, const Toucher& who, Conflict& conflict) {
  const auto check = [&who, &conflict](const Touch& before, bool write) {
    if (Ordered(before, who)) return;
    conflict.type = Conflict::Type::kRace;
    conflict.with = before;
    conflict.with_write = write;
  };
  if (!(kind == AccessKind::kAtomic && cell.write_atomic)) check(cell.write, /*write=*/true);
  if (kind == AccessKind::kRead) return;
  for (const Touch& read : {cell.read, cell.other_read, cell.elsewhere_read}) {
    check(read, /*write=*/false);
  }
}

void Shadow::Note(Cell& cell, AccessKind kind, const Toucher& who) {
  const Touch& now = who.touch;
  if (kind != AccessKind::kRead) {
    cell.write = now;
    cell.write_atomic = kind == AccessKind::kAtomic;
    return;
  }
  if (cell.read.thread != 0 && cell.read.thread != now.thread) {
    const bool same_block = BlockOf(cell.read.thread, who) == BlockOf(now.thread, who);
    (same_block ? cell.other_read : cell.elsewhere_read) = cell.read;
  }
  cell.read = now;
}

}  // namespace interp::cuda_emulation
