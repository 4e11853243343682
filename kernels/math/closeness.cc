// isclose: Out[i] = whether |Input - Other| <= atol + rtol * |Other|; with `equal_nan` NaN is close
// to NaN. allclose: whether all are. The tolerances are numbers written as text, or tensors.
// equal_all: whether X and Y have the same shape and elements.
#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>

#include "absl/strings/numbers.h"
#include "core/op_def.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOther = 1;
constexpr int kRtol = 2;
constexpr int kAtol = 3;
constexpr int kOut = 0;

struct CloseAttrs {
  double rtol = 1e-5;
  double atol = 1e-8;
  bool equal_nan = false;
};

double ReadTolerance(AttrReader& reader, absl::string_view name, absl::string_view fallback) {
  double value = 0;
  const std::string text = reader.String(name, fallback);
  if (!absl::SimpleAtod(text, &value)) {
    reader.Fail(absl::StrCat("attribute '", name, "' is '", text, "', expected a number"));
  }
  return value;
}

CloseAttrs ReadCloseAttrs(AttrReader& reader) {
  return {ReadTolerance(reader, "rtol", "1e-5"), ReadTolerance(reader, "atol", "1e-8"),
          reader.Bool("equal_nan", false)};
}

absl::Status CheckOperands(const InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const Shape& other = ctx.input(kOther).shape;
  if (input != other) {
    return InvalidArgument("'Input' has shape ", ToString(input), " and 'Other' ", ToString(other),
                           ", expected one shape");
  }
  for (const int slot : {kRtol, kAtol}) {
    const Tensor* const tensor = ctx.optional_input(slot);
    if (tensor == nullptr || tensor->shape.CheckedNumel() == 1) continue;
    return InvalidArgument(slot == kRtol ? "'Rtol' is " : "'Atol' is ", DescribeType(*tensor),
                           ", expected one element");
  }
  return absl::OkStatus();
}

absl::Status InferIsClose(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckOperands(ctx));
  ctx.SetShape(kOut, ctx.input(kInput).shape);
  return absl::OkStatus();
}

absl::Status InferAllClose(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckOperands(ctx));
  ctx.SetShape(kOut, {});
  return absl::OkStatus();
}

absl::StatusOr<double> Tolerance(const KernelContext& ctx, int slot, double attr) {
  const Tensor* const tensor = ctx.optional_input(slot);
  if (tensor == nullptr) return attr;
  if (tensor->dtype == DType::kFloat64) return *tensor->data<double>();
  if (tensor->dtype == DType::kFloat32) return *tensor->data<float>();
  return InvalidArgument(slot == kRtol ? "'Rtol' is " : "'Atol' is ", DescribeType(*tensor),
                         ", expected float32 or float64");
}

template <typename T>
using WideOf = std::conditional_t<std::is_floating_point_v<T>, double, std::complex<double>>;

bool IsNan(double value) { return std::isnan(value); }
bool IsNan(std::complex<double> value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

// Calls take(i, close) for every element.
template <typename T, typename Take>
absl::Status Compare(const KernelContext& ctx, const Take& take) {
  const CloseAttrs& attrs = ctx.attrs<CloseAttrs>();
  INTERP_ASSIGN_OR_RETURN(const double rtol, Tolerance(ctx, kRtol, attrs.rtol));
  INTERP_ASSIGN_OR_RETURN(const double atol, Tolerance(ctx, kAtol, attrs.atol));
  const T* const input = ctx.input(kInput).data<T>();
  const T* const other = ctx.input(kOther).data<T>();
  const int64_t count = ctx.input(kInput).numel();
  for (int64_t i = 0; i < count; ++i) {
    const auto a = static_cast<WideOf<T>>(input[i]);
    const auto b = static_cast<WideOf<T>>(other[i]);
    if (IsNan(a) || IsNan(b)) {
      take(i, attrs.equal_nan && IsNan(a) && IsNan(b));
      continue;
    }
    // Like Paddle's, all numbers are close to infinity.
    const double distance = std::abs(a - b);
    const double limit = atol + rtol * std::abs(b);
    take(i, a == b || distance <= limit || std::abs(distance - limit) <= 1e-15);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status IsClose(KernelContext& ctx) {
  bool* const out = ctx.output(kOut).mutable_data<bool>();
  return Compare<T>(ctx, [out](int64_t i, bool close) { out[i] = close; });
}

template <typename T>
absl::Status AllClose(KernelContext& ctx) {
  bool& out = *ctx.output(kOut).mutable_data<bool>();
  out = true;
  return Compare<T>(ctx, [&out](int64_t, bool close) { out = out && close; });
}

void SetBool(DTypeContext& ctx) { ctx.Set(kOut, DType::kBool); }

OpDef CloseDef(absl::string_view type, absl::Status (*infer)(InferContext&),
               std::vector<KernelDef> kernels) {
  return OpDef{
      .type = type,
      .inputs = {{"Input"},
                 {"Other"},
                 {"Rtol", kOptional | kAnyDType},
                 {"Atol", kOptional | kAnyDType}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<CloseAttrs, ReadCloseAttrs>,
      .infer_dtype = SetBool,
      .infer = infer,
      .kernels = std::move(kernels),
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(CloseDef("isclose", InferIsClose,
                            {{DType::kFloat32, IsClose<float>},
                             {DType::kFloat64, IsClose<double>},
                             {DType::kComplex64, IsClose<std::complex<float>>},
                             {DType::kComplex128, IsClose<std::complex<double>>}}));
INTERP_REGISTER_OP(CloseDef("allclose", InferAllClose,
                            {{DType::kFloat32, AllClose<float>},
                             {DType::kFloat64, AllClose<double>}}));

absl::Status InferEqualAll(InferContext& ctx) {
  ctx.SetShape(kOut, {});
  return absl::OkStatus();
}

template <typename T>
absl::Status EqualAll(KernelContext& ctx) {
  const Tensor& x = ctx.input(kInput);
  const Tensor& y = ctx.input(kOther);
  const T* const values = static_cast<const T*>(x.raw_data());
  *ctx.output(kOut).mutable_data<bool>() =
      x.shape == y.shape &&
      std::equal(values, values + x.numel(), static_cast<const T*>(y.raw_data()));
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "equal_all",
    .inputs = {{"X"}, {"Y"}},
    .outputs = {{"Out"}},
    .infer_dtype = SetBool,
    .infer = InferEqualAll,
    .kernels = {{DType::kFloat32, EqualAll<float>},
                {DType::kFloat64, EqualAll<double>},
                {DType::kInt32, EqualAll<int32_t>},
                {DType::kInt64, EqualAll<int64_t>},
                {DType::kBool, EqualAll<uint8_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
