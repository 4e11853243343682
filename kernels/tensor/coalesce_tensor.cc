// coalesce_tensor: FusedOutput holds the elements of all Outputs one after the other, as
// paddle.nn.LSTM's startup program makes them. Output i is Input i, or `constant` with
// set_constant. Unlike Paddle's, outputs do not share the memory of FusedOutput:
// it holds what they are when the op runs. (Paddle: phi/kernels/gpu/coalesce_tensor_kernel.cc.)
// join_coalesced and split_coalesced, which Paddle has no need for, copy from the one to the other
// (passes/import/coalesced_tensors.h).
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/op_def.h"
#include "kernels/util/all_present.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;
constexpr int kFused = 1;
// The ops are computed in the dtype that the program names: padding is counted in bytes, so that in
// 16 bits FusedOutput would have another length.
constexpr int64_t kDefaultAlignment = 4096;  // bytes, where use_align names none: Paddle's on a CPU

constexpr int32_t kLargestWidth = 16;

// Where a tensor ends in FusedOutput.
struct Alignment {
  int64_t bytes = 1;
  int64_t width = 0;  // bytes for which each element counts; 0: those of its dtype
};

struct CoalesceAttrs {
  bool set = false;
  double constant = 0;
  Alignment alignment;
};

Alignment ReadAlignment(AttrReader& reader) {
  const int32_t size = reader.Int("align_size", -1);
  const int32_t width = reader.Int("user_defined_size_of_dtype", -1);
  if (width > kLargestWidth) {
    reader.Fail(absl::StrCat("attribute 'user_defined_size_of_dtype' is ", width,
                             ", expected at most ", kLargestWidth, " bytes"));
  }
  if (!reader.Bool("use_align", true)) return {};
  return {.bytes = size > 0 ? size : kDefaultAlignment, .width = std::max(width, 0)};
}

CoalesceAttrs ReadCoalesceAttrs(AttrReader& reader) {
  CoalesceAttrs attrs;
  attrs.set = reader.Bool("set_constant", false);
  attrs.constant = reader.Float("constant", 0);
  attrs.alignment = ReadAlignment(reader);
  if (attrs.set && reader.Bool("copy_data", false))
    reader.Fail("copy_data and set_constant exclude each other");
  return attrs;
}

// Elements that a tensor takes of FusedOutput, its padding included.
int64_t SpanOf(const Tensor& tensor, const Alignment& alignment) {
  const auto own = static_cast<int64_t>(SizeOf(tensor.dtype));
  const int64_t width = alignment.width > 0 ? alignment.width : own;
  const int64_t bytes = tensor.numel() * width;
  return (bytes + alignment.bytes - 1) / alignment.bytes * alignment.bytes / width;
}

absl::Status InferCoalesce(InferContext& ctx) {
  const auto inputs = ctx.inputs(kInput);
  const auto outputs = ctx.outputs(kOutput);
  if (inputs.size() != outputs.size()) {
    return InvalidArgument("'Output' has ", outputs.size(),
                           " arguments, expected as many as 'Input', ", inputs.size());
  }
  int64_t total = 0;
  INTERP_RETURN_IF_ERROR(CheckAllPresent(inputs, "Input"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(outputs, "Output"));
  for (size_t i = 0; i < inputs.size(); ++i) {
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

// How X lie in Out, or Out in X.
struct AlignmentAttrs {
  Alignment alignment;
  static AlignmentAttrs Read(AttrReader& reader) { return {ReadAlignment(reader)}; }
};

int64_t SpanOfAll(absl::Span<const Tensor* const> tensors, const Alignment& alignment) {
  int64_t total = 0;
  for (const Tensor* const tensor : tensors) total += SpanOf(*tensor, alignment);
  return total;
}

constexpr int kX = 0;
constexpr int kLike = 1;
constexpr int kOut = 0;

absl::Status InferJoin(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckAllPresent(ctx.inputs(kX), "X"));
  ctx.SetShape(kOut, Shape{SpanOfAll(ctx.inputs(kX), ctx.attrs<AlignmentAttrs>().alignment)});
  return absl::OkStatus();
}

absl::Status JoinCoalesced(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  char* to = static_cast<char*>(out.mutable_raw_data());
  const auto width = static_cast<int64_t>(SizeOf(out.dtype));
  for (const Tensor* const x : ctx.inputs(kX)) {
    const int64_t span = SpanOf(*x, ctx.attrs<AlignmentAttrs>().alignment) * width;
    const auto bytes = static_cast<int64_t>(x->size_bytes());
    if (bytes > 0) std::memcpy(to, x->raw_data(), bytes);
    std::memset(to + bytes, 0, span - bytes);
    to += span;
  }
  return absl::OkStatus();
}

absl::Status InferSplit(InferContext& ctx) {
  const auto like = ctx.inputs(kLike);
  const auto outputs = ctx.outputs(kOut);
  INTERP_RETURN_IF_ERROR(CheckAllPresent(like, "Like"));
  INTERP_RETURN_IF_ERROR(CheckAllPresent(outputs, "Out"));
  const int64_t expected = SpanOfAll(like, ctx.attrs<AlignmentAttrs>().alignment);
  if (like.size() != outputs.size() || ctx.input(kX).numel() != expected) {
    return InvalidArgument("'X' has ", ctx.input(kX).numel(), " elements, expected the ", expected,
                           " of the ", like.size(), " tensors that are to be its ", outputs.size(),
                           " parts");
  }
  for (size_t i = 0; i < like.size(); ++i) {
    outputs[i]->shape = like[i]->shape;
    outputs[i]->lod.clear();
  }
  return absl::OkStatus();
}

absl::Status SplitCoalesced(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const char* from = static_cast<const char*>(x.raw_data());
  for (Tensor* const out : ctx.outputs(kOut)) {
    if (out->size_bytes() > 0) std::memcpy(out->mutable_raw_data(), from, out->size_bytes());
    from += SpanOf(*out, ctx.attrs<AlignmentAttrs>().alignment) *
            static_cast<int64_t>(SizeOf(out->dtype));
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "join_coalesced",
    .inputs = {{"X", kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<AlignmentAttrs, AlignmentAttrs::Read>,
    .infer = InferJoin,
    .kernels = {{DType::kUndefined, JoinCoalesced}},
    .precision = PrecisionRule::kFull,
    .gradient = {.none = true},
});
INTERP_REGISTER_OP(OpDef{
    .type = "split_coalesced",
    .inputs = {{"X"}, {"Like", kVariadic | kNoNeedBuffer}},
    .outputs = {{"Out", kVariadic}},
    .parse = ParseAttrs<AlignmentAttrs, AlignmentAttrs::Read>,
    .infer = InferSplit,
    .kernels = {{DType::kUndefined, SplitCoalesced}},
    .precision = PrecisionRule::kFull,
    .gradient = {.none = true},
});
INTERP_REGISTER_OP(OpDef{
    .type = "coalesce_tensor",
    .inputs = {{"Input", kVariadic}},
    .outputs = {{"Output", kVariadic}, {"FusedOutput"}},
    .parse = ParseAttrs<CoalesceAttrs, ReadCoalesceAttrs>,
    .infer = InferCoalesce,
    .kernels = {{DType::kUndefined, Coalesce}},
    .precision = PrecisionRule::kFull,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
