#include "core/kvstore/two_bit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/array/invoke.h"

namespace interp {
namespace {

constexpr int64_t kPerByte = 4;
constexpr uint8_t kPlus = 3;
constexpr uint8_t kMinus = 2;

int64_t BytesFor(int64_t count) { return (count + kPerByte - 1) / kPerByte; }

struct Attrs {
  float threshold = 0;
  Shape shape;
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs{.threshold = reader.Float("threshold", 0.5F), .shape = {}};
  const std::vector<int64_t> dims = reader.Ints("shape");
  if (dims.size() > kMaxRank) {
    reader.Fail("shape has too many dims");
  } else {
    attrs.shape = Shape(dims);
  }
  return attrs;
}

absl::Status InferCompress(InferContext& ctx) {
  const Tensor& gradient = ctx.input(0);
  if (gradient.shape != ctx.input(1).shape) {
    return InvalidArgument("a gradient ", DescribeType(gradient), " has a residual ",
                           DescribeType(ctx.input(1)));
  }
  ctx.SetShape(0, {BytesFor(gradient.numel())});
  ctx.SetShape(1, gradient.shape);
  return absl::OkStatus();
}

absl::Status Compress(KernelContext& ctx) {
  const float threshold = ctx.attrs<Attrs>().threshold;
  const float* gradient = ctx.input(0).data<float>();
  const float* residual = ctx.input(1).data<float>();
  auto* codes = ctx.output(0).mutable_data<uint8_t>();
  float* rest = ctx.output(1).mutable_data<float>();
  const int64_t count = ctx.input(0).numel();
  for (int64_t begin = 0; begin < count; begin += kPerByte) {
    uint8_t byte = 0;
    for (int64_t k = 0; k < kPerByte; ++k) {
      byte = static_cast<uint8_t>(byte << 2);
      const int64_t i = begin + k;
      if (i >= count) continue;
      const float value = residual[i] + gradient[i];
      if (!std::isfinite(value)) {
        return InvalidArgument("a gradient with ", gradient[i], ", element ", i,
                               ", which two bits do not tell");
      }
      const bool plus = value >= threshold;
      const bool minus = value <= -threshold;
      byte |= plus ? kPlus : minus ? kMinus : 0;
      rest[i] = plus ? value - threshold : minus ? value + threshold : value;
    }
    codes[begin / kPerByte] = byte;
  }
  return absl::OkStatus();
}

absl::Status InferDecompress(InferContext& ctx) {
  const Shape& shape = ctx.attrs<Attrs>().shape;
  if (!shape.CheckedNumel().has_value() || ctx.input(0).shape != Shape({BytesFor(shape.numel())})) {
    return InvalidArgument("codes ", DescribeType(ctx.input(0)), " are no values of shape ",
                           ToString(shape));
  }
  ctx.SetShape(0, shape);
  return absl::OkStatus();
}

absl::Status Decompress(KernelContext& ctx) {
  const float threshold = ctx.attrs<Attrs>().threshold;
  const auto* codes = ctx.input(0).data<uint8_t>();
  float* out = ctx.output(0).mutable_data<float>();
  const int64_t count = ctx.output(0).numel();
  for (int64_t i = 0; i < count; ++i) {
    const int shift = 2 * static_cast<int>(kPerByte - 1 - i % kPerByte);
    const int code = (codes[i / kPerByte] >> shift) & 3;
    out[i] = code == kPlus ? threshold : code == kMinus ? -threshold : 0.0F;
  }
  return absl::OkStatus();
}

}  // namespace

const OpDef& CompressDef() {
  static const auto* const kDef =
      new OpDef{.type = "compress_2bit",
                .inputs = {{"Grad"}, {"Residual"}},
                .outputs = {{"Codes"}, {"ResidualOut"}},
                .parse = ParseAttrs<Attrs, ReadAttrs>,
                .infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, DType::kUInt8); },
                .infer = InferCompress,
                .kernels = {{DType::kFloat32, Compress}},
                .inplace = {{1, 1}}};
  return *kDef;
}

const OpDef& DecompressDef() {
  static const auto* const kDef =
      new OpDef{.type = "decompress_2bit",
                .inputs = {{"Codes"}},
                .outputs = {{"Out"}},
                .parse = ParseAttrs<Attrs, ReadAttrs>,
                .infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, DType::kFloat32); },
                .infer = InferDecompress,
                .kernels = {{DType::kUInt8, Decompress}}};
  return *kDef;
}

// An overwrite by name: it runs whatever has spoilt the residual, which is good afterwards. One
// that was good is left as it is.
absl::Status RenewIfSpoilt(const Array& residual, int32_t priority) {
  const engine::Variable written = residual.variable();
  ArrayAccess::CountWrite(residual);
  return residual.runtime().engine().Push(
      [residual](const engine::RunContext& context) -> absl::Status {
        if (!residual.runtime().engine().ErrorOf(residual.variable())) return absl::OkStatus();
        INTERP_ASSIGN_OR_RETURN(Tensor zeros,
                                ArrayAccess::Writable(residual, /*overwrites=*/true, context));
        if (context.stream == nullptr) {
          std::memset(zeros.mutable_raw_data(), 0, zeros.size_bytes());
          return absl::OkStatus();
        }
        residual.runtime().RecordUse(zeros.buffer(), context);
        return context.stream->Fill(zeros.mutable_raw_data(), 0, zeros.size_bytes());
      },
      {.writes = {&written, 1}},
      {.name = "renew residual", .place = residual.place(), .priority = priority});
}

absl::StatusOr<Array> ValuesOfCodes(const Array& codes, const Shape& shape, float threshold,
                                    int32_t priority) {
  const absl::Span<const int64_t> dims = shape.dims();
  return First(Invoke(codes.runtime(), DecompressDef(), {{"Codes", {codes}}},
                      {{.name = "threshold", .value = threshold},
                       {.name = "shape", .value = std::vector<int64_t>(dims.begin(), dims.end())}},
                      {.priority = priority}));
}

Shape ShapeOfCodes(const Shape& shape) { return {BytesFor(shape.numel())}; }

}  // namespace interp
