// lstm_unit_grad: the formulas are in lstm_unit.cc. The gates are computed again: X is the only
// thing the forward op leaves of them.
#include "core/op_def.h"
#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp::recurrent {
namespace {

constexpr int kX = kLstmUnitX;
constexpr int kCPrev = kLstmUnitCPrev;
constexpr int kC = 2;
constexpr int kCGrad = 3;
constexpr int kHGrad = 4;
constexpr int kXGrad = 0;
constexpr int kCPrevGrad = 1;

absl::Status InferLstmUnitGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape state, CheckLstmUnitInputs(ctx));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kC), "C", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kCGrad), "C@GRAD", state));
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx.input(kHGrad), "H@GRAD", state));
  ctx.ShareShape(kX, kXGrad);
  ctx.ShareShape(kCPrev, kCPrevGrad);
  return absl::OkStatus();
}

// One row of everything.
template <typename T>
struct UnitRow {
  const T* x;
  const T* before;
  const T* c;
  const T* c_grad;
  const T* h_grad;
  T* x_grad;       // may be null
  T* before_grad;  // may be null
};

template <typename T>
void StepRowBack(int64_t size, T forget_bias, const UnitRow<T>& row) {
  for (int64_t j = 0; j < size; ++j) {
    const T input = Sigmoid(row.x[j]);
    const T forget = Sigmoid(row.x[size + j] + forget_bias);
    const T output = Sigmoid(row.x[2 * size + j]);
    const T candidate = Tanh(row.x[3 * size + j]);
    const T active = Tanh(row.c[j]);
    const T dc = row.c_grad[j] + row.h_grad[j] * output * (T{1} - active * active);
    if (row.before_grad != nullptr) row.before_grad[j] = dc * forget;
    if (row.x_grad == nullptr) continue;
    row.x_grad[j] = dc * candidate * input * (T{1} - input);
    row.x_grad[size + j] = dc * row.before[j] * forget * (T{1} - forget);
    row.x_grad[2 * size + j] = row.h_grad[j] * active * output * (T{1} - output);
    row.x_grad[3 * size + j] = dc * input * (T{1} - candidate * candidate);
  }
}

template <typename T>
absl::Status LstmUnitGrad(KernelContext& ctx) {
  const T forget_bias = static_cast<T>(ctx.attrs<LstmUnitAttrs>().forget_bias);
  const int64_t size = ctx.input(kCPrev).shape[1];
  const auto input = [&](int slot, int64_t at) { return ctx.input(slot).data<T>() + at; };
  const auto output = [&](int slot, int64_t at) -> T* {
    Tensor* const out = ctx.optional_output(slot);
    return out == nullptr ? nullptr : out->mutable_data<T>() + at;
  };
  const int64_t grain = GrainFor(32 * size);
  ParallelFor(
      ctx.num_threads(), ctx.input(kCPrev).shape[0], grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          StepRowBack<T>(size, forget_bias,
                         {input(kX, i * 4 * size), input(kCPrev, i * size), input(kC, i * size),
                          input(kCGrad, i * size), input(kHGrad, i * size),
                          output(kXGrad, i * 4 * size), output(kCPrevGrad, i * size)});
        }
      });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lstm_unit_grad",
    .inputs = {{"X"}, {"C_prev"}, {"C"}, {"C@GRAD"}, {"H@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"C_prev@GRAD", kOptional}},
    .parse = ParseAttrs<LstmUnitAttrs, ReadLstmUnit>,
    .infer = InferLstmUnitGrad,
    .kernels = {{DType::kFloat32, LstmUnitGrad<float>}, {DType::kFloat64, LstmUnitGrad<double>}},
});

}  // namespace
}  // namespace interp::recurrent
