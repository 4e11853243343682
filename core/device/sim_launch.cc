#include "core/device/sim_launch.h"

#include <exception>
#include <new>
#include <utility>

namespace interp {
namespace {

// Kernels return errors; what the standard library throws below them ends here.
absl::Status Compute(KernelFn kernel, KernelContext& context) {
  try {
    return kernel(context);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("the system has no memory left");
  } catch (const std::exception& e) {
    return absl::InternalError(e.what());
  } catch (...) {
    return absl::InternalError("the kernel threw something that is no std::exception");
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SimLaunch>> SimLaunch::Capture(
    KernelFn kernel, const BoundArgs& args, const void* attrs,
    const KernelContext::Services& services, Place place, const SimMemory& memory) {
  std::unique_ptr<SimLaunch> launch(new SimLaunch);
  launch->kernel_ = kernel;
  launch->attrs_ = attrs;
  launch->CaptureServices(services);

  const size_t num_args = args.tensors.size();
  launch->args_ = {.input_slots = args.input_slots,
                   .output_slots = args.output_slots,
                   .tensors = BoundArgs::Tensors(num_args),
                   .variables = BoundArgs::Variables(num_args),
                   .constant = args.constant};
  launch->tensors_.resize(num_args);
  launch->addresses_.resize(num_args);
  for (size_t i = 0; i < num_args; ++i) {
    if (args.tensors[i] == nullptr) continue;
    Tensor& copy = launch->tensors_[i];
    launch->args_.tensors[i] = &copy;
    const absl::Status moved = MoveToBytes(*args.tensors[i], copy, place, memory);
    if (!moved.ok()) return Annotate(moved, absl::StrCat("argument ", i));
    launch->addresses_[i] = copy.raw_data();
  }
  return launch;
}

// Everything that is another's by the time the kernel runs is copied: a later run of the program
// may have begun, with its own step of random numbers.
void SimLaunch::CaptureServices(const KernelContext::Services& services) {
  services_ = services;
  if (services.allocator == nullptr) services_.allocator = &SystemAllocator();
  if (services.random != nullptr) {
    random_state_ = *services.random->state;
    random_ = {.state = &random_state_, .op = services.random->op};
    services_.random = &random_;
  }
  // What runs is a host kernel: it enqueues nothing, and its workspace is the host's.
  if (services.place != nullptr) place_ = {.resources = services.place->resources};
  services_.place = &place_;
}

absl::Status SimLaunch::MoveToBytes(const Tensor& source, Tensor& copy, Place place,
                                    const SimMemory& memory) {
  if (source.place().on_host()) {
    copy = source;
    return absl::OkStatus();
  }
  const Buffer& buffer = *source.buffer().get();
  char* bytes = memory.Bytes(buffer.data, buffer.size_bytes);
  char* data = memory.Bytes(source.raw_data(), source.size_bytes());
  if (buffer.place != place || bytes == nullptr || data == nullptr) {
    return absl::InternalError(absl::StrCat("lies on ", Name(buffer.place),
                                            " outside the memory of ", Name(place),
                                            ", where the kernel runs"));
  }
  copy.shape = source.shape;
  copy.dtype = source.dtype;
  copy.layout = source.layout;
  copy.lod = source.lod;
  BufferRef borrowed = BorrowBuffer(bytes, buffer.size_bytes, buffer.writable);
  borrowed->serial = buffer.serial;  // kernels tell the values they know by it
  borrowed->place = place;           // and whether they may share memory instead of copying
  copy.SetMemory(std::move(borrowed), data);
  return absl::OkStatus();
}

absl::Status SimLaunch::Run() {
  KernelContext context(args_, attrs_, services_);
  INTERP_RETURN_IF_ERROR(Compute(kernel_, context));
  return CheckOutputs();
}

absl::Status SimLaunch::CheckOutputs() const {
  for (size_t slot = 0; slot < args_.output_slots.size(); ++slot) {
    const BoundArgs::Range range = args_.output_slots[slot];
    for (int32_t i = range.begin; i < range.begin + range.size; ++i) {
      if (args_.tensors[i] == nullptr || tensors_[i].raw_data() == addresses_[i]) continue;
      return absl::InternalError(
          absl::StrCat("the kernel gave output ", i - range.begin, " of slot ", slot,
                       " memory of its own, which a kernel on a device must not"));
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
