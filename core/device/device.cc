#include "core/device/device.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace interp {

absl::string_view Name(WorkKind kind) {
  constexpr absl::string_view kNames[] = {"kernel", "h2d", "d2h", "d2d", "p2p", "fill"};
  return kNames[static_cast<int>(kind)];
}

absl::Status Stream::Record(DeviceEvent& event) {
  if (event.place() == place()) return RecordOwn(event);
  return InvalidArgument("an event of ", Name(event.place()), " cannot be recorded on stream '",
                         name(), "' of ", Name(place()));
}

absl::Status Stream::BeginCapture() { return Unimplemented(Name(place()), " has no graphs"); }

absl::StatusOr<std::unique_ptr<WorkGraph>> Stream::EndCapture() {
  return Unimplemented(Name(place()), " has no graphs");
}

absl::Status Stream::Wait(DeviceEvent& event) {
  return event.place().kind == place().kind ? WaitOwn(event) : event.Synchronize();
}

absl::Status Device::status() const {
  if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(mutex_);
  return loss_;
}

void Device::Lose(absl::string_view cause) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!loss_.ok()) return;
  loss_ = absl::UnavailableError(
      absl::StrCat(Name(place()), " is lost (", cause,
                   "): nothing runs on it any more; make a new device, or run on another place"));
  lost_.store(true, std::memory_order_release);
}

absl::StatusOr<std::unique_ptr<DeviceEvent>> RecordNow(Stream& stream) {
  INTERP_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> event, stream.CreateEvent());
  INTERP_RETURN_IF_ERROR(stream.Record(*event));
  return event;
}

absl::Status Device::BeginUse(const void* user, absl::Span<Stream* const> streams) {
  INTERP_RETURN_IF_ERROR(status());
  std::lock_guard<std::mutex> lock(use_mutex_);
  if (user_ == user) return absl::OkStatus();
  // Also of those before the last one, who may have gone on beside it.
  for (const auto& [other, theirs] : streams_of_users_) {
    if (other == user) continue;
    for (Stream* before : theirs) {
      const absl::StatusOr<std::unique_ptr<DeviceEvent>> end = RecordNow(*before);
      if (end.ok()) {
        for (Stream* stream : streams) INTERP_RETURN_IF_ERROR(stream->Wait(**end));
      } else if (before->place() == place()) {
        return end.status();
      } else {
        before->Synchronize().IgnoreError();  // this device may do without that one
      }
    }
  }
  user_ = user;
  streams_of_users_[user].assign(streams.begin(), streams.end());
  return absl::OkStatus();
}

void Device::EndUse(const void* user) {
  std::lock_guard<std::mutex> lock(use_mutex_);
  if (user_ == user) user_ = nullptr;
  streams_of_users_.erase(user);
}

void WorkErrors::Report(int32_t tag, absl::Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (first_.has_value()) return;
  first_ = WorkError{tag, std::move(status)};
  any_.store(true, std::memory_order_release);
}

std::optional<WorkError> WorkErrors::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return first_;
}

std::optional<WorkError> WorkErrors::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  any_.store(false, std::memory_order_release);
  return std::exchange(first_, std::nullopt);
}

}  // namespace interp
