// ctc_align: the tokens of each sequence of Input without `blank` and, with `merge_repeated`,
// without tokens that repeat the one before. Sequences come with a LoD, or as rows of a matrix
// whose lengths InputLength tells; then what is left of a row of Output is `padding_value`.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kInputLength = 1;
constexpr int kOutput = 0;
constexpr int kOutputLength = 1;

struct CtcAlignAttrs {
  int64_t blank = 0;
  bool merge_repeated = true;
  int64_t padding_value = 0;
};

CtcAlignAttrs ReadCtcAlignAttrs(AttrReader& reader) {
  return {reader.Int("blank", 0), reader.Bool("merge_repeated", true),
          reader.Int("padding_value", 0)};
}

// Copies what is kept of `count` tokens to `out` and returns its end.
template <typename T>
T* Align(const CtcAlignAttrs& attrs, const T* tokens, int64_t count, T* out) {
  T previous = -1;
  for (int64_t i = 0; i < count; ++i) {
    const T token = tokens[i];
    const bool repeats = attrs.merge_repeated && token == previous;
    if (token != attrs.blank && !repeats) *out++ = token;
    previous = token;
  }
  return out;
}

template <typename T>
absl::Status AlignSequences(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, LevelOffsets(input, 0, "Input"));
  if (RowSize(input) != 1) {
    return InvalidArgument("input 'Input' has shape ", ToString(input.shape),
                           ", expected rows of one token");
  }
  Tensor& output = ctx.output(kOutput);
  output.shape = {std::max<int64_t>(1, input.shape[0]), 1};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(output));
  T* const first = output.mutable_data<T>();
  T* out = first;
  std::vector<int64_t> level = {0};
  level.reserve(offsets.size());
  for (int64_t i = 0; i < SequenceCount(offsets); ++i) {
    const int64_t count = offsets[i + 1] - offsets[i];
    out = Align(ctx.attrs<CtcAlignAttrs>(), input.data<T>() + offsets[i], count, out);
    level.push_back(out - first);
  }
  // No token at all is a row of -1 that belongs to no sequence.
  if (out == first) *out++ = -1;
  output.shape[0] = out - first;
  output.lod = {std::move(level)};
  if (Tensor* lengths = ctx.optional_output(kOutputLength)) {
    lengths->shape = {0, 1};
    lengths->lod.clear();
    return ctx.Allocate(*lengths);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status AlignRows(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<CtcAlignAttrs>();
  const Tensor& input = ctx.input(kInput);
  const Tensor* const input_length = ctx.optional_input(kInputLength);
  if (input_length == nullptr || input.shape.rank() != 2 ||
      input_length->numel() != input.shape[0]) {
    return InvalidArgument("input 'Input' is ", DescribeType(input),
                           " without LoD, expected a matrix, and 'InputLength' with the lengths of "
                           "its rows");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, InferContext::Integers(*input_length));
  Tensor& output = ctx.output(kOutput);
  output.shape = input.shape;
  output.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(output));
  std::vector<T> kept;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0 || counts[i] > input.shape[1]) {
      return InvalidArgument("input 'InputLength' has the value ", counts[i], ", expected 0 to ",
                             input.shape[1]);
    }
    const int64_t begin = static_cast<int64_t>(i) * input.shape[1];
    T* const row = output.mutable_data<T>() + begin;
    T* const end = Align(attrs, input.data<T>() + begin, counts[i], row);
    std::fill(end, row + input.shape[1], static_cast<T>(attrs.padding_value));
    kept.push_back(static_cast<T>(end - row));
  }
  Tensor* const lengths = ctx.optional_output(kOutputLength);
  if (lengths == nullptr) return absl::OkStatus();
  lengths->shape = {input.shape[0], 1};
  lengths->lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(*lengths));
  std::copy(kept.begin(), kept.end(), lengths->mutable_data<T>());
  return absl::OkStatus();
}

template <typename T>
absl::Status CtcAlign(KernelContext& ctx) {
  return ctx.input(kInput).lod.empty() ? AlignRows<T>(ctx) : AlignSequences<T>(ctx);
}

INTERP_REGISTER_OP(OpDef{
    .type = "ctc_align",
    .inputs = {{"Input"}, {"InputLength", kOptional | kAnyDType}},
    .outputs = {{"Output"}, {"OutputLength", kOptional}},
    .parse = ParseAttrs<CtcAlignAttrs, ReadCtcAlignAttrs>,
    .kernels = {{DType::kInt64, CtcAlign<int64_t>}, {DType::kInt32, CtcAlign<int32_t>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
