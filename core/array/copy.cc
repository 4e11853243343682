// Copies between arrays.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/array/array.h"
#include "core/array/array_runtime.h"
#include "core/array/tape.h"
#include "core/device/device.h"

namespace interp {
namespace {

// Who runs a copy, and how it is counted.
engine::OperationOptions OptionsOf(const Array& from, const Array& to, int32_t priority) {
  if (from.place().on_host() && to.place().on_host()) return {.name = "copy", .priority = priority};
  const bool to_device = from.place().on_host() || ArePeers(from.place(), to.place());
  return {.name = "copy",
          .place = to_device ? to.place() : from.place(),
          // Also within a device: what it waits for holds up no kernel.
          .property = to_device || from.place() == to.place() ? engine::Property::kCopyToDevice
                                                              : engine::Property::kCopyFromDevice,
          .priority = priority};
}

// The copy itself, within an operation that names both.
absl::Status Copy(const Array& from, const Array& to, const engine::RunContext& context) {
  INTERP_ASSIGN_OR_RETURN(const Tensor source, ArrayAccess::Readable(from));
  const bool host = context.stream == nullptr;
  if (host && ArrayAccess::IsWhole(from) && ArrayAccess::IsWhole(to)) {
    ArrayAccess::chunk(to)->value.tensor.ShareMemory(source);
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(Tensor target, ArrayAccess::Writable(to, /*overwrites=*/true, context));
  const size_t bytes = source.size_bytes();
  if (bytes == 0) return absl::OkStatus();
  void* const at = target.mutable_raw_data();
  if (host) {
    std::memmove(at, source.raw_data(), bytes);
  } else if (from.place().on_host()) {
    INTERP_RETURN_IF_ERROR(
        context.stream->CopyToDevice(at, source.raw_data(), source.buffer(), bytes, context.work));
  } else if (to.place().on_host()) {
    INTERP_RETURN_IF_ERROR(
        context.stream->CopyToHost(at, target.buffer(), source.raw_data(), bytes, context.work));
  } else if (ArePeers(from.place(), to.place())) {
    INTERP_RETURN_IF_ERROR(
        context.stream->CopyFromPeer(at, source.raw_data(), from.place(), bytes, context.work));
  } else {
    INTERP_RETURN_IF_ERROR(
        context.stream->CopyOnDevice(at, source.raw_data(), bytes, context.work));
  }
  for (const Tensor* used : {&source, &std::as_const(target)}) {
    from.runtime().RecordUse(used->buffer(), context);
  }
  return absl::OkStatus();
}

// Within a device's memory, where that makes a copy undefined; the host moves what overlaps.
bool OverlapOnDevice(const Array& a, const Array& b) {
  if (a.place().on_host() || !a.SharesMemoryWith(b)) return false;
  const size_t first = ArrayAccess::offset_bytes(a);
  const size_t second = ArrayAccess::offset_bytes(b);
  return std::max(first, second) - std::min(first, second) < a.size_bytes();
}

absl::Status PushCopy(const Array& from, const Array& to, int32_t priority) {
  const engine::Variable read = from.variable();
  const engine::Variable written = to.variable();
  engine::Accesses accesses{.reads = {&read, 1}, .writes = {&written, 1}};
  if (!ArrayAccess::IsWhole(to)) std::swap(accesses.writes, accesses.updates);
  INTERP_RETURN_IF_ERROR(from.runtime().engine().Push(
      [from, to](const engine::RunContext& context) { return Copy(from, to, context); }, accesses,
      OptionsOf(from, to, priority)));
  ArrayAccess::CountWrite(to);
  return absl::OkStatus();
}

}  // namespace

absl::Status Array::TakeValues(const Array& from, int32_t priority) const {
  if (from.shape() != shape_ || from.dtype() != dtype_ || from.is_rows() || is_rows()) {
    return InvalidArgument("an array ", DescribeArray(*this), " cannot take the values of ",
                           DescribeArray(from), is_rows() || from.is_rows() ? " of rows" : "");
  }
  if (&from.runtime() != &runtime()) {
    return InvalidArgument("a copy between arrays of two runtimes");
  }
  // From a device to one of another kind, and into a part of what others on the host may see: a
  // stream is not to copy the rest before it is at rest.
  const bool needs_host =
      !from.place().on_host() && place() != from.place() && !ArePeers(from.place(), place());
  const bool by_way_of_host = needs_host && (!place().on_host() || !ArrayAccess::IsWhole(*this));
  if (!by_way_of_host && !OverlapOnDevice(from, *this)) return PushCopy(from, *this, priority);
  INTERP_ASSIGN_OR_RETURN(const Array staging,
                          runtime().New(shape_, dtype_, by_way_of_host ? Place{} : place()));
  INTERP_RETURN_IF_ERROR(PushCopy(from, staging, priority));
  return PushCopy(staging, *this, priority);
}

absl::Status Array::CopyFrom(const Array& from, int32_t priority) const {
  const bool same = SharesMemoryWith(from) && offset_bytes_ == from.offset_bytes_;
  if (same && shape_ == from.shape_ && !is_rows()) return absl::OkStatus();
  const Tape* const tape = Tape::Current();
  if (tape != nullptr) INTERP_RETURN_IF_ERROR(Annotate(tape->CheckWrite(*this), "a copy"));
  INTERP_RETURN_IF_ERROR(TakeValues(from, priority));
  return Tape::NoteCopy(from, *this);
}

absl::Status Array::CopyFrom(const Tensor& from) const {
  INTERP_ASSIGN_OR_RETURN(const Array copy, runtime().FromTensor(from));
  const Tape* const tape = Tape::Current();
  if (tape != nullptr) INTERP_RETURN_IF_ERROR(Annotate(tape->CheckWrite(*this), "a copy"));
  return TakeValues(copy, /*priority=*/0);
}

absl::StatusOr<Array> Array::CopyTo(Place place, int32_t priority) const {
  INTERP_ASSIGN_OR_RETURN(Array copy, runtime().New(shape_, dtype_, place));
  INTERP_RETURN_IF_ERROR(copy.CopyFrom(*this, priority));
  return copy;
}

}  // namespace interp
