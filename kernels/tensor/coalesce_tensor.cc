// coalesce_tensor: FusedOutput holds the elements of all Outputs one after the other, as
// paddle.nn.LSTM's startup program makes them. Output i is Input i, or `constant` with
// set_constant. Unlike Paddle's, outputs do not share the memory of FusedOutput:
// it holds what they are when the op runs. (Paddle: phi/kernels/gpu/coalesce_tensor_kernel.cc.)
#include <cstring>

#include "core/op_def.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;
constexpr int kFused = 1;
constexpr int64_t kDefaultAlignment = 4096;  // bytes, where use_align names none: Paddle's on a CPU

struct CoalesceAttrs {
  bool set = false;
  double constant = 0;
  int64_t alignment = 1;  // bytes
};

CoalesceAttrs ReadCoalesceAttrs(AttrReader& reader) {
  CoalesceAttrs attrs;
  attrs.set = reader.Bool("set_constant", false);
  attrs.constant = reader.Float("constant", 0);
  const int32_t size = reader.Int("align_size", -1);
  if (reader.Bool("use_align", true)) attrs.alignment = size > 0 ? size : kDefaultAlignment;
  if (attrs.set && reader.Bool("copy_data", false))
    reader.Fail("copy_data and set_constant exclude each other");
  return attrs;
}

// Elements that a tensor takes of FusedOutput, its padding included.
int64_t SpanOf(const Tensor& tensor, int64_t alignment) {
  const auto width = static_cast<int64_t>(SizeOf(tensor.dtype));
  const int64_t bytes = tensor.numel() * width;
  return (bytes + alignment - 1) / alignment * alignment / width;
}

absl::Status InferCoalesce(InferContext& ctx) {
  const auto inputs = ctx.inputs(kInput);
  const auto outputs = ctx.outputs(kOutput);
  if (inputs.size() != outputs.size()) {
    return InvalidArgument("'Output' has ", outputs.size(),
                           " arguments, expected as many as 'Input', ", inputs.size());
  }
  int64_t total = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || outputs[i] == nullptr)
      return InvalidArgument("a tensor is missing");
    outputs[i]->shape = inputs[i]->shape;
    total += SpanOf(*inputs[i], ctx.attrs<CoalesceAttrs>().alignment);
  }
  ctx.SetShape(kFused, Shape{total});
  return absl::OkStatus();
}

absl::Status Coalesce(KernelContext& ctx) {
  const CoalesceAttrs& attrs = ctx.attrs<CoalesceAttrs>();
  Tensor& fused = ctx.output(kFused);
  char* to = static_cast<char*>(fused.mutable_raw_data());
  if (attrs.set) {
    const ScalarBytes value = ToScalarBytes(fused.dtype, attrs.constant);
    FillElements(ctx.num_threads(), SizeOf(fused.dtype), value.bytes.data(), to, fused.numel());
  } else {
    std::memset(to, 0, fused.size_bytes());
  }
  for (size_t i = 0; i < ctx.inputs(kInput).size(); ++i) {
    const Tensor& input = *ctx.inputs(kInput)[i];
    Tensor& output = *ctx.outputs(kOutput)[i];
    if (attrs.set) {
      const ScalarBytes value = ToScalarBytes(output.dtype, attrs.constant);
      FillElements(ctx.num_threads(), SizeOf(output.dtype), value.bytes.data(),
                   output.mutable_raw_data(), output.numel());
    } else if (output.raw_data() != input.raw_data()) {
      std::memcpy(output.mutable_raw_data(), input.raw_data(), input.size_bytes());
    }
    std::memcpy(to, output.raw_data(), output.size_bytes());
    to += SpanOf(output, attrs.alignment) * static_cast<int64_t>(SizeOf(output.dtype));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "coalesce_tensor",
    .inputs = {{"Input", kVariadic}},
    .outputs = {{"Output", kVariadic}, {"FusedOutput"}},
    .parse = ParseAttrs<CoalesceAttrs, ReadCoalesceAttrs>,
    .infer = InferCoalesce,
    .kernels = {{DType::kUndefined, Coalesce}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
