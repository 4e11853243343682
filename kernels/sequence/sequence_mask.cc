// sequence_mask: Y[..., j] = j < X[...] for j below the length asked for: MaxLenTensor, else the
// attribute `maxlen`, else the largest X.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/op_def.h"
#include "kernels/sequence/count_below.h"
#include "kernels/util/indices.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kMaxLenTensor = 1;
constexpr int kY = 0;

struct SequenceMaskAttrs {
  int64_t maxlen = -1;
  DType dtype = DType::kInt64;
};

SequenceMaskAttrs ReadSequenceMaskAttrs(AttrReader& reader) {
  SequenceMaskAttrs attrs = {reader.Int("maxlen", -1), reader.Type("out_dtype", DType::kInt64)};
  if (attrs.maxlen == 0) reader.Fail("'maxlen' is 0, expected a length or -1");
  return attrs;
}

void InferDTypes(DTypeContext& ctx) { ctx.Set(kY, ctx.attrs<SequenceMaskAttrs>().dtype); }

// The largest value as a length: its fraction is cut off.
template <typename T>
absl::StatusOr<int64_t> LargestValue(const T* x, int64_t count) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T kMost = int64_t{1} << 40;  // far below what int64 cannot hold
    if (largest > kMost) return InvalidArgument("input 'X' has the value ", largest);
  }
  return static_cast<int64_t>(largest);
}

template <typename Body>
auto WithValues(const Tensor& x, const Body& body) {
  switch (x.dtype) {
    case DType::kInt32:
      return body(x.data<int32_t>());
    case DType::kInt64:
      return body(x.data<int64_t>());
    case DType::kFloat32:
      return body(x.data<float>());
    default:
      return body(x.data<double>());
  }
}

absl::StatusOr<int64_t> MaskLength(const OpContext& ctx) {
  if (ctx.has_input(kMaxLenTensor)) {
    INTERP_ASSIGN_OR_RETURN(const int64_t length,
                            ReadInteger(ctx, kMaxLenTensor, "MaxLenTensor", 0));
    if (length < 1) {
      return InvalidArgument("input 'MaxLenTensor' is ", length, ", expected at least 1");
    }
    return length;
  }
  const int64_t length = ctx.attrs<SequenceMaskAttrs>().maxlen;
  if (length > 0) return length;
  const Tensor& x = ctx.input(kX);
  return WithValues(x, [&](const auto* values) { return LargestValue(values, x.numel()); });
}

absl::Status InferSequenceMask(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() == kMaxRank) return InvalidArgument("input 'X' has rank ", kMaxRank, " already");
  INTERP_ASSIGN_OR_RETURN(const int64_t length, MaskLength(ctx));
  Shape shape = x;
  shape.push_back(length);
  ctx.SetShape(kY, shape);
  return absl::OkStatus();
}

template <typename T>
absl::Status SequenceMask(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const T* const lengths = x.data<T>();
  const int64_t count = x.numel();
  Tensor& y = ctx.output(kY);
  const int64_t width = y.shape.back();
  const ScalarBytes one_bytes = ToScalarBytes(y.dtype, int64_t{1});
  WithElementSize(y.dtype, [&](auto element) {
    using Element = decltype(element);
    Element one;
    std::memcpy(&one, one_bytes.bytes.data(), sizeof(one));
    auto* out = static_cast<Element*>(y.mutable_raw_data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t ones = CountBelow(lengths[i], width);
      out = std::fill_n(out, ones, one);
      out = std::fill_n(out, width - ones, Element{});
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "sequence_mask",
    .inputs = {{"X", kValueInInfer}, {"MaxLenTensor", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Y"}},
    .parse = ParseAttrs<SequenceMaskAttrs, ReadSequenceMaskAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferSequenceMask,
    .kernels = {{DType::kInt64, SequenceMask<int64_t>},
                {DType::kInt32, SequenceMask<int32_t>},
                {DType::kFloat32, SequenceMask<float>},
                {DType::kFloat64, SequenceMask<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
