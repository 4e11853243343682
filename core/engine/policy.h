// Policies: which operations run on which threads. Tracking knows nothing of it.
//
//   naive       each operation on the thread that finds it ready: the pusher's, or that of the
//               operation before it; a stand-in's where that was completed by another thread
//   pooled      one pool of threads for everything, one thread for copies
//   per-device  a group of threads for the host, one for urgent operations of the host, and per
//               device one each for normal and urgent operations, copies to it and copies from it
//
// The kinds of queues are those of MXNet's FnProperty (include/mxnet/engine.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/place.h"
#include "core/status.h"

namespace interp::engine {

enum class PolicyKind : int8_t { kNaive, kPooled, kPerDevice };
absl::string_view Name(PolicyKind kind);
// InvalidArgument lists the names.
absl::StatusOr<PolicyKind> PolicyFromName(absl::string_view name);

// What kind of work an operation is.
enum class Property : int8_t {
  kNormal,
  kHostUrgent,      // a queue of its own on the host; normal on devices
  kDeviceUrgent,    // a queue and a stream of its own on devices; normal on the host
  kCopyFromDevice,  // on devices; normal on the host
  kCopyToDevice,
  kAsync,   // its function only starts work: called by the pushing thread when ready at once
  kDelete,  // frees something: as kAsync, and runs whatever failed before
  kNoSkip,  // runs even when a variable it reads is spoilt by an error
};
inline constexpr int kNumProperties = 8;

// Streams the engine has on each device.
enum class StreamClass : int8_t { kNormal, kUrgent, kCopyFrom, kCopyTo };
inline constexpr int kStreamsPerDevice = 4;

struct QueueSpec {
  std::string name;  // of its threads
  int num_threads = 1;
  bool own = false;  // of the user: one thread runs all of it
};

struct Route {
  int16_t queue = -1;      // into Policy::queues; -1: on the thread that finds the operation ready
  int16_t stream = -1;     // device number * kStreamsPerDevice + StreamClass; -1: none
  bool on_pusher = false;  // by the pushing thread when ready at once
};

// Numbers of threads; see EngineOptions.
struct ThreadCounts {
  int workers = 1;
  int urgent_workers = 1;
  int device_workers = 1;
};

struct Policy {
  std::vector<QueueSpec> queues;
  // Places in order: the host, then the devices.
  std::vector<Place> places;
  std::vector<Route> routes;  // by place number * kNumProperties + property

  const Route& For(int place, Property property) const {
    return routes[place * kNumProperties + static_cast<int>(property)];
  }
  // The number of a place, or -1.
  int PlaceNumber(Place place) const;
};

Policy MakePolicy(PolicyKind kind, const std::vector<Place>& devices, const ThreadCounts& threads);

}  // namespace interp::engine
