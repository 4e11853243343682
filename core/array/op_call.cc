#include "core/array/op_call.h"

#include <cstring>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/device/host_kernels.h"

namespace interp {
namespace {

// Arrays are never constants, so nothing is kept.
class NothingShared final : public SharedConstants {
 public:
  absl::StatusOr<std::shared_ptr<const void>> GetOrMake(
      int /*instruction*/, uint64_t /*key*/,
      const std::function<absl::StatusOr<std::shared_ptr<const void>>()>& make) override {
    return make();
  }
};
NothingShared nothing_shared;

// Whether the memory of a chunk may be written to without anybody seeing it.
bool Owns(const Chunk& chunk) {
  const Tensor& memory = chunk.value.tensor;
  if (!chunk.place.on_host()) return memory.has_memory();
  return memory.has_memory() && memory.buffer().unique() && memory.buffer()->writable;
}

}  // namespace

void OpCall::BindShape(size_t i) {
  const Array& array = operands[i].array;
  Variable& variable = variables[i];
  variable.tensor.shape = array.shape();
  variable.tensor.dtype = array.dtype();
  if (array.is_rows()) variable.selected_rows = RowIndex{.rows = {}, .height = array.shape()[0]};
}

void OpCall::BindVariables() {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].use != Use::kRows) continue;
    args.variables[i] = &ArrayAccess::chunk(operands[i].array)->value;
    args.tensors[i] = &args.variables[i]->tensor;
  }
}

absl::Status OpCall::BindOutputs(const engine::RunContext& context) {
  for (size_t i = num_inputs; i < operands.size(); ++i) {
    Operand& operand = operands[i];
    if (operand.use == Use::kRows) INTERP_RETURN_IF_ERROR(OwnRows(operand.array));
    if (operand.use == Use::kNone || operand.use == Use::kRows || operand.use == Use::kFound) {
      continue;
    }
    const Array& array = operand.array;
    if (operand.use == Use::kInPlace && ArrayAccess::IsWhole(array) &&
        !Owns(*ArrayAccess::chunk(array))) {
      operand.use = Use::kAside;  // copying what others see would be wasted
    }
    if (operand.use == Use::kAside) {
      INTERP_RETURN_IF_ERROR(
          variables[i].tensor.AllocateBytes(runtime.AllocatorOf(context), array.size_bytes()));
      continue;
    }
    const bool overwrites = operand.use == Use::kWrite;
    INTERP_ASSIGN_OR_RETURN(const Tensor memory, ArrayAccess::Writable(array, overwrites, context));
    variables[i].tensor.ShareMemory(memory);
  }
  return absl::OkStatus();
}

// A kernel writes rows over its input, where that is the output, too: not in memory that readers of
// the old values have.
absl::Status OpCall::OwnRows(const Array& array) {
  Chunk& chunk = *ArrayAccess::chunk(array);
  if (!chunk.value.tensor.has_memory() || Owns(chunk)) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(chunk.value.tensor, chunk.value.tensor.Clone(runtime.host_pool()));
  return absl::OkStatus();
}

absl::Status OpCall::BindInputs() {
  for (size_t i = 0; i < num_inputs; ++i) {
    if (operands[i].use != Use::kRead) continue;
    INTERP_ASSIGN_OR_RETURN(const Tensor memory, ArrayAccess::Readable(operands[i].array));
    variables[i].tensor.ShareMemory(memory);
  }
  return absl::OkStatus();
}

absl::Status OpCall::Run(const engine::RunContext& context) {
  INTERP_RETURN_IF_ERROR(BindOutputs(context));
  INTERP_RETURN_IF_ERROR(BindInputs());
  INTERP_RETURN_IF_ERROR(Compute(context));
  return Commit(context);
}

absl::Status OpCall::Compute(const engine::RunContext& context) {
  KernelContext::PlaceServices place{.resources = &runtime.resources(context.place)};
  const RandomSource source{.state = &random, .op = 0};
  KernelContext::Services services{.allocator = &runtime.host_pool(),
                                   .shared = &nothing_shared,
                                   .random = op->def().random ? &source : nullptr,
                                   .place = &place,
                                   .num_threads = runtime.num_threads()};
  if (context.stream != nullptr) {
    place.stream = context.stream;
    place.errors = context.work.errors;
    place.workspace = &runtime.AllocatorOf(context);
    services.instruction = context.work.tag;
    return Launch(context, services);
  }
  std::unique_ptr<KernelState> state = op->TakeState();
  services.state = &state;
  KernelContext kernel_context(args, op->attrs(), services);
  const absl::Status status = kernel->run(kernel_context);
  op->ReturnState(std::move(state));
  return status;
}

absl::Status OpCall::Launch(const engine::RunContext& context, KernelContext::Services services) {
  CachedOp::OfStream& kept = op->StateOf(*context.stream);
  services.state = &kept.state;
  KernelContext kernel_context(args, op->attrs(), services);
  Work work = context.work;
  for (const Tensor* tensor : args.tensors) {
    if (tensor != nullptr && tensor->has_memory()) {
      work.bytes += static_cast<int64_t>(tensor->size_bytes());
    }
  }
  if (op->def().flops != nullptr) work.flops = op->def().flops(kernel_context);
  absl::Status status;
  if (kernel->place == PlaceKind::kCpu) {
    status = LaunchHostKernel(*context.stream, kernel->run, args, op->attrs(), services, work);
  } else {
    std::lock_guard<std::mutex> lock(kept.mutex);
    status = context.stream->EnqueueKernel(work, [&] { return kernel->run(kernel_context); });
  }
  for (const Tensor* tensor : args.tensors) {
    if (tensor != nullptr) runtime.RecordUse(tensor->buffer(), context);
  }
  // What the work uses goes with this call.
  if (!op->kept()) status.Update(context.stream->Synchronize());
  return status;
}

absl::Status OpCall::CommitAside(const Operand& operand, const Tensor& result,
                                 const engine::RunContext& context) {
  const Array& array = operand.array;
  if (ArrayAccess::IsWhole(array)) {
    ArrayAccess::chunk(array)->value.tensor.ShareMemory(result);
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(Tensor target,
                          ArrayAccess::Writable(array, /*overwrites=*/false, context));
  const size_t bytes = result.size_bytes();
  if (bytes == 0) return absl::OkStatus();
  if (context.stream == nullptr) {
    std::memcpy(target.mutable_raw_data(), result.raw_data(), bytes);
  } else {
    INTERP_RETURN_IF_ERROR(context.stream->CopyOnDevice(target.mutable_raw_data(),
                                                        result.raw_data(), bytes, context.work));
    runtime.RecordUse(target.buffer(), context);
  }
  return absl::OkStatus();
}

// Of rows the kernel alone knows what it gives.
absl::Status OpCall::CheckRows(const Array& array) {
  Variable& value = ArrayAccess::chunk(array)->value;
  const Tensor& tensor = value.tensor;
  Shape shape = array.shape();
  bool fits = value.selected_rows.has_value() && value.selected_rows->height == shape[0];
  if (fits && !value.selected_rows->rows.empty()) {
    shape[0] = std::ssize(value.selected_rows->rows);
    fits = tensor.dtype == array.dtype() && tensor.shape == shape;
  }
  if (fits) return absl::OkStatus();
  const absl::Status error = InvalidArgument(
      "gives ", value.selected_rows.has_value() ? "rows of " : "", DescribeType(tensor),
      ", to be written into an array of rows ", DescribeArray(array));
  value.tensor = Tensor();
  value.selected_rows = RowIndex{.rows = {}, .height = array.shape()[0]};
  return error;
}

absl::Status OpCall::Commit(const engine::RunContext& context) {
  for (size_t i = num_inputs; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.use == Use::kRows) INTERP_RETURN_IF_ERROR(CheckRows(operand.array));
    if (operand.use == Use::kAside) {
      INTERP_RETURN_IF_ERROR(CommitAside(operand, variables[i].tensor, context));
    }
    if (operand.use != Use::kFound) continue;
    Tensor found = std::move(variables[i].tensor);
    if (!found.has_memory() || found.raw_data() != found.buffer()->data) {
      if (!found.has_memory()) INTERP_RETURN_IF_ERROR(found.Allocate(runtime.host_pool()));
      INTERP_ASSIGN_OR_RETURN(found, found.Clone(runtime.host_pool()));
    }
    Chunk& chunk = *ArrayAccess::chunk(operand.array);
    chunk.size_bytes = found.size_bytes();
    chunk.value.tensor = std::move(found);
  }
  return absl::OkStatus();
}

}  // namespace interp
