// cast: Out = X as the dtype `out_dtype`. See Convert for values that do not fit.
#include "kernels/math/unary.h"
#include "kernels/util/convert_elements.h"

namespace interp {
namespace {

using unary::kOut;

struct CastAttrs {
  DType out_dtype;
};

CastAttrs ReadCastAttrs(AttrReader& attrs) {
  const DType out_dtype = attrs.Type("out_dtype", DType::kUndefined);
  if (out_dtype == DType::kUndefined) attrs.Fail("attribute 'out_dtype' is missing");
  return {out_dtype};
}

template <typename From, typename To>
struct ConvertTo {
  // By the element, not by MapUnary's compute type: 64-bit integers must not pass through a float.
  static void Run(KernelContext& ctx) {
    ConvertElements(ctx.num_threads(), ctx.input(unary::kX).data<From>(), ctx.output(kOut).numel(),
                    ctx.output(kOut).mutable_data<To>());
  }
};

template <typename From>
absl::Status Cast(KernelContext& ctx) {
  switch (ctx.output(kOut).dtype) {
    case DType::kBool:
      ConvertTo<From, bool>::Run(ctx);
      break;
    case DType::kInt16:
      ConvertTo<From, int16_t>::Run(ctx);
      break;
    case DType::kInt32:
      ConvertTo<From, int32_t>::Run(ctx);
      break;
    case DType::kInt64:
      ConvertTo<From, int64_t>::Run(ctx);
      break;
    case DType::kFloat16:
      ConvertTo<From, float16>::Run(ctx);
      break;
    case DType::kBFloat16:
      ConvertTo<From, bfloat16>::Run(ctx);
      break;
    case DType::kFloat32:
      ConvertTo<From, float>::Run(ctx);
      break;
    case DType::kFloat64:
      ConvertTo<From, double>::Run(ctx);
      break;
    case DType::kUInt8:
      ConvertTo<From, uint8_t>::Run(ctx);
      break;
    case DType::kInt8:
      ConvertTo<From, int8_t>::Run(ctx);
      break;
    default:
      return Unimplemented("cast to ", Name(ctx.output(kOut).dtype), " is not supported");
  }
  return absl::OkStatus();
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
  OpDef def = PlainUnaryDef("cast", CastKernels<bool, int16_t, int32_t, int64_t, float16, bfloat16,
                                                float, double, uint8_t, int8_t>());
  def.parse = ParseAttrs<CastAttrs, ReadCastAttrs>;
  def.infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ctx.attrs<CastAttrs>().out_dtype); };
  def.inplace = {};
  def.gradient = {.make = MakeGradient};
  return def;
}

INTERP_REGISTER_OP(CastDef());

}  // namespace
}  // namespace interp
