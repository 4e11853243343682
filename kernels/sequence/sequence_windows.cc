#include "kernels/sequence/sequence_windows.h"

#include "kernels/util/check_shape.h"
#include "kernels/util/shape_args.h"

namespace interp::sequence_conv {
namespace {

absl::Status CheckPadding(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<SequenceConvAttrs>();
  if (!attrs.padded) return absl::OkStatus();
  const Tensor* padding = ctx.optional_input(kPaddingData);
  if (padding == nullptr) {
    return InvalidArgument("input 'PaddingData' is missing, but 'paddingTrainable' is true");
  }
  const Shape expected = {attrs.rows_before() + attrs.rows_behind(), ctx.input(kX).shape[1]};
  return CheckInputShape(*padding, "PaddingData", expected);
}

}  // namespace

SequenceConvAttrs ReadSequenceConvAttrs(AttrReader& reader) {
  SequenceConvAttrs attrs;
  attrs.length = reader.Int("contextLength", 0);
  attrs.start = reader.Int("contextStart", 0);
  attrs.padded = reader.Bool("paddingTrainable", false);
  const int32_t stride = reader.Int("contextStride", 1);
  if (attrs.length < 1) {
    reader.Fail(absl::StrCat("'contextLength' is ", attrs.length, ", expected at least 1"));
  }
  if (stride != 1) reader.Fail(absl::StrCat("'contextStride' is ", stride, ", expected 1"));
  return attrs;
}

absl::Status CheckInputs(const OpContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Shape& filter = ctx.input(kFilter).shape;
  if (x.shape.rank() != 2 || filter.rank() != 2) {
    return InvalidArgument("inputs 'X' ", ToString(x.shape), " and 'Filter' ", ToString(filter),
                           " must be matrices");
  }
  INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(x, "X").status());
  const int64_t length = ctx.attrs<SequenceConvAttrs>().length;
  INTERP_ASSIGN_OR_RETURN(const int64_t depth, CheckedProduct(length, x.shape[1]));
  if (filter[0] != depth) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter), ", expected ", depth,
                           " rows: 'contextLength' ", length, " times the width of 'X'");
  }
  return CheckPadding(ctx);
}

}  // namespace interp::sequence_conv
