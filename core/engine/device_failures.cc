#include "core/engine/device_failures.h"

#include <algorithm>
#include <utility>

namespace interp::engine {
namespace {

// A tag holds this much of an Issue; the rest is known from how many there were.
constexpr Issue kTagMask = 0x7fffffff;

}  // namespace

DeviceFailures::DeviceFailures(MakeError make_error) : make_error_(std::move(make_error)) {}

void DeviceFailures::AddStream() {
  names_.resize(kNamesKept);
  sinks_.push_back(std::make_unique<WorkErrors>());
}

Issue DeviceFailures::Begin(const char* name, uint64_t number) {
  ++issued_;
  names_[issued_ % kNamesKept] = {name, number};
  in_flight_.insert(in_flight_.end(), issued_);
  return issued_;
}

void DeviceFailures::End(Issue issue) {
  in_flight_.erase(issue);
  if (failures_.empty()) return;
  const Issue ended = LastEnded();
  std::erase_if(failures_, [&](const Failure& f) { return f.last <= ended; });
}

void DeviceFailures::ForgetSinks(Issue issue) {
  std::erase_if(old_sinks_, [&](const OldSink& old) { return old.last <= issue; });
}

Work DeviceFailures::WorkOf(int stream, Issue issue) const {
  return {.tag = static_cast<int32_t>(issue & kTagMask), .errors = sinks_[stream].get()};
}

std::vector<DeviceFailures::Failure> DeviceFailures::Notice() {
  std::vector<Failure> noticed;
  for (size_t stream = 0; stream < sinks_.size(); ++stream) {
    std::unique_ptr<WorkErrors>& sink = sinks_[stream];
    if (!sink->any()) continue;
    noticed.push_back(Note(static_cast<int>(stream), *sink->Get()));
    old_sinks_.push_back({issued_, std::exchange(sink, std::make_unique<WorkErrors>())});
  }
  if (LastEnded() < issued_) failures_.insert(failures_.end(), noticed.begin(), noticed.end());
  return noticed;
}

DeviceFailures::Failure DeviceFailures::NoteLoss(int stream, Issue first, absl::Status loss) {
  const Failure noted{stream, first, issued_, ErrorOfLoss(std::move(loss), "of a device", 0)};
  if (LastEnded() < issued_) failures_.push_back(noted);
  return noted;
}

DeviceFailures::Failure DeviceFailures::Note(int stream, const WorkError& failed) {
  // The latest with that tag.
  const Issue first = issued_ - ((issued_ - static_cast<Issue>(failed.tag)) & kTagMask);
  const bool named = issued_ - first < kNamesKept;
  const Named operation = named ? names_[first % kNamesKept] : Named{"of a device", 0};
  return {stream, first, issued_, make_error_(failed.status, operation.name, operation.number)};
}

ErrorRef DeviceFailures::ErrorOf(absl::FunctionRef<bool(const Failure&)> concerns) const {
  const auto last = std::find_if(failures_.rbegin(), failures_.rend(), concerns);
  return last == failures_.rend() ? ErrorRef() : last->error;
}

}  // namespace interp::engine
