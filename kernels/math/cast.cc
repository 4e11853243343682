// cast: Out = X as the dtype `out_dtype`. See Convert for values that do not fit.
#include "kernels/math/cast.h"

#include <complex>
#include <type_traits>

#include "core/element_types.h"
#include "kernels/complex/complex_dtype.h"
#include "kernels/math/unary.h"
#include "kernels/util/convert_elements.h"

namespace interp {
namespace {

using unary::kOut;

// Of a complex number the real part stays; it is true unless it is 0.
template <typename From, typename To>
void ConvertParts(int num_threads, const From* from, int64_t n, To* to) {
  ParallelFor(num_threads, n, kElementwiseGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<To, bool>) {
        to[i] = from[i] != From{0};
      } else {
        to[i] = Convert<To>(from[i].real());
      }
    }
  });
}

// By the element, not by MapUnary's compute type: 64-bit integers must not pass through a float.
template <typename From>
absl::Status Cast(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  const From* const from = ctx.input(unary::kX).data<From>();
  const auto convert = [&]<typename To>() {
    To* const to = out.mutable_data<To>();
    if constexpr (kIsComplex<From> && !kIsComplex<To>) {
      ConvertParts(ctx.num_threads(), from, out.numel(), to);
    } else {
      ConvertElements(ctx.num_threads(), from, out.numel(), to);
    }
  };
  if (WithElement(out.dtype, convert)) return absl::OkStatus();
  return Unimplemented("cast to ", Name(out.dtype), " is not supported");
}

template <typename... Ts>
std::vector<KernelDef> CastKernels() {
  return {{DTypeOf<Ts>, Cast<Ts>}...};
}

// A cast back to the dtype of X.
absl::Status MakeGradient(GradientMaker& maker) {
  if (!maker.Wants("X")) return absl::OkStatus();
  const Attr* from = maker.op().FindAttr("in_dtype");
  const Attr* to = maker.op().FindAttr("out_dtype");
  if (from == nullptr || to == nullptr) {
    return InvalidArgument("a gradient needs the attributes 'in_dtype' and 'out_dtype'");
  }
  Op& cast = maker.Add("cast");
  AddInput(cast, "X", maker.OutputGradients("Out"));
  AddOutput(cast, "Out", maker.InputGradients("X"));
  cast.attrs = maker.op().attrs;
  SetAttr(cast, "in_dtype", to->value);
  SetAttr(cast, "out_dtype", from->value);
  return absl::OkStatus();
}

OpDef CastDef() {
  OpDef def = PlainUnaryDef(
      "cast", CastKernels<bool, int16_t, int32_t, int64_t, float16, bfloat16, float, double,
                          uint8_t, int8_t, std::complex<float>, std::complex<double>>());
  def.parse = ParseAttrs<CastAttrs, CastAttrs::Read>;
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ctx.attrs<CastAttrs>().out_dtype); };
  def.inplace = {};
  def.gradient = {.make = MakeGradient};
  return def;
}

INTERP_REGISTER_OP(CastDef());

}  // namespace
}  // namespace interp
