// SimLaunch: one run of a host kernel on a simulated device, captured when it was launched.
#pragma once

#include <memory>
#include <vector>

#include "core/device/sim_memory.h"
#include "core/op_def.h"
#include "core/status.h"

namespace interp {

// The arguments are copies: variables may change as soon as Capture returns. Tensors of the device
// lead to where its bytes lie and hold no reference; host tensors are shared.
// Thread-safety: none; Run is called once.
class SimLaunch {
 public:
  // Internal when an argument lies on another device. `memory`, `attrs` and what `services` leads
  // to are borrowed.
  static absl::StatusOr<std::unique_ptr<SimLaunch>> Capture(KernelFn kernel, const BoundArgs& args,
                                                            const void* attrs,
                                                            const KernelContext::Services& services,
                                                            Place place, const SimMemory& memory);

  // The kernel's error, or Internal when it gave an output memory of its own.
  absl::Status Run();

 private:
  SimLaunch() = default;
  void CaptureServices(const KernelContext::Services& services);
  static absl::Status MoveToBytes(const Tensor& source, Tensor& copy, Place place,
                                  const SimMemory& memory);
  absl::Status CheckOutputs() const;

  KernelFn kernel_ = nullptr;
  const void* attrs_ = nullptr;
  KernelContext::Services services_;  // refers to what follows
  KernelContext::PlaceServices place_;
  RandomState random_state_;
  RandomSource random_;
  BoundArgs args_;
  std::vector<Tensor> tensors_;         // by argument; args_ points to them
  std::vector<const void*> addresses_;  // of tensors_ when captured
};

}  // namespace interp
