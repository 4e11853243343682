// Whether there is an NCCL (nccl.cc), for tests.
#pragma once

namespace interp::cuda_emulation {

// Whether the process finds NCCL, as it does at first.
void ShowNccl(bool there);

}  // namespace interp::cuda_emulation
