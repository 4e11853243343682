#include "kernels/random/shape_inputs.h"

namespace interp::random {
namespace {

constexpr int kOut = 0;
constexpr IntSlots kTensor = {.name = "shape", .tensor = 0};
constexpr IntSlots kList = {.name = "shape", .list = 1};

}  // namespace

std::vector<SlotDef> ShapeInputs() {
  return {{"ShapeTensor", kOptional | kAnyDType | kValueInInfer},
          {"ShapeTensorList", kOptional | kVariadic | kAnyDType | kValueInInfer}};
}

absl::Status SetRandomShape(InferContext& ctx, const IntList& attribute) {
  const bool listed = ctx.has_input(kList.list);
  const IntSlots& slots = listed || !attribute.empty() ? kList : kTensor;
  INTERP_ASSIGN_OR_RETURN(const IntList dims, ReadIntList(ctx, slots, attribute));
  return SetFillShape(ctx, kOut, dims);
}

}  // namespace interp::random
