#include "kernels/math/composed_activation.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;
constexpr int kIntermediate = 1;

bool IsBinary(const std::string& name) {
  return name == "elementwise_add" || name == "elementwise_mul";
}

bool FindUnary(const std::string& name, ComposedUnary& unary) {
  static const auto& kinds =
      *new std::map<std::string, ComposedUnary>{{"scale", ComposedUnary::kScale},
                                                {"relu", ComposedUnary::kRelu},
                                                {"tanh", ComposedUnary::kTanh},
                                                {"sigmoid", ComposedUnary::kSigmoid},
                                                {"gelu", ComposedUnary::kGelu}};
  const auto found = kinds.find(name);
  if (found == kinds.end()) return false;
  unary = found->second;
  return true;
}

absl::Status InferComposed(InferContext& ctx) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  INTERP_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape, y.shape, attrs.axis));
  const bool y_is_whole = y.shape == shape && x.shape != shape;
  ctx.ShareShape(y_is_whole ? kY : kX, kOut);
  ctx.output(kOut).shape = shape;
  Tensor* const intermediate = ctx.optional_output(kIntermediate);
  if (intermediate == nullptr) return absl::OkStatus();
  if (!attrs.keeps_intermediate) {
    ctx.SetShape(kIntermediate, {0});
    return absl::OkStatus();
  }
  const Tensor& like = attrs.unary_outside ? ctx.output(kOut) : y;
  intermediate->shape = like.shape;
  intermediate->lod = like.lod;
  return absl::OkStatus();
}

template <typename T>
absl::Status Composed(KernelContext& ctx) {
  const ComposedAttrs& attrs = ctx.attrs<ComposedAttrs>();
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  Tensor& out = ctx.output(kOut);
  Tensor* const kept = attrs.keeps_intermediate ? ctx.optional_output(kIntermediate) : nullptr;
  if (attrs.unary_outside) {
    Tensor& sum = kept != nullptr ? *kept : out;
    ApplyComposedBinary<T>(attrs, ctx.num_threads(), x, y, sum);
    ApplyComposedUnary<T>(attrs, ctx.num_threads(), sum, out);
    return absl::OkStatus();
  }
  Tensor scratch;
  if (kept == nullptr) {
    scratch.dtype = y.dtype;
    scratch.shape = y.shape;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(scratch));
  }
  Tensor& activated = kept != nullptr ? *kept : scratch;
  ApplyComposedUnary<T>(attrs, ctx.num_threads(), y, activated);
  ApplyComposedBinary<T>(attrs, ctx.num_threads(), x, activated, out);
  return absl::OkStatus();
}

// Paddle's maker adds _grad to the names of the functions.
absl::Status MakeComposedGradient(GradientMaker& maker) {
  if (!maker.Wants("X") && !maker.Wants("Y")) return absl::OkStatus();
  const Op& op = maker.op();
  const ArgIds out_grad = maker.OutputGradients("Out");
  const ArgIds x_grad = maker.InputGradients("X");
  const ArgIds y_grad = maker.InputGradients("Y");
  Op& gradient = maker.Add(absl::StrCat(op.type, "_grad"));
  gradient.attrs = op.attrs;
  AttrReader reader(op);
  std::vector<std::string> functors = reader.Strings("functor_list");
  for (std::string& name : functors) name += "_grad";
  SetAttr(gradient, "functor_list", std::move(functors));
  AddInput(gradient, "X", maker.Arguments("X"));
  AddInput(gradient, "Y", maker.Arguments("Y"));
  AddInput(gradient, "Out", maker.Arguments("Out"));
  AddInput(gradient, "Out@GRAD", out_grad);
  if (reader.Bool("save_intermediate_out", false)) {
    AddInput(gradient, "IntermediateOut", maker.Arguments("IntermediateOut"));
  }
  AddOutput(gradient, "X@GRAD", x_grad);
  AddOutput(gradient, "Y@GRAD", y_grad);
  return reader.status();
}

OpDef ComposedDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"Y"}},
      .outputs = {{"Out"}, {"IntermediateOut", kOptional}},
      .parse = ParseAttrs<ComposedAttrs, ReadComposedAttrs>,
      .infer = InferComposed,
      .kernels = {{DType::kFloat32, Composed<float>}, {DType::kFloat64, Composed<double>}},
      .gradient = {.make = MakeComposedGradient},
  };
}

INTERP_REGISTER_OP(ComposedDef("fused_elemwise_activation"));
INTERP_REGISTER_OP(ComposedDef("fused_elemwise_add_activation"));

}  // namespace

ComposedAttrs ReadComposedAttrs(AttrReader& reader) {
  ComposedAttrs attrs;
  attrs.scale = reader.Float("scale", 0.0f);
  attrs.axis = reader.Int("axis", kTrailingAxis);
  attrs.keeps_intermediate = reader.Bool("save_intermediate_out", false);
  std::vector<std::string> names = reader.Strings("functor_list");
  if (absl::EndsWith(reader.op().type, "_grad")) {
    for (std::string& name : names) name = std::string(absl::StripSuffix(name, "_grad"));
  }
  if (names.size() == 2) {
    attrs.unary_outside = IsBinary(names[1]);
    const std::string& binary = names[attrs.unary_outside ? 1 : 0];
    attrs.multiplies = binary == "elementwise_mul";
    const std::string& unary = names[attrs.unary_outside ? 0 : 1];
    if (IsBinary(binary) && FindUnary(unary, attrs.unary)) return attrs;
  }
  reader.Fail(absl::StrCat("attribute 'functor_list' is [", absl::StrJoin(names, ", "),
                           "], expected one of elementwise_add and elementwise_mul, and one of "
                           "scale, relu, tanh, sigmoid and gelu"));
  return attrs;
}

}  // namespace interp
