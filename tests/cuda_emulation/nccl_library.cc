// In place of core/device/cuda/nccl_library.cc: the emulated NCCL.
#include "core/device/cuda/nccl_library.h"

#include <atomic>

#include "tests/cuda_emulation/nccl_presence.h"

namespace interp {
namespace {

std::atomic<bool> nccl_is_there = true;

}  // namespace

namespace cuda_emulation {

void ShowNccl(bool there) { nccl_is_there = there; }

}  // namespace cuda_emulation

namespace cuda {

absl::StatusOr<const NcclLibrary*> FindNccl() {
  static const NcclLibrary library = {.get_version = ncclGetVersion,
                                      .get_error_string = ncclGetErrorString,
                                      .get_last_error = ncclGetLastError,
                                      .get_unique_id = ncclGetUniqueId,
                                      .comm_init_rank_config = ncclCommInitRankConfig,
                                      .comm_get_async_error = ncclCommGetAsyncError,
                                      .comm_finalize = ncclCommFinalize,
                                      .comm_destroy = ncclCommDestroy,
                                      .comm_abort = ncclCommAbort,
                                      .group_start = ncclGroupStart,
                                      .group_end = ncclGroupEnd,
                                      .all_reduce = ncclAllReduce,
                                      .reduce = ncclReduce,
                                      .broadcast = ncclBroadcast,
                                      .all_gather = ncclAllGather,
                                      .reduce_scatter = ncclReduceScatter,
                                      .send = ncclSend,
                                      .receive = ncclRecv};
  if (!nccl_is_there) return NotFound("cannot load NCCL: it is hidden");
  return &library;
}

}  // namespace cuda
}  // namespace interp
