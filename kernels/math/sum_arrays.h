// Sums of tensor arrays: the gradients of an array that several ops read.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/op_def.h"

namespace interp {

// Whether the arguments of the slot, of which there is one, are arrays: those have no tensor.
inline bool AreArrays(const OpContext& ctx, int slot) {
  const Tensor* tensor = ctx.inputs(slot)[0];
  return tensor != nullptr && !tensor->has_memory() && tensor->numel() != 0;
}

// Element i of the arrays of a slot, where they have one. Those that are empty count only where all
// are.
inline std::vector<const Tensor*> ElementsAt(const OpContext& ctx, int slot, size_t i) {
  std::vector<const Tensor*> elements;
  for (const Variable* x : ctx.input_variables(slot)) {
    const bool has = x != nullptr && i < x->array.size() && x->array[i].has_memory();
    if (has) elements.push_back(&x->array[i]);
  }
  const auto is_empty = [](const Tensor* element) { return element->numel() == 0; };
  if (!std::all_of(elements.begin(), elements.end(), is_empty)) std::erase_if(elements, is_empty);
  return elements;
}

// Element i of the output is the sum of elements i of the arrays, and as long as the longest of
// them; add(tensors, out) sums tensors of one shape and dtype. Output may be one of the arrays.
template <typename Add>
absl::Status SumArrays(KernelContext& ctx, int slot, int output, const Add& add) {
  size_t length = 0;
  for (const Variable* x : ctx.input_variables(slot)) {
    if (x != nullptr) length = std::max(length, x->array.size());
  }
  std::vector<Tensor> sums(length);
  for (size_t i = 0; i < length; ++i) {
    const std::vector<const Tensor*> elements = ElementsAt(ctx, slot, i);
    if (elements.empty()) continue;
    sums[i] = *elements[0];
    if (elements.size() == 1) continue;
    for (const Tensor* element : elements) {
      if (element->shape == sums[i].shape && element->dtype == sums[i].dtype) continue;
      return InvalidArgument("elements ", i, " of the arrays 'X' differ: ", DescribeType(sums[i]),
                             " and ", DescribeType(*element));
    }
    Tensor sum;
    sum.dtype = sums[i].dtype;
    sum.shape = sums[i].shape;
    sum.lod = sums[i].lod;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(sum));
    add(elements, sum);
    sums[i] = std::move(sum);
  }
  ctx.output_array(output) = std::move(sums);
  return absl::OkStatus();
}

}  // namespace interp
