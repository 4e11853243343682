// read_from_array: Out = X[I], whose memory it shares. Beyond the end Out keeps what it holds.
//
// As the gradient of write_to_array it has X_W, the tensor that was written: an element that no
// gradient has reached is zeros like X_W.
#include <cstring>

#include "core/op_def.h"
#include "kernels/control_flow/gradient_values.h"
#include "kernels/control_flow/lod_parts.h"
#include "kernels/util/gradient_op.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kI = 1;
constexpr int kWritten = 2;
constexpr int kOut = 0;

absl::Status FillZeros(KernelContext& ctx, const Tensor& like, Tensor& out) {
  out.shape = like.shape;
  out.dtype = like.dtype;
  out.lod = like.lod;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  if (out.numel() > 0) std::memset(out.mutable_raw_data(), 0, out.size_bytes());
  return absl::OkStatus();
}

// The plan says which dtype Out has from here on. What an op of another dtype left is no such
// value.
void KeepValue(Tensor& out) {
  if (!out.has_memory()) return;
  const auto offset =
      static_cast<const char*>(out.raw_data()) - static_cast<const char*>(out.buffer()->data);
  if (static_cast<size_t>(offset) + out.size_bytes() > out.buffer()->size_bytes) out.DropMemory();
}

absl::Status ReadFromArray(KernelContext& ctx) {
  const std::vector<Tensor>& array = ctx.input_array(kX);
  INTERP_ASSIGN_OR_RETURN(const int64_t index, IndexOf(ctx.input(kI), "I"));
  Tensor& out = ctx.output(kOut);
  const bool inside = index < std::ssize(array);
  if (inside && control_flow::HasValue(array[index])) {
    out = array[index];
    return absl::OkStatus();
  }
  if (const Tensor* const written = ctx.optional_input(kWritten)) {
    return FillZeros(ctx, *written, out);
  }
  if (inside) {
    return NotFound("element ", index, " of the array has no value: nothing has written it");
  }
  KeepValue(out);
  return absl::OkStatus();
}

absl::Status MakeGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "write_to_array", {{"I", "I"}, {"X", "Out@GRAD"}},
                       {{"Out", "X@GRAD"}});
}

INTERP_REGISTER_OP(OpDef{
    .type = "read_from_array",
    .inputs = {{"X", kTensorArray},
               {"I", kAnyDType},
               {"X_W", kOptional | kNoNeedBuffer | kAnyDType | kAnyLayout}},
    .outputs = {{"Out"}},
    .kernels = {{DType::kUndefined, ReadFromArray}},
    .dynamic_outputs = true,
    .gradient = {.make = MakeGradient},
});

}  // namespace
}  // namespace interp
