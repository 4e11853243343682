// The checks of GridRunner: what threads may do, and how findings are told.
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/cuda_emulation/grid.h"
#include "tests/cuda_emulation/source_line.h"

namespace interp::cuda_emulation {
namespace {

struct Range {
  uintptr_t begin, end;
};

// Where programs and libraries lie: constants, and code.
const std::vector<Range>& Images() {
  static const auto* const kImages = [] {
    auto* images = new std::vector<Range>;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD) continue;
            const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
            static_cast<std::vector<Range>*>(out)->push_back({begin, begin + segment.p_memsz});
          }
          return 0;
        },
        images);
    return images;
  }();
  return *kImages;
}

std::string At(const SourcePlace& where) {
  const std::string path = where.file;
  return absl::StrCat(path.substr(path.rfind('/') + 1), ":", where.line);
}

std::string Name(uint3 index) { return absl::StrFormat("(%d,%d,%d)", index.x, index.y, index.z); }

const char* Verb(AccessKind kind) {
  if (kind == AccessKind::kAtomic) return "changes atomically";
  return kind == AccessKind::kRead ? "reads" : "writes";
}

}  // namespace

Toucher GridRunner::ToucherOf(const Thread& thread, uint32_t scope, uintptr_t pc) const {
  const auto count = static_cast<uint32_t>(threads_.size());
  const uint32_t number = NumberOf(thread);
  return {.scope = scope,
          .block_threads = count,
          .touch = {.thread = block_number_ * count + number + 1,
                    .block_epoch = block_epoch_,
                    .warp_epoch = warp_epochs_[number / warpSize],
                    .pc = pc},
          .work = scope == launch_scope_ ? &memory_->work : nullptr};
}

void GridRunner::CheckAccess(uintptr_t address, size_t bytes, AccessKind kind, uintptr_t pc) {
  const Thread& self = Self();
  // Most are to the thread's own stack.
  const char* const stack = StackOf(self);
  if (address - reinterpret_cast<uintptr_t>(stack) < kStackBytes) return;
  Mistake mistake{.pc = pc, .address = address, .bytes = bytes, .kind = kind};
  if (std::has_single_bit(bytes) && bytes <= 16 && address % bytes != 0) {
    mistake.type = Finding::Type::kMisaligned;
    return Fail(std::move(mistake), cudaErrorMisalignedAddress);
  }
  Shadow* shadow = shared_shadow_->Contains(address) ? shared_shadow_.get() : nullptr;
  const uint32_t scope = shadow != nullptr ? block_scope_ : launch_scope_;
  for (DeviceMemory* device : memory_->devices) {
    if (device->Contains(address)) shadow = &device->shadow();
  }
  if (shadow == nullptr) {
    if (MayUse(address)) return;
    mistake.type = Finding::Type::kOutOfBounds;
    return Fail(std::move(mistake), cudaErrorIllegalAddress);
  }
  mistake.conflict = shadow->Access(address, bytes, kind, ToucherOf(self, scope, pc));
  switch (mistake.conflict.type) {
    case Conflict::Type::kNone:
      return;
    case Conflict::Type::kOutOfBounds:
      mistake.type = Finding::Type::kOutOfBounds;
      return Fail(std::move(mistake), cudaErrorIllegalAddress);
    case Conflict::Type::kUninitialised:
      mistake.type = Finding::Type::kUninitialised;
      return Report(std::move(mistake));
    case Conflict::Type::kUnordered:
      mistake.type = Finding::Type::kUnordered;
      return Report(std::move(mistake));
    case Conflict::Type::kRace:
      mistake.type = Finding::Type::kRace;
      return Report(std::move(mistake));
  }
}

bool GridRunner::MayUse(uintptr_t address) const {
  if (address - reinterpret_cast<uintptr_t>(launch_->arguments.get()) < launch_->argument_bytes) {
    return true;
  }
  for (const Range& image : Images()) {
    if (address >= image.begin && address < image.end) return true;
  }
  const auto next = memory_->pinned->upper_bound(address);
  return next != memory_->pinned->begin() &&
         address - std::prev(next)->first < std::prev(next)->second;
}

void GridRunner::Report(Mistake mistake) {
  const Thread& self = Self();
  mistake.thread = ToucherOf(self, 0, 0).touch.thread;
  const std::array<uintptr_t, 3> key = {static_cast<uintptr_t>(mistake.type), mistake.pc,
                                        mistake.conflict.with.pc + mistake.conflict.work.value()};
  mistakes_.try_emplace(key, std::move(mistake));
}

void GridRunner::Fail(Mistake mistake, cudaError_t error) {
  Report(std::move(mistake));
  error_ = error;
  // The scheduler ends the grid, and nobody comes back here.
  Suspend(Self());
  std::abort();
}

void GridRunner::FailWarp(SourcePlace where, std::string text) {
  absl::StrAppend(&text, " in an operation of the warp at ", At(where));
  Fail({.type = Finding::Type::kWarp, .text = std::move(text)}, cudaErrorLaunchFailure);
}

void GridRunner::ReportDivergence() {
  // One thread for each place where some wait.
  std::map<std::string, std::pair<int, std::string>> places;
  bool barrier = false;
  for (const Thread& thread : threads_) {
    std::string place = absl::StrCat("the barrier at ", At(thread.where));
    barrier |= thread.state == Thread::State::kAtBarrier;
    if (thread.state == Thread::State::kEnded) place = "the end";
    if (thread.state == Thread::State::kInWarp) {
      place = absl::StrFormat("an operation of lanes %08x at %s", thread.mask, At(thread.where));
    }
    auto& [count, first] = places[place];
    if (count++ == 0) first = Name(thread.index);
  }
  std::string text = absl::StrCat("the ", threads_.size(), " threads never meet: ");
  for (const auto& [place, threads] : places) {
    absl::StrAppend(&text, place == places.begin()->first ? "" : ", ", threads.first, " at ", place,
                    " (thread ", threads.second, ")");
  }
  Mistake mistake{.type = barrier ? Finding::Type::kBarrier : Finding::Type::kWarp,
                  .text = std::move(text)};
  mistake.thread = block_number_ * static_cast<uint32_t>(threads_.size()) + 1;
  mistakes_.try_emplace({static_cast<uintptr_t>(mistake.type), 0, 0}, std::move(mistake));
  error_ = cudaErrorLaunchFailure;
}

std::string GridRunner::ThreadName(uint32_t thread) const {
  const auto count = static_cast<uint32_t>(threads_.size());
  return absl::StrCat("block ", Name(IndexOf((thread - 1) / count, launch_->grid)), ", thread ",
                      Name(IndexOf((thread - 1) % count, launch_->block)));
}

std::string GridRunner::DescribeMemory(uintptr_t address) const {
  for (const DeviceMemory* device : memory_->devices) {
    if (device->Contains(address)) return device->Describe(address);
  }
  if (!shared_shadow_->Contains(address)) return "no memory of the device";
  const Variable* nearest = nullptr;
  for (const auto& [key, variable] : variables_) {
    if (reinterpret_cast<uintptr_t>(variable.at) > address) continue;
    if (nearest == nullptr || variable.at > nearest->at) nearest = &variable;
  }
  if (nearest == nullptr) return "shared memory that is not allocated";
  return absl::StrCat("byte ", address - reinterpret_cast<uintptr_t>(nearest->at), " of shared '",
                      nearest->name, "' of ", nearest->bytes, " bytes");
}

std::string GridRunner::Describe(const Mistake& mistake) const {
  std::string text = absl::StrCat("kernel ", FunctionName(launch_->kernel), ", ",
                                  ThreadName(mistake.thread), ": ");
  if (!mistake.text.empty()) return text + mistake.text;
  const Conflict& conflict = mistake.conflict;
  const bool found = conflict.type != Conflict::Type::kNone;
  absl::StrAppend(&text, Verb(mistake.kind), " ", mistake.bytes, " bytes at ",
                  SourceLine(mistake.pc), ": ",
                  DescribeMemory(found ? conflict.address : mistake.address));
  if (mistake.type == Finding::Type::kOutOfBounds) return text + ", out of bounds";
  if (mistake.type == Finding::Type::kUninitialised) return text + ", never written";
  if (mistake.type == Finding::Type::kMisaligned) {
    return absl::StrCat(text, ", not aligned to ", mistake.bytes);
  }
  if (mistake.type == Finding::Type::kUnordered) {
    return absl::StrCat(text, ", which ", memory_->name_of_work(conflict.work),
                        conflict.with_write ? " writes" : " reads", " with no event between");
  }
  return absl::StrCat(text, ", which ", ThreadName(conflict.with.thread),
                      conflict.with_write ? " writes at " : " reads at ",
                      SourceLine(conflict.with.pc), " with no barrier between");
}

}  // namespace interp::cuda_emulation
