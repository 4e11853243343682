// sequence_pad: the sequences of X as a batch [N,L,...]; what is behind the end of a sequence is
// PadValue, one element or one row. L is `padded_length`, -1: the length of the longest. Length has
// the lengths.
// sequence_unpad: the first Length[i] rows of each batch X[i], as sequences.
#include <cstring>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/indices.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kPadValue = 1;  // sequence_pad
constexpr int kLength = 1;    // sequence_unpad
constexpr int kOut = 0;
constexpr int kLengthOut = 1;  // sequence_pad

struct SequencePadAttrs {
  int64_t padded_length = -1;
};

SequencePadAttrs ReadSequencePadAttrs(AttrReader& reader) {
  return {reader.Int("padded_length", -1)};
}

void InferPadDTypes(DTypeContext& ctx) { ctx.Set(kLengthOut, DType::kInt64); }

absl::Status InferSequencePad(InferContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(x, "X"));
  const Tensor& pad = ctx.input(kPadValue);
  if (pad.numel() != 1 && pad.numel() != RowSize(x)) {
    return InvalidArgument("input 'PadValue' is ", DescribeType(pad),
                           ", expected one element or a row of 'X' of shape ", ToString(x.shape));
  }
  const int64_t longest = LongestSequence(offsets);
  const int64_t wanted = ctx.attrs<SequencePadAttrs>().padded_length;
  if (wanted != -1 && wanted < longest) {
    return InvalidArgument("'padded_length' is ", wanted, ", expected -1 or at least ", longest,
                           ", the length of the longest sequence");
  }
  if (x.shape.rank() == kMaxRank) return InvalidArgument("input 'X' has rank ", kMaxRank);
  Shape shape = {SequenceCount(offsets), wanted == -1 ? longest : wanted};
  for (int i = 1; i < x.shape.rank(); ++i) shape.push_back(x.shape[i]);
  ctx.SetShape(kOut, shape);
  ctx.SetShape(kLengthOut, {SequenceCount(offsets)});
  return absl::OkStatus();
}

template <typename Element>
void FillPadding(const Tensor& pad, int64_t rows, int64_t row_size, Element* out) {
  const auto* const values = static_cast<const Element*>(pad.raw_data());
  if (pad.numel() == 1) {
    std::fill_n(out, rows * row_size, *values);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) out = std::copy_n(values, row_size, out);
}

absl::Status SequencePad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Offsets offsets = x.lod.back();
  Tensor& out_tensor = ctx.output(kOut);
  const int64_t length = out_tensor.shape[1];
  const int64_t row_size = RowSize(x);
  if (row_size > 0) {
    WithElementSize(x.dtype, [&](auto element) {
      using Element = decltype(element);
      const auto* const in = static_cast<const Element*>(x.raw_data());
      auto* out = static_cast<Element*>(out_tensor.mutable_raw_data());
      for (int64_t i = 0; i < SequenceCount(offsets); ++i, out += length * row_size) {
        const int64_t rows = offsets[i + 1] - offsets[i];
        std::copy_n(in + offsets[i] * row_size, rows * row_size, out);
        FillPadding(ctx.input(kPadValue), length - rows, row_size, out + rows * row_size);
      }
    });
  }
  if (Tensor* lengths = ctx.optional_output(kLengthOut)) {
    auto* const values = lengths->mutable_data<int64_t>();
    for (int64_t i = 0; i < SequenceCount(offsets); ++i) values[i] = offsets[i + 1] - offsets[i];
  }
  return absl::OkStatus();
}

absl::Status InferSequenceUnpad(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const Tensor& length = ctx.input(kLength);
  if (x.rank() < 2 || length.numel() != x[0]) {
    return InvalidArgument("inputs 'X' ", ToString(x), " and 'Length' ", ToString(length.shape),
                           ": expected a batch [N,L,...] and N lengths");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, InferContext::Integers(length));
  std::vector<int64_t> level = {0};
  level.reserve(lengths.size() + 1);
  for (const int64_t rows : lengths) {
    if (rows < 0 || rows > x[1]) {
      return InvalidArgument("input 'Length' has the value ", rows, ", expected 0 to ", x[1],
                             ", the rows of a batch of 'X'");
    }
    INTERP_ASSIGN_OR_RETURN(const int64_t end, CheckedSum(level.back(), rows));
    level.push_back(end);
  }
  Shape shape = {level.back()};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(x[i]);
  if (x.rank() == 2) shape.push_back(1);
  ctx.SetShape(kOut, shape);
  ctx.output(kOut).lod.push_back(std::move(level));
  return absl::OkStatus();
}

absl::Status SequenceUnpad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  Tensor& out_tensor = ctx.output(kOut);
  const Offsets offsets = out_tensor.lod.back();
  const auto row_bytes = RowSize(out_tensor) * static_cast<int64_t>(SizeOf(x.dtype));
  if (out_tensor.numel() == 0) return absl::OkStatus();
  const char* in = static_cast<const char*>(x.raw_data());
  char* const out = static_cast<char*>(out_tensor.mutable_raw_data());
  for (int64_t i = 0; i < SequenceCount(offsets); ++i, in += x.shape[1] * row_bytes) {
    std::memcpy(out + offsets[i] * row_bytes, in, (offsets[i + 1] - offsets[i]) * row_bytes);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_pad",
    .inputs = {{"X"}, {"PadValue"}},
    .outputs = {{"Out"}, {"Length", kOptional}},
    .parse = ParseAttrs<SequencePadAttrs, ReadSequencePadAttrs>,
    .infer_dtype = InferPadDTypes,
    .infer = InferSequencePad,
    .kernels = {{DType::kUndefined, SequencePad}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_unpad",
    .inputs = {{"X"}, {"Length", kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .infer = InferSequenceUnpad,
    .kernels = {{DType::kUndefined, SequenceUnpad}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
