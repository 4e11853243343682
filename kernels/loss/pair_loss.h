// Losses of two tensors of one shape, element by element: Loss[i] = op(Input[i], Target[i]).
//
// A loss is a struct with a call operator. Its attributes, if it has any, are its base `Attrs`:
//
//   struct Hinge {
//     static constexpr PairLossSlots kSlots = {"Logits", "Labels", "Loss"};
//     template <typename T>
//     T operator()(T x, T label) const { return std::max(T{0}, 1 - x * (2 * label - 1)); }
//   };
//   INTERP_REGISTER_OP(PairLossDef<Hinge>("hinge_loss", PairLossKernels<Hinge, float>(),
//   gradient));
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"

namespace interp {

struct PairLossSlots {
  absl::string_view input;
  absl::string_view target;
  absl::string_view loss;
  bool column = false;  // both inputs have the shape [n, 1]
};

namespace pair_loss {
inline constexpr int kInput = 0;
inline constexpr int kTarget = 1;
inline constexpr int kLoss = 0;
inline constexpr int64_t kGrain = 8 * 1024;  // elements: a logarithm costs more than a copy

// A loss, or the gradient of one, from its attributes.
template <typename Op>
Op Read(AttrReader& reader) {
  return Op{Op::Attrs::Read(reader)};
}
// The definition with the attributes of `Op`, if it has any.
template <typename Op>
OpDef WithAttrs(OpDef def) {
  if constexpr (!std::is_empty_v<Op>) def.parse = ParseAttrs<Op, Read<Op>>;
  return def;
}

// out[i] = op(in[i]...) for i in [0, n), where op is the Op that the attributes of `ctx` are.
template <typename Op, typename T, typename... In>
void MapElements(const KernelContext& ctx, int64_t n, T* out, const In*... in) {
  Op op = {};
  if constexpr (!std::is_empty_v<Op>) op = ctx.attrs<Op>();
  ParallelFor(ctx.num_threads(), n, kGrain, [=](int64_t begin, int64_t end) {
    const Op local = op;
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) out[i] = local(in[i]...);
  });
}
}  // namespace pair_loss

// InvalidArgument unless input `slot` has the shape [n, 1].
inline absl::Status CheckLossColumn(const InferContext& ctx, int slot, absl::string_view name) {
  const Shape& shape = ctx.input(slot).shape;
  if (shape.rank() == 2 && shape[1] == 1) return absl::OkStatus();
  return InvalidArgument("input '", name, "' has shape ", ToString(shape), ", expected [n,1]");
}

// Loss: shape and LoD of the input.
template <typename Op>
absl::Status InferPairLoss(InferContext& ctx) {
  constexpr PairLossSlots kSlots = Op::kSlots;
  INTERP_RETURN_IF_ERROR(CheckSameShape(ctx, pair_loss::kTarget, kSlots.target, 0, kSlots.input));
  if (kSlots.column) {
    INTERP_RETURN_IF_ERROR(CheckLossColumn(ctx, pair_loss::kInput, kSlots.input));
  }
  ctx.ShareShape(pair_loss::kInput, pair_loss::kLoss);
  return absl::OkStatus();
}

template <typename Op, typename T>
absl::Status PairLoss(KernelContext& ctx) {
  pair_loss::MapElements<Op>(
      ctx, ctx.input(pair_loss::kInput).numel(), ctx.output(pair_loss::kLoss).mutable_data<T>(),
      ctx.input(pair_loss::kInput).data<T>(), ctx.input(pair_loss::kTarget).data<T>());
  return absl::OkStatus();
}

template <typename Op, typename... Ts>
std::vector<KernelDef> PairLossKernels() {
  return {{DTypeOf<Ts>, PairLoss<Op, Ts>}...};
}

template <typename Op>
OpDef PairLossDef(absl::string_view type, const std::vector<KernelDef>& kernels,
                  const GradientDef& gradient) {
  return pair_loss::WithAttrs<Op>({.type = type,
                                   .inputs = {{Op::kSlots.input}, {Op::kSlots.target}},
                                   .outputs = {{Op::kSlots.loss}},
                                   .infer = InferPairLoss<Op>,
                                   .kernels = kernels,
                                   .inplace = {{pair_loss::kInput, pair_loss::kLoss}},
                                   .gradient = gradient});
}

}  // namespace interp
