// Definitions of optimizer ops. Slots of all of them have the same order:
//
//   inputs    Param, Grad, LearningRate, states, scalars, MasterParam, what the op has besides
//   outputs   ParamOut, states, scalars, MasterParamOut
//
// Every output is the new value of the input across it, and may be that variable itself. States
// have the shape of the parameter, scalars one element. Of merged ops each slot is a list.
#pragma once

#include <array>
#include <vector>

#include "core/op_def.h"
#include "kernels/optimizer/update.h"

namespace interp::optimizer {

inline constexpr int kParam = 0;
inline constexpr int kGrad = 1;
inline constexpr int kLearningRate = 2;
inline constexpr int kParamOut = 0;
inline constexpr int kFirstStateOut = 1;

// The input of which an output is the new value; ParamOut apart.
constexpr int InputOf(int output) { return output == kParamOut ? kParam : output + 2; }

struct SlotPair {
  absl::string_view in;
  absl::string_view out;
  int in_flags = 0;  // besides kAnyDType
  int out_flags = 0;
};

// What distinguishes the slots of an optimizer op. Constants of namespaces are template arguments.
template <size_t kStates, size_t kScalars = 0>
struct Form {
  std::array<SlotPair, kStates> states = {};
  std::array<SlotPair, kScalars> scalars = {};
  int grad_flags = 0;  // kMayBeRows
  bool lists = false;

  static constexpr int kMasterOut = static_cast<int>(kFirstStateOut + kStates + kScalars);
  static constexpr int kFirstScalarOut = static_cast<int>(kFirstStateOut + kStates);
  static constexpr int kFirstOther = InputOf(kMasterOut) + 1;  // of the inputs the op has besides
};

// Slots, dtypes, shapes and what may share memory; attributes and further inputs are added.
template <const auto& kForm>
OpDef UpdateDef(absl::string_view type, std::vector<KernelDef> kernels);

// Rows of kernels that compute in float and in double.
inline std::vector<KernelDef> UpdateKernels(KernelFn in_float, KernelFn in_double) {
  return {{DType::kFloat32, in_float},
          {DType::kFloat64, in_double},
          {DType::kFloat16, in_float},
          {DType::kBFloat16, in_float}};
}

// Checks the inputs above against each other and gives the outputs their shapes.
template <const auto& kForm>
absl::Status InferUpdate(InferContext& ctx);

// The same without the gradient, which has a form of its own.
template <const auto& kForm>
absl::Status InferUpdateButGrad(InferContext& ctx);

// Checks that an input of one element is one, if it is there at all.
absl::Status CheckScalar(const InferContext& ctx, int slot, absl::string_view name);

// Whether SkipUpdate, a bool, says that everything is to stay as it is.
absl::Status CheckSkipUpdate(const InferContext& ctx, int slot);
inline bool Skips(const KernelContext& ctx, int slot) {
  return ctx.has_input(slot) && *ctx.input(slot).data<bool>();
}

// The rate for parameter i of a list: LearningRate has one for all or one for each.
template <typename M>
M LearningRate(const KernelContext& ctx, size_t i = 0) {
  const auto rates = ctx.inputs(kLearningRate);
  return ScalarOf<M>(*rates[rates.size() == 1 ? 0 : i]);
}

// What the update of parameter i touches: the first kStates of its states.
template <typename M, const auto& kForm, size_t kStates = kForm.states.size()>
absl::StatusOr<Update<M, kStates>> CollectUpdate(const KernelContext& ctx, size_t i = 0,
                                                 MissingRows missing = MissingRows::kZero) {
  const auto operand = [&](int output) -> Operand {
    const auto in = ctx.inputs(InputOf(output));
    const auto out = ctx.outputs(output);
    return in.empty() || out.empty() ? Operand() : Operand{in[i], out[i]};
  };
  Update<M, kStates> update;
  update.param = operand(kParamOut);
  for (size_t k = 0; k < kStates; ++k) {
    update.states[k] = operand(kFirstStateOut + static_cast<int>(k));
  }
  update.master = operand(kForm.kMasterOut);
  if (!InputIsRows(ctx, kGrad, i)) {
    update.gradient = Gradient<M>(*ctx.inputs(kGrad)[i]);
    return update;
  }
  const Variable& grad = *ctx.input_variables(kGrad)[i];
  INTERP_ASSIGN_OR_RETURN(update.gradient,
                          Gradient<M>::OfRows(ctx, grad, update.param.in->shape, missing));
  return update;
}

// Runs an op on its one parameter.
template <typename M, const auto& kForm, size_t kStates = kForm.states.size(), typename Rule>
absl::Status RunUpdate(KernelContext& ctx, const Rule& rule,
                       MissingRows missing = MissingRows::kZero) {
  INTERP_ASSIGN_OR_RETURN(auto update, (CollectUpdate<M, kForm, kStates>(ctx, 0, missing)));
  RunUpdates<M, kStates, Rule>(ctx.num_threads(), {{std::move(update), rule}});
  return absl::OkStatus();
}

namespace internal {

absl::Status CheckGrads(const InferContext& ctx);
absl::Status InferButGrad(InferContext& ctx, absl::Span<const SlotPair> states,
                          absl::Span<const SlotPair> scalars);
OpDef DefOf(absl::string_view type, std::vector<SlotPair> pairs, int grad_flags, int list_flags);

}  // namespace internal

template <const auto& kForm>
absl::Status InferUpdate(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(internal::CheckGrads(ctx));
  return InferUpdateButGrad<kForm>(ctx);
}

template <const auto& kForm>
absl::Status InferUpdateButGrad(InferContext& ctx) {
  return internal::InferButGrad(ctx, kForm.states, kForm.scalars);
}

template <const auto& kForm>
OpDef UpdateDef(absl::string_view type, std::vector<KernelDef> kernels) {
  std::vector<SlotPair> pairs(kForm.states.begin(), kForm.states.end());
  pairs.insert(pairs.end(), kForm.scalars.begin(), kForm.scalars.end());
  OpDef def =
      internal::DefOf(type, std::move(pairs), kForm.grad_flags, kForm.lists ? kVariadic : 0);
  def.infer_dtype = [](DTypeContext& ctx) {
    for (int out = 0; out <= kForm.kMasterOut; ++out) ctx.Set(out, ctx.input(InputOf(out)));
  };
  def.infer = InferUpdate<kForm>;
  def.kernels = std::move(kernels);
  return def;
}

}  // namespace interp::optimizer
