// SimDevice: a made-up accelerator on the host, behind the interface that real ones have.
//
// It exists to prove plans, so it makes what is merely wrong visible:
//   memory    The addresses the device hands out are reserved without any right of access (a host
//             access is a segmentation fault); the bytes lie elsewhere, where its streams use them.
//             Kernels are the host's, with arguments moved there.
//   order     Streams only order what events order. With kThreads each stream is a thread, delayed
//             by seeded random times; with kInterleaved no thread exists, and whoever waits (or
//             destroys a stream) runs the streams' work in an order drawn from the seed, after some
//             that ran when it was enqueued. With one enqueuing thread the same seed gives the same
//             interleaving; the priorities drawn for streams change at random points, which finds
//             an ordering bug quickly (Burckhardt et al., "A randomized scheduler with
//             probabilistic guarantees of finding bugs", ASPLOS 2010). A stream's own priority
//             breaks ties with kInterleaved and means nothing with kThreads.
//   time      A simulated clock, computed when work is enqueued from a cost model: independent of
//             the machine's load, the same in every run with one launching thread. A piece of work
//             starts when its stream is free, its events have happened and the host has launched
//             it; it takes its latency plus the larger of bytes / bandwidth and flops / rate. The
//             host pays `launch_ns` per piece and moves ahead when it waits. Streams do not slow
//             each other down, and each device has a host clock of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device/device.h"

namespace interp {

// Most that a simulated device can have.
inline constexpr size_t kMaxSimBytes = size_t{1} << 44;

struct SimOptions {
  int index = 0;  // sim:N
  size_t capacity_bytes = size_t{1} << 30;
  uint64_t seed = 0;

  enum class Execution : int8_t { kThreads, kInterleaved };
  Execution execution = Execution::kThreads;
  // Longest random pause before a piece of work, in kThreads; 0: none.
  int64_t max_kernel_delay_ns = 0;
  int64_t max_copy_delay_ns = 0;

  // The device is lost (see Device::status) in place of so-manyth kernel or copy; 0: never.
  int64_t lose_at = 0;

  // The cost model; the defaults resemble a small accelerator on PCIe.
  double copy_bytes_per_s = 12e9;     // between host and device, and between devices
  double memory_bytes_per_s = 200e9;  // kernels and copies within the device
  double flops_per_s = 4e12;
  int64_t latency_ns = 3000;  // of each kernel and copy, on the stream
  int64_t launch_ns = 1000;   // of each kernel and copy, on the host
};

// InvalidArgument for options that make no sense; ResourceExhausted when the region cannot be
// mapped.
absl::StatusOr<std::shared_ptr<Device>> MakeSimDevice(const SimOptions& options);

}  // namespace interp
