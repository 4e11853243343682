#include "kernels/recurrent/lstm_attrs.h"

#include "kernels/recurrent/step_order.h"
#include "kernels/util/check_shape.h"

namespace interp::recurrent {

LstmAttrs ReadLstm(AttrReader& reader) {
  LstmAttrs attrs;
  attrs.peepholes = reader.Bool("use_peepholes", true);
  attrs.reverse = reader.Bool("is_reverse", false);
  attrs.test = reader.Bool("is_test", false);
  attrs.gate = ReadActivation(reader, "gate_activation", CellActivation::kSigmoid);
  attrs.cell = ReadActivation(reader, "cell_activation", CellActivation::kTanh);
  attrs.candidate = ReadActivation(reader, "candidate_activation", CellActivation::kTanh);
  return attrs;
}

LstmAttrs ReadLstmp(AttrReader& reader) {
  LstmAttrs attrs = ReadLstm(reader);
  attrs.projected = true;
  attrs.projection = ReadActivation(reader, "proj_activation", CellActivation::kTanh);
  if (attrs.projection != CellActivation::kIdentity) attrs.projection = attrs.cell;
  attrs.cell_clip = reader.Float("cell_clip", 0);
  attrs.projection_clip = reader.Float("proj_clip", 0);
  return attrs;
}

absl::StatusOr<LstmSizes> CheckLstmInputs(const InferContext& ctx, const Tensor* projection) {
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, GateSequences(ctx.input(kLstmInput), 4));
  const int64_t size = ctx.input(kLstmInput).shape[1] / 4;
  LstmSizes sizes = {SequenceCount(offsets), size, size};
  if (projection != nullptr) {
    const Shape& shape = projection->shape;
    if (shape.rank() != 2 || shape[0] != size || shape[1] < 1) {
      return InvalidArgument("input 'ProjWeight' has shape ", ToString(shape), ", expected [", size,
                             ",P] with P > 0");
    }
    sizes.width = shape[1];
  }
  const int64_t biases = ctx.attrs<LstmAttrs>().peepholes ? 7 : 4;
  INTERP_RETURN_IF_ERROR(
      CheckInputShape(ctx.input(kLstmWeight), "Weight", {sizes.width, 4 * size}));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kLstmBias), "Bias", {1, biases * size}));
  if (ctx.has_input(kLstmH0) && !ctx.has_input(kLstmC0)) {
    return InvalidArgument("input 'H0' is given without 'C0'");
  }
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kLstmH0, "H0", {sizes.sequences, sizes.width}));
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kLstmC0, "C0", {sizes.sequences, size}));
  return sizes;
}

absl::StatusOr<Shape> CheckLstmUnitInputs(const InferContext& ctx) {
  const Shape& x = ctx.input(kLstmUnitX).shape;
  if (x.rank() != 2 || x[1] % 4 != 0) {
    return InvalidArgument("input 'X' has shape ", ToString(x),
                           ", expected [batch, columns] with a multiple of 4 columns");
  }
  const Shape state = {x[0], x[1] / 4};
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kLstmUnitCPrev, "C_prev", state));
  return state;
}

}  // namespace interp::recurrent
