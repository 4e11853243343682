// lod_reset: Out = X with another LoD: that of Y, else the offsets that Y lists, else those of
// `target_lod`. Offsets replace all levels of X or, with `append`, become its lowest.
#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/data_mover.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kOut = 0;

struct LodResetAttrs {
  std::vector<int64_t> target_lod;
  bool append = false;
};

LodResetAttrs ReadLodResetAttrs(AttrReader& reader) {
  return {reader.Ints("target_lod"), reader.Bool("append", false)};
}

absl::StatusOr<Lod> NewLod(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<LodResetAttrs>();
  const Tensor* const y = ctx.optional_input(kY);
  if (y != nullptr && !y->lod.empty()) return y->lod;
  Lod lod;
  if (attrs.append) lod = ctx.input(kX).lod;
  if (y == nullptr) {
    lod.push_back(attrs.target_lod);
    return lod;
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, InferContext::Integers(*y));
  lod.push_back(std::move(offsets));
  return lod;
}

absl::Status InferLodReset(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Lod lod, NewLod(ctx));
  const Shape& shape = ctx.input(kX).shape;
  INTERP_RETURN_IF_ERROR(
      Annotate(CheckLod(lod, shape), absl::StrCat("new LoD for 'X' of shape ", ToString(shape))));
  ctx.output(kOut).shape = shape;
  ctx.output(kOut).lod = std::move(lod);
  return absl::OkStatus();
}

absl::Status LodReset(KernelContext& ctx) {
  return CopyUnlessShared(ctx, ctx.input(kX), ctx.output(kOut));
}

INTERP_REGISTER_OP(OpDef{
    .type = "lod_reset",
    .inputs = {{"X"}, {"Y", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<LodResetAttrs, ReadLodResetAttrs>,
    .infer = InferLodReset,
    .kernels = MoveKernels(LodReset),
    .view = {{kX, kOut}},
    .gradient = {.inputs = {"X", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
