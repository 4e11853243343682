#include "kernels/conv/deformable_conv.h"

namespace interp::nn {
namespace {

absl::Status CheckSamples(const Tensor& tensor, absl::string_view name, const Shape& expected) {
  if (tensor.shape == expected) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(tensor), ", expected ",
                         ToString(expected));
}

}  // namespace

DeformableAttrs ReadDeformable(AttrReader& reader) {
  DeformableAttrs attrs = {ReadConv2dAttrs(reader), reader.Int("deformable_groups", 1)};
  if (attrs.deformable_groups < 1) {
    reader.Fail(absl::StrCat("attribute 'deformable_groups' is ", attrs.deformable_groups));
  }
  return attrs;
}

absl::StatusOr<ConvProblem> ResolveDeformable(const OpContext& ctx) {
  const Shape& input = ctx.input(kDeformableInput).shape;
  if (input.rank() != 4) {
    return InvalidArgument("input 'Input' has shape ", ToString(input), ", expected 4 dims");
  }
  return ResolveConv(ctx.attrs<DeformableAttrs>().conv, input, ctx.input(kDeformableFilter).shape);
}

absl::StatusOr<ConvProblem> CheckDeformable(const OpContext& ctx) {
  const int64_t groups = ctx.attrs<DeformableAttrs>().deformable_groups;
  INTERP_ASSIGN_OR_RETURN(const ConvProblem p, ResolveDeformable(ctx));
  if (p.in_channels % groups != 0) {
    return InvalidArgument("attribute 'deformable_groups' is ", groups, " for ", p.in_channels,
                           " channels");
  }
  const int64_t positions = p.window[0].kernel * p.window[1].kernel * groups;
  const int64_t height = p.window[0].out;
  const int64_t width = p.window[1].out;
  INTERP_RETURN_IF_ERROR(CheckSamples(ctx.input(kDeformableOffset), "Offset",
                                      {p.batch, 2 * positions, height, width}));
  if (ctx.has_input(kDeformableMask)) {
    INTERP_RETURN_IF_ERROR(
        CheckSamples(ctx.input(kDeformableMask), "Mask", {p.batch, positions, height, width}));
  }
  return p;
}

}  // namespace interp::nn
