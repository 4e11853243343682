// write_to_array: Out[I] = X, where Out is an array that keeps its other elements. An index beyond
// the end makes the array longer; what lies between is left without a value.
//
// The element shares the memory of X. Whoever writes X afterwards sees that it is not alone and
// takes memory of its own, so no trip of a loop copies a tensor.
#include "core/op_def.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kI = 1;
constexpr int kOut = 0;

// Elements without a value that one op may add: a damaged index must not ask for gigabytes.
constexpr int64_t kMostHoles = int64_t{1} << 20;

absl::Status WriteToArray(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const int64_t index, IndexOf(ctx.input(kI), "I"));
  std::vector<Tensor>& out = ctx.output_array(kOut);
  const int64_t size = std::ssize(out);
  if (index - size > kMostHoles) {
    return InvalidArgument("input 'I' is ", index, ", but the array has ", size,
                           " elements, expected at most ", kMostHoles, " beyond its end");
  }
  if (index >= size) out.resize(static_cast<size_t>(index) + 1);
  if (x.has_memory() || x.numel() == 0) {
    out[index] = x;
  } else {
    out[index].lod = x.lod;  // without a value X leaves the one that is there
  }
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "read_from_array", {{"I", "I"}, {"X", "Out@GRAD"}, {"X_W", "X"}},
                       {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "write_to_array",
    .inputs = {{"X", kMayBeEmpty}, {"I", kAnyDType}},
    .outputs = {{"Out", kTensorArray}},
    .infer = InferNothing,
    .kernels = {{DType::kUndefined, WriteToArray}},
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
