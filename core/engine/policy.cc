#include "core/engine/policy.h"

#include <algorithm>

namespace interp::engine {
namespace {

constexpr absl::string_view kPolicyNames[] = {"naive", "pooled", "per-device"};

StreamClass ClassOf(Property property) {
  switch (property) {
    case Property::kDeviceUrgent:
      return StreamClass::kUrgent;
    case Property::kCopyFromDevice:
      return StreamClass::kCopyFrom;
    case Property::kCopyToDevice:
      return StreamClass::kCopyTo;
    default:
      return StreamClass::kNormal;
  }
}

int16_t AddQueue(Policy& policy, std::string name, int num_threads) {
  policy.queues.push_back({std::move(name), num_threads});
  return static_cast<int16_t>(policy.queues.size() - 1);
}

bool Copies(Property property) {
  return property == Property::kCopyFromDevice || property == Property::kCopyToDevice;
}

// Calls `queue_of(place number, property)` for all routes.
template <typename QueueOf>
void Fill(Policy& policy, const QueueOf& queue_of) {
  for (size_t place = 0; place < policy.places.size(); ++place) {
    for (int p = 0; p < kNumProperties; ++p) {
      const auto property = static_cast<Property>(p);
      Route route{.queue = queue_of(static_cast<int>(place), property)};
      if (place > 0) {
        route.stream = static_cast<int16_t>((place - 1) * kStreamsPerDevice +
                                            static_cast<size_t>(ClassOf(property)));
      }
      route.on_pusher = property == Property::kAsync || property == Property::kDelete;
      policy.routes.push_back(route);
    }
  }
}

}  // namespace

absl::string_view Name(PolicyKind kind) { return kPolicyNames[static_cast<int>(kind)]; }

absl::StatusOr<PolicyKind> PolicyFromName(absl::string_view name) {
  for (int i = 0; i < 3; ++i) {
    if (kPolicyNames[i] == name) return static_cast<PolicyKind>(i);
  }
  return InvalidArgument("no engine policy is named '", name,
                         "'; there are: naive pooled per-device");
}

int Policy::PlaceNumber(Place place) const {
  const auto at = std::find(places.begin(), places.end(), place);
  return at == places.end() ? -1 : static_cast<int>(at - places.begin());
}

Policy MakePolicy(PolicyKind kind, const std::vector<Place>& devices, const ThreadCounts& threads) {
  Policy policy;
  policy.places = {Place{}};
  policy.places.insert(policy.places.end(), devices.begin(), devices.end());
  switch (kind) {
    case PolicyKind::kNaive:
      Fill(policy, [](int, Property) -> int16_t { return -1; });
      break;
    case PolicyKind::kPooled: {
      const int16_t all = AddQueue(policy, "engine", threads.workers);
      const int16_t copies = AddQueue(policy, "engine-copy", 1);
      Fill(policy, [=](int place, Property p) { return place > 0 && Copies(p) ? copies : all; });
      break;
    }
    case PolicyKind::kPerDevice: {
      const int16_t host = AddQueue(policy, "cpu", threads.workers);
      const int16_t urgent = AddQueue(policy, "cpu-urgent", threads.urgent_workers);
      for (const Place& device : devices) {
        for (const char* what : {"", "-urgent", "-from", "-to"}) {
          AddQueue(policy, absl::StrCat(Name(device), what), threads.device_workers);
        }
      }
      Fill(policy, [=](int place, Property p) -> int16_t {
        if (place == 0) return p == Property::kHostUrgent ? urgent : host;
        return static_cast<int16_t>(urgent + 1 + (place - 1) * kStreamsPerDevice +
                                    static_cast<int>(ClassOf(p)));
      });
      break;
    }
  }
  return policy;
}

}  // namespace interp::engine
