// check_numerics: stats = how many numbers of `tensor` are NaN, infinite and zero; values = the
// largest, the smallest and the mean, NaNs left out of the first two. At check_nan_inf_level 0 the
// run fails where a NaN or an infinity is, at levels up to 2 these are shown on standard error
// (Paddle: standard output), from 3 on every tensor is. A file in output_dir is not written.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "core/op_def.h"
#include "kernels/util/arithmetic.h"

namespace interp {
namespace {

constexpr int kTensor = 0;
constexpr int kStats = 0;
constexpr int kValues = 1;

constexpr int64_t kAbortLevel = 0;
constexpr int64_t kAllLevel = 3;

struct CheckNumericsAttrs {
  std::string op;
  std::string variable;
  int64_t level = kAbortLevel;
};

CheckNumericsAttrs ReadCheckNumericsAttrs(AttrReader& reader) {
  return {reader.String("op_type", ""), reader.String("var_name", ""),
          reader.Int("check_nan_inf_level", kAbortLevel)};
}

absl::Status InferCheckNumerics(InferContext& ctx) {
  ctx.SetShape(kStats, {3});
  ctx.SetShape(kValues, {3});
  return absl::OkStatus();
}

void InferCheckNumericsDTypes(DTypeContext& ctx) {
  ctx.Set(kStats, DType::kInt64);
  ctx.Set(kValues, DType::kFloat32);
}

struct Numerics {
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t zeros = 0;
  double largest = -std::numeric_limits<double>::infinity();
  double smallest = std::numeric_limits<double>::infinity();
  double sum = 0;
};

template <typename T>
Numerics Count(const T* numbers, int64_t n) {
  Numerics found;
  for (int64_t i = 0; i < n; ++i) {
    const auto number = static_cast<double>(static_cast<ComputeType<T>>(numbers[i]));
    found.nans += std::isnan(number) ? 1 : 0;
    found.infinities += std::isinf(number) ? 1 : 0;
    found.zeros += number == 0 ? 1 : 0;
    found.largest = number > found.largest ? number : found.largest;
    found.smallest = number < found.smallest ? number : found.smallest;
    found.sum += number;
  }
  return found;
}

template <typename T>
absl::Status CheckNumerics(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<CheckNumericsAttrs>();
  const Tensor& tensor = ctx.input(kTensor);
  const int64_t n = tensor.numel();
  const Numerics found = Count(tensor.data<T>(), n);
  const double mean = n == 0 ? 0 : found.sum / static_cast<double>(n);
  int64_t* const stats = ctx.output(kStats).mutable_data<int64_t>();
  const int64_t counts[] = {found.nans, found.infinities, found.zeros};
  std::copy_n(counts, 3, stats);
  float* const values = ctx.output(kValues).mutable_data<float>();
  const double numbers[] = {found.largest, found.smallest, mean};
  std::transform(numbers, numbers + 3, values, [](double x) { return static_cast<float>(x); });
  const bool bad = found.nans > 0 || found.infinities > 0;
  if (!bad && attrs.level < kAllLevel) return absl::OkStatus();
  const std::string text = absl::StrFormat(
      "[op=%s, tensor=%s, dtype=%s], numel=%d, num_nan=%d, num_inf=%d, num_zero=%d, max=%e, "
      "min=%e, mean=%e",
      absl::Utf8SafeCEscape(attrs.op), absl::Utf8SafeCEscape(attrs.variable), Name(tensor.dtype), n,
      found.nans, found.infinities, found.zeros, found.largest, found.smallest, mean);
  if (bad && attrs.level == kAbortLevel) {
    return InvalidArgument("there are NaNs or infinities in ", text);
  }
  const std::string line = absl::StrCat("[PRECISION] ", bad ? "[ERROR] " : "", "in ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "check_numerics",
    .inputs = {{"tensor"}},
    .outputs = {{"stats"}, {"values"}},
    .parse = ParseAttrs<CheckNumericsAttrs, ReadCheckNumericsAttrs>,
    .infer_dtype = InferCheckNumericsDTypes,
    .infer = InferCheckNumerics,
    .kernels = {{DType::kFloat32, CheckNumerics<float>},
                {DType::kFloat64, CheckNumerics<double>},
                {DType::kFloat16, CheckNumerics<float16>}},
    .side_effect = true,
    .host_only = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
