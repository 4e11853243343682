// lstm_unit: one step of a long short-term memory for a batch of states.
//
//   [i f o g] = X, C = sigmoid(f + forget_bias) C_prev + sigmoid(i) tanh(g), H = sigmoid(o) tanh(C)
//
// Not the order of gates of lstm.
#include "core/op_def.h"
#include "kernels/recurrent/lstm_attrs.h"
#include "kernels/util/check_shape.h"
#include "kernels/util/flops.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/vector_math.h"

namespace interp::recurrent {
namespace {

constexpr int kX = kLstmUnitX;
constexpr int kCPrev = kLstmUnitCPrev;
constexpr int kC = 0;
constexpr int kH = 1;

absl::Status InferLstmUnit(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape state, CheckLstmUnitInputs(ctx));
  ctx.SetShape(kC, state);
  ctx.SetShape(kH, state);
  return absl::OkStatus();
}

template <typename T>
void StepRow(int64_t size, T forget_bias, const T* x, const T* before, T* c, T* h) {
  const T* const forget = x + size;
  const T* const output = forget + size;
  const T* const candidate = output + size;
  for (int64_t j = 0; j < size; ++j) {
    c[j] = Sigmoid(forget[j] + forget_bias) * before[j] + Sigmoid(x[j]) * Tanh(candidate[j]);
  }
  for (int64_t j = 0; j < size; ++j) h[j] = Sigmoid(output[j]) * Tanh(c[j]);
}

template <typename T>
absl::Status LstmUnit(KernelContext& ctx) {
  const T forget_bias = static_cast<T>(ctx.attrs<LstmUnitAttrs>().forget_bias);
  const int64_t size = ctx.input(kCPrev).shape[1];
  const T* const x = ctx.input(kX).data<T>();
  const T* const before = ctx.input(kCPrev).data<T>();
  T* const c = ctx.output(kC).mutable_data<T>();
  T* const h = ctx.output(kH).mutable_data<T>();
  const int64_t grain = GrainFor(16 * size);
  ParallelFor(ctx.num_threads(), ctx.input(kCPrev).shape[0], grain,
              [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  StepRow(size, forget_bias, x + i * 4 * size, before + i * size, c + i * size,
                          h + i * size);
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lstm_unit",
    .inputs = {{"X"}, {"C_prev"}},
    .outputs = {{"C"}, {"H"}},
    .parse = ParseAttrs<LstmUnitAttrs, ReadLstmUnit>,
    .infer = InferLstmUnit,
    .kernels = {{DType::kFloat32, LstmUnit<float>}, {DType::kFloat64, LstmUnit<double>}},
    .gradient = {.inputs = {"X", "C_prev", "C", "H@GRAD", "C@GRAD"},
                 .outputs = {"X@GRAD", "C_prev@GRAD"}},
    .flops = FlopsPerElement<9>,
});

}  // namespace
}  // namespace interp::recurrent
