#include "core/device/cuda/nccl_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "absl/strings/str_cat.h"

namespace interp::cuda {
namespace {

constexpr const char* kFile = "libnccl.so.2";
// The first in which communicators that do not block are mature.
constexpr int kOldestVersion = NCCL_VERSION(2, 18, 0);

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  Symbols& Find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
    return *this;
  }
  // The first that is not there, or null.
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;
};

absl::StatusOr<const NcclLibrary*> Load() {
  void* const file = dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (file == nullptr) return NotFound("cannot load NCCL: ", dlerror());
  auto* const nccl = new NcclLibrary;
  const char* const missing = Symbols(file)
                                  .Find(nccl->get_version, "ncclGetVersion")
                                  .Find(nccl->get_error_string, "ncclGetErrorString")
                                  .Find(nccl->get_last_error, "ncclGetLastError")
                                  .Find(nccl->get_unique_id, "ncclGetUniqueId")
                                  .Find(nccl->comm_init_rank_config, "ncclCommInitRankConfig")
                                  .Find(nccl->comm_get_async_error, "ncclCommGetAsyncError")
                                  .Find(nccl->comm_finalize, "ncclCommFinalize")
                                  .Find(nccl->comm_destroy, "ncclCommDestroy")
                                  .Find(nccl->comm_abort, "ncclCommAbort")
                                  .Find(nccl->group_start, "ncclGroupStart")
                                  .Find(nccl->group_end, "ncclGroupEnd")
                                  .Find(nccl->all_reduce, "ncclAllReduce")
                                  .Find(nccl->reduce, "ncclReduce")
                                  .Find(nccl->broadcast, "ncclBroadcast")
                                  .Find(nccl->all_gather, "ncclAllGather")
                                  .Find(nccl->reduce_scatter, "ncclReduceScatter")
                                  .Find(nccl->send, "ncclSend")
                                  .Find(nccl->receive, "ncclRecv")
                                  .missing();
  if (missing != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(kFile, " has no ", missing));
  }
  int version = 0;
  if (nccl->get_version(&version) != ncclSuccess || version < kOldestVersion) {
    return absl::FailedPreconditionError(absl::StrCat(kFile, " is of version ", version / 10000,
                                                      ".", version / 100 % 100,
                                                      ", expected 2.18 or newer"));
  }
  return nccl;
}

}  // namespace

absl::StatusOr<const NcclLibrary*> FindNccl() {
  static const absl::StatusOr<const NcclLibrary*> kFound = Load();
  return kFound;
}

}  // namespace interp::cuda
