#include "core/constant_elements.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "core/io/array_elements.h"
#include "core/storage/aligned_memory.h"
#include "core/storage/lasting_memory.h"
#include "core/storage/pool.h"

namespace interp {
namespace {

// Where copies come from: one after the other is made in the same memory, without page faults.
Pool& Copies() {
  static auto& pool = *new std::shared_ptr<Pool>(
      Pool::OnHost({.kind = PoolKind::kTlsf, .name = "copies of constants"}));
  return *pool;
}

std::atomic<bool>& CopiesAreKept() {
  static std::atomic<bool> kept{false};
  return kept;
}

}  // namespace

bool IsAligned(const Tensor& tensor) {
  const size_t unit = UnitBytes(tensor.dtype);
  return unit == 0 || reinterpret_cast<uintptr_t>(tensor.raw_data()) % unit == 0;
}

void DropFilePages(const void* data, size_t size_bytes) {
  constexpr size_t kWorthACall = size_t{1} << 16;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = RoundUp(reinterpret_cast<uintptr_t>(data), page);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + size_bytes) / page * page;
  if (end < begin + kWorthACall) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // a failure costs memory
}

void GiveBackPages(const Tensor& tensor) {
  if (tensor.has_memory() && tensor.buffer()->in_file) {
    DropFilePages(tensor.raw_data(), tensor.size_bytes());
  }
}

absl::StatusOr<Tensor> TakeFromFile(const Tensor& tensor) {
  Tensor taken = tensor;
  taken.DropMemory();
  INTERP_RETURN_IF_ERROR(taken.Allocate(LastingAllocator()));
  PopulatePages(taken.mutable_raw_data(), taken.size_bytes());
  std::memcpy(taken.mutable_raw_data(), tensor.raw_data(), tensor.size_bytes());
  GiveBackPages(tensor);
  return taken;
}

absl::StatusOr<ConstantElements> ConstantElements::Of(const Tensor& tensor) {
  ConstantElements elements(tensor);
  if (IsAligned(tensor)) return elements;
  INTERP_ASSIGN_OR_RETURN(elements.copy_, tensor.Clone(Copies()));
  return elements;
}

void TrimCopiesOfConstants() {
  if (!CopiesAreKept().load(std::memory_order_relaxed)) return;
  CopiesAreKept().store(false);
  Copies().Trim();
}

ConstantElements::ConstantElements(ConstantElements&& other) noexcept
    : tensor_(std::exchange(other.tensor_, nullptr)), copy_(std::move(other.copy_)) {}

ConstantElements& ConstantElements::operator=(ConstantElements&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(copy_, other.copy_);
  return *this;
}

ConstantElements::~ConstantElements() {
  if (tensor_ != nullptr) GiveBackPages(*tensor_);
  if (!copy_.has_memory()) return;
  copy_.DropMemory();
  CopiesAreKept().store(true);
}

}  // namespace interp
