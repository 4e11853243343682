// ForEachSequence: a loop over sequences on the threads of an op, each with memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp::crf {

// Calls body(i, scratch) for each i in [0, count) with `size` elements of T of the op's workspace,
// which hold anything; a thread takes `grain` or more. body must not throw. Fails where there is no
// memory.
template <typename T, typename Body>
absl::Status ForEachSequence(KernelContext& ctx, int64_t count, int64_t grain, int64_t size,
                             const Body& body) {
  const auto workers = std::min<int64_t>(ctx.num_threads(), std::max<int64_t>(count / grain, 1));
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(workers * size) * sizeof(T)));
  ParallelFor(ctx.num_threads(), workers, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      T* const own = scratch.data<T>() + worker * size;
      const int64_t last = count * (worker + 1) / workers;
      for (int64_t i = count * worker / workers; i < last; ++i) body(i, own);
    }
  });
  return absl::OkStatus();
}

}  // namespace interp::crf
