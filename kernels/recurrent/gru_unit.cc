// gru_unit: one step of gru (see there) for a batch of states.
#include <optional>

#include "kernels/recurrent/gru_attrs.h"
#include "kernels/recurrent/gru_cell.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"

namespace interp::recurrent {
namespace {

constexpr int kInput = kGruUnitInput;
constexpr int kHiddenPrev = kGruUnitHiddenPrev;
constexpr int kWeight = kGruUnitWeight;
constexpr int kBias = 3;
constexpr int kGate = 0;
constexpr int kResetHiddenPrev = 1;
constexpr int kHidden = 2;

absl::Status InferGruUnit(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape state, CheckGruUnitInputs(ctx));
  const Shape& gates = ctx.input(kInput).shape;
  INTERP_RETURN_IF_ERROR(CheckOptionalShape(ctx, kBias, "Bias", {1, gates[1]}));
  ctx.SetShape(kGate, gates);
  ctx.SetShape(kResetHiddenPrev, state);
  ctx.SetShape(kHidden, state);
  return absl::OkStatus();
}

template <typename T>
struct GruUnitState : KernelState {
  PackedWeights<T> weight;
};

// gates = input + bias
template <typename T>
void LoadGates(const T* input, const T* bias, int64_t rows, int64_t columns, T* gates) {
  for (int64_t i = 0; i < rows; ++i, input += columns, gates += columns) {
    if (bias == nullptr) {
      std::copy_n(input, columns, gates);
    } else {
      for (int64_t j = 0; j < columns; ++j) gates[j] = input[j] + bias[j];
    }
  }
}

template <typename T>
absl::Status GruUnit(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<GruAttrs>();
  const int64_t batch = ctx.input(kHiddenPrev).shape[0];
  const int64_t size = ctx.input(kHiddenPrev).shape[1];
  std::optional<Workspace> packed;
  INTERP_ASSIGN_OR_RETURN(const T* weight, ctx.state<GruUnitState<T>>().weight.Get(
                                               ctx, kWeight, GruCell<T>::Parts(size), packed));
  GruCell<T> cell = {size, attrs.gate, attrs.candidate, attrs.origin_mode};
  cell.SetWeights(weight);
  const Tensor* bias = ctx.optional_input(kBias);
  const T* const b = DataOrNull<T>(bias);
  const T* const input = ctx.input(kInput).data<T>();
  const T* const h = ctx.input(kHiddenPrev).data<T>();
  T* const gates = ctx.output(kGate).mutable_data<T>();
  T* const reset = ctx.output(kResetHiddenPrev).mutable_data<T>();
  T* const hidden = ctx.output(kHidden).mutable_data<T>();
  constexpr int64_t kGrain = 4;  // rows; products of fewer wait for memory
  ParallelFor(ctx.num_threads(), batch, kGrain, [&](int64_t begin, int64_t end) {
    LoadGates(input + begin * 3 * size, b, end - begin, 3 * size, gates + begin * 3 * size);
    cell.Step(end - begin, h + begin * size, gates + begin * 3 * size, reset + begin * size,
              hidden + begin * size);
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "gru_unit",
    .inputs = {{"Input"}, {"HiddenPrev"}, {"Weight"}, {"Bias", kOptional}},
    .outputs = {{"Gate"}, {"ResetHiddenPrev"}, {"Hidden"}},
    .parse = ParseAttrs<GruAttrs, ReadGruUnit>,
    .infer = InferGruUnit,
    .kernels = {{DType::kFloat32, GruUnit<float>}, {DType::kFloat64, GruUnit<double>}},
    .gradient = {.inputs = {"Input", "HiddenPrev", "Weight", "Bias", "ResetHiddenPrev", "Gate",
                            "Hidden@GRAD"},
                 .outputs = {"Input@GRAD", "HiddenPrev@GRAD", "Weight@GRAD", "Bias@GRAD"}},
    .flops = ProductFlops<kHiddenPrev, kWeight>,
});

}  // namespace
}  // namespace interp::recurrent
