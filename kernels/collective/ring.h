// What the collective ops have in common. They keep the program's order (OpDef::side_effect). On
// the host they end when the collective has, whatever `use_calc_stream` says: only bucket.cc leaves
// one under way. On GPUs that speak with each other they enqueue it
// (core/comm/device_communicator.h). Alone, a ring is one rank, and they are copies.
#pragma once

#include <algorithm>
#include <vector>

#include "core/comm/rings.h"
#include "core/op_def.h"

namespace interp {

// The ring of that number in the run's rings (CoreOptions::rings). Errors: those of Rings::Find.
absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, int ring_id);
// The run's rings.
absl::StatusOr<Rings*> RingsOf(const KernelContext& ctx);

// Attributes by which a ring is named and, for most ops, described once more.
struct RingAttrs {
  int ring_id = 0;
  int nranks = 0;  // 0: not said
  int rank = -1;   // -1: not said
  int root = 0;

  // Into how many parts the op cuts values; `nranks` that is not said means one.
  int parts() const { return std::max(1, nranks); }

  static RingAttrs Read(AttrReader& reader);
};

// The same, and InvalidArgument where the ring has another size or this process another rank in it
// than the op was made for.
absl::StatusOr<Communicator*> FindRing(const KernelContext& ctx, const RingAttrs& attrs);

// The ring of an op whose shapes are inferred from RingAttrs::parts: it has so many ranks.
absl::StatusOr<Communicator*> FindRingOfParts(const KernelContext& ctx);

// How a kernel carries out a collective, a parameter of those that have rows for both. `memory` is
// what `in` and `out` lie in, which may be touched after a failure (Communicator::Start).
using Collective = absl::Status (*)(const KernelContext& ctx, Communicator& ring,
                                    const CommCall& call, const std::vector<BufferRef>& memory);
// To its end. Errors: those of Communicator::Run.
absl::Status BetweenHosts(const KernelContext& ctx, Communicator& ring, const CommCall& call,
                          const std::vector<BufferRef>& memory);
// Enqueues it on the stream of the kernel, in whose device's memory `in` and `out` lie. No barrier.
// Errors: those of DeviceCommunicator.
absl::Status BetweenDevices(const KernelContext& ctx, Communicator& ring, const CommCall& call,
                            const std::vector<BufferRef>& memory = {});

// Whether GPUs of this process can speak with those of others: KernelDef::takes of rows that do.
bool GpusCommunicate(const void* attrs);
// The rows of a kernel that passes values on: every dtype, on the host and on GPUs.
std::vector<KernelDef> CollectiveKernels(KernelFn on_host, KernelFn on_gpus);
// The same for one that makes values one, on GPUs of the dtypes that are computed with there.
std::vector<KernelDef> ReducingKernels(KernelFn on_host, KernelFn on_gpus);

// Checks that the first dimension of input `slot` is a multiple of `parts` and returns it divided.
absl::StatusOr<int64_t> RowsOfPart(const OpContext& ctx, int slot, int64_t parts);
// Output 0 has the rows of one part of input 0.
absl::Status InferPartOfRows(InferContext& ctx);

}  // namespace interp
