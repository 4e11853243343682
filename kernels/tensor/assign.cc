// assign, share_data, rnn_memory_helper: Out = X, any dtype; share_data leaves the LoD behind, and
// rnn_memory_helper (before Paddle 2.6) marks the states of `recurrent`. The copy is left out where
// both already share memory. assign also takes arrays: the elements of Out share the memory
// of those of X and, as in Paddle 2.6, have no LoD. Selected rows are copied.
// npu_identity: out = x, whose memory formats (`format`) are those of one kind of device alone.
// depend: Out = X once all of Dep are there.
#include "core/op_def.h"
#include "kernels/util/data_mover.h"
#include "kernels/util/gradient_op.h"
#include "kernels/util/infer_like.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;

absl::Status InferShareData(InferContext& ctx) {
  ctx.SetShape(kOut, ctx.input(kX).shape);
  return absl::OkStatus();
}

// An array has no memory of its own, and a tensor no elements.
void AssignElements(KernelContext& ctx) {
  std::vector<Tensor>& out = ctx.output_array(kOut);
  out = ctx.input_array(kX);
  for (Tensor& element : out) element.lod.clear();
}

absl::Status Assign(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(GiveRowsOf(ctx, kX, kOut));
  const Tensor& x = ctx.input(kX);
  Tensor& out = ctx.output(kOut);
  if (x.raw_data() != out.raw_data()) INTERP_RETURN_IF_ERROR(CopyTensor(ctx, x, out));
  if (!x.has_memory()) AssignElements(ctx);
  return absl::OkStatus();
}

// The gradient is assigned back.
absl::Status MakeAssignGradient(GradientMaker& maker) {
  return AddGradientOp(maker, "assign", {{"X", "Out@GRAD"}}, {{"Out", "X@GRAD"}});
}

OpDef AssignDef(absl::string_view type, int flags, absl::Status (*infer)(InferContext&),
                GradientDef gradient) {
  return OpDef{
      .type = type,
      .inputs = {{"X", flags}},
      .outputs = {{"Out", flags}},
      .infer = infer,
      .kernels = MoveKernels(Assign),
      .layout = LayoutRule::kFollows,
      .inplace = {{kX, kOut}},
      .gradient = std::move(gradient),
  };
}

INTERP_REGISTER_OP(AssignDef("assign", kMayBeArray | kMayBeRows, InferLike<kX, kOut>,
                             {.make = MakeAssignGradient}));
INTERP_REGISTER_OP(AssignDef("rnn_memory_helper", /*flags=*/0, InferLike<kX, kOut>,
                             {.inputs = {"X", "Out", "Out@GRAD"}, .outputs = {"X@GRAD"}}));
// Paddle 2.6 makes no gradient of it either.
INTERP_REGISTER_OP(AssignDef("share_data", /*flags=*/0, InferShareData, {}));

// Paddle makes no gradient of it either.
OpDef NpuIdentityDef() {
  OpDef def = AssignDef("npu_identity", /*flags=*/0, InferLike<kX, kOut>, {});
  def.inputs[kX].name = "x";
  def.outputs[kOut].name = "out";
  return def;
}
INTERP_REGISTER_OP(NpuIdentityDef());

OpDef DependDef() {
  OpDef def = AssignDef("depend", /*flags=*/0, InferLike<kX, kOut>, {.none = true});
  def.inputs.push_back({"Dep", kVariadic | kNoNeedBuffer | kAnyDType | kAnyLayout});
  return def;
}
INTERP_REGISTER_OP(DependDef());

}  // namespace
}  // namespace interp
