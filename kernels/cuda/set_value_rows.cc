// The row of set_value. Numbers that its attributes list go to the GPU with the work.
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cuda/box_copy.h"
#include "kernels/cuda/number_lists.h"
#include "kernels/cuda/row.h"
#include "kernels/tensor/set_value_attrs.h"
#include "kernels/util/data_mover.h"

namespace interp::cuda {
namespace {

using set_value::SetValueAttrs;

absl::Status StoreListed(const KernelContext& ctx, absl::Span<const std::byte> listed, void* to) {
  std::vector<int64_t> words((listed.size() + sizeof(int64_t) - 1) / sizeof(int64_t));
  if (!words.empty()) std::memcpy(words.data(), listed.data(), listed.size());
  return StoreNumbers(ctx, words, static_cast<int64_t*>(to));
}

// A value in memory of its own.
absl::StatusOr<Workspace> CopyOfValue(const KernelContext& ctx, const Tensor* value, DType dtype) {
  if (value == nullptr) {
    const auto listed = set_value::ValuesAs(dtype, ctx.attrs<SetValueAttrs>());
    INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(listed.size() + sizeof(int64_t)));
    INTERP_RETURN_IF_ERROR(StoreListed(ctx, listed, memory.data()));
    return memory;
  }
  INTERP_ASSIGN_OR_RETURN(Workspace memory, ctx.workspace(value->size_bytes()));
  INTERP_RETURN_IF_ERROR(CopyBox(SizeOf(dtype), CopyDims{{value->numel(), 1, 1}}, value->raw_data(),
                                 memory.data(), StreamOf(ctx)));
  return memory;
}

// Input, ValueTensor, StartsTensorList, EndsTensorList, StepsTensorList -> Out.
absl::Status SetValue(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SetValueAttrs>();
  Tensor& out = ctx.output(/*slot=*/0);
  const Tensor* const value = ctx.optional_input(set_value::kValueTensor);
  INTERP_ASSIGN_OR_RETURN(
      const set_value::Ranges ranges,
      set_value::ResolveRanges(ctx, set_value::kPartSlots, attrs.part, out.shape));
  if (set_value::IsEmpty(ranges)) {  // whatever the value
    return CopyUnlessShared(ctx, ctx.input(set_value::kInput), out);
  }
  INTERP_ASSIGN_OR_RETURN(const set_value::Part part,
                          set_value::LayOut(attrs.part, ranges, StridesOf(out),
                                            value != nullptr ? value->shape : attrs.shape));
  // Out may have the memory of the value, too.
  std::optional<Workspace> copy;
  if (value == nullptr || value->raw_data() == out.raw_data()) {
    INTERP_ASSIGN_OR_RETURN(copy, CopyOfValue(ctx, value, out.dtype));
  }
  INTERP_RETURN_IF_ERROR(CopyUnlessShared(ctx, ctx.input(set_value::kInput), out));
  const size_t bytes = SizeOf(out.dtype);
  const void* const from = copy.has_value() ? copy->data() : value->raw_data();
  return CopyBox(bytes, part.dims, At(from, part.value_start, bytes),
                 At(out.mutable_raw_data(), part.start, bytes), StreamOf(ctx));
}

INTERP_REGISTER_KERNELS("set_value", RowsFor({DType::kUndefined}, SetValue));

}  // namespace
}  // namespace interp::cuda
