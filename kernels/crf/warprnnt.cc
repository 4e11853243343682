// warprnnt: the loss of a transducer (Graves 2012). A path goes from row 0 and position 0 of a
// sequence to its last row and position: by a blank to the next row, by the next tag of the label
// to the next position, and by a blank off the end. loss = -log of the sum over paths of exp of the
// sum of their inputs, which are logarithms of probabilities already; warprnntgrad is its
// derivative, that of a tag times 1 + fastemit_lambda. Both sums run in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/op_def.h"
#include "kernels/crf/for_each_sequence.h"
#include "kernels/crf/sequences.h"
#include "kernels/util/indices.h"

namespace interp::crf {
namespace {

constexpr int kInput = 0;  // [batch, rows, positions, tags]
constexpr int kLabel = 1;
constexpr int kInputLengths = 2;
constexpr int kLabelLengths = 3;
constexpr int kLoss = 0;
constexpr int kGrad = 1;

struct WarpRnntAttrs {
  int32_t blank = 0;
  float fastemit_lambda = 0;
};

WarpRnntAttrs ReadWarpRnnt(AttrReader& reader) {
  return {reader.Int("blank", 0), reader.Float("fastemit_lambda", 0)};
}

absl::Status InferWarpRnnt(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  if (input.rank() != 4 || input[3] < 1) {
    return InvalidArgument("input 'input' has shape ", ToString(input),
                           ", expected [batch, rows, positions, tags]");
  }
  const Shape& label = ctx.input(kLabel).shape;
  if (label.rank() != 2 || label[0] != input[0]) {
    return InvalidArgument("input 'label' has shape ", ToString(label), ", expected [", input[0],
                           ",U]");
  }
  for (const int slot : {kInputLengths, kLabelLengths}) {
    if (ctx.input(slot).shape.CheckedNumel() == input[0]) continue;
    return InvalidArgument("input '", slot == kInputLengths ? "input_lengths" : "label_lengths",
                           "' has shape ", ToString(ctx.input(slot).shape), ", expected ", input[0],
                           " elements");
  }
  const int32_t blank = ctx.attrs<WarpRnntAttrs>().blank;
  if (blank < 0 || blank >= input[3]) {
    return InvalidArgument("attribute 'blank' is ", blank, ", expected 0 to ", input[3] - 1);
  }
  ctx.SetShape(kLoss, {input[0]});
  ctx.SetShape(kGrad, input);
  return absl::OkStatus();
}

// One sequence.
template <typename T>
struct Lattice {
  const T* input = nullptr;
  T* grad = nullptr;      // may be null
  int64_t row_size = 0;   // elements of a row of `input` and `grad`
  int64_t tag_count = 0;  // and of a position
  int64_t rows = 0;
  std::vector<int64_t> tags;  // the label
  int64_t blank = 0;

  int64_t positions() const { return static_cast<int64_t>(tags.size()) + 1; }
  int64_t At(int64_t t, int64_t u, int64_t tag) const { return t * row_size + u * tag_count + tag; }
  double Blank(int64_t t, int64_t u) const { return input[At(t, u, blank)]; }
  double Tag(int64_t t, int64_t u) const { return input[At(t, u, tags[u])]; }
};

constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// log(e^a + e^b); NaN where either is NaN.
double LogSum(double a, double b) {
  if (a == kLogZero) return b;
  if (b == kLogZero) return a;
  return a > b ? a + std::log1p(std::exp(b - a)) : b + std::log1p(std::exp(a - b));
}

// Elements that Forward and Backward need: alpha, and two rows of beta.
template <typename T>
int64_t ScratchSize(const Lattice<T>& l) {
  return (l.rows + 2) * l.positions();
}

// By row and position: the sum over what leads there.
template <typename T>
void Forward(const Lattice<T>& l, double* alpha) {
  const int64_t width = l.positions();
  std::fill_n(alpha, l.rows * width, kLogZero);
  alpha[0] = 0;
  for (int64_t t = 0; t < l.rows; ++t) {
    for (int64_t u = 0; u < width; ++u) {
      double& sum = alpha[t * width + u];
      if (t > 0) sum = LogSum(sum, alpha[(t - 1) * width + u] + l.Blank(t - 1, u));
      if (u > 0) sum = LogSum(sum, alpha[t * width + u - 1] + l.Tag(t, u - 1));
    }
  }
}

// Sets the gradient, which is zero before. `loss` is that of all paths, and `beta` two rows.
template <typename T>
void Backward(const Lattice<T>& l, const double* alpha, double loss, double emit, double* beta) {
  const int64_t width = l.positions();
  double* next = beta + width;  // beta of the row after
  std::fill_n(beta, 2 * width, kLogZero);
  for (int64_t t = l.rows - 1; t >= 0; --t) {
    for (int64_t u = width - 1; u >= 0; --u) {
      const bool last = t == l.rows - 1 && u == width - 1;
      const double before = alpha[t * width + u] + loss;
      const double by_blank = l.Blank(t, u) + (last ? 0 : next[u]);
      beta[u] = by_blank;
      l.grad[l.At(t, u, l.blank)] = static_cast<T>(-std::exp(before + by_blank));
      if (u + 1 == width) continue;
      const double by_tag = l.Tag(t, u) + beta[u + 1];
      beta[u] = LogSum(by_blank, by_tag);
      // Added: a label may have blanks in it.
      l.grad[l.At(t, u, l.tags[u])] -= static_cast<T>(emit * std::exp(before + by_tag));
    }
    std::swap(beta, next);
  }
}

template <typename T>
T Run(const Lattice<T>& lattice, double emit, double* scratch) {
  const int64_t size = lattice.rows * lattice.positions();
  Forward(lattice, scratch);
  const double to_last = scratch[size - 1];
  const double loss = -(to_last + lattice.Blank(lattice.rows - 1, lattice.positions() - 1));
  if (lattice.grad != nullptr) Backward(lattice, scratch, loss, emit, scratch + size);
  return static_cast<T>(loss);
}

template <typename T>
absl::StatusOr<std::vector<Lattice<T>>> Lattices(KernelContext& ctx, T* grad) {
  const Shape& shape = ctx.input(kInput).shape;
  const Tensor& label = ctx.input(kLabel);
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> rows,
                          PaddedSequences(ctx.input(kInputLengths), "input_lengths", shape[1]));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> labels,
                          PaddedSequences(ctx.input(kLabelLengths), "label_lengths",
                                          std::min(label.shape[1], shape[2] - 1)));
  std::vector<Lattice<T>> lattices;
  INTERP_RETURN_IF_ERROR(WithIndices(label, "label", [&](const auto* values) {
    for (int64_t i = 0; i < shape[0]; ++i, values += label.shape[1]) {
      const int64_t start = i * shape[1] * shape[2] * shape[3];
      if (rows[i].length == 0) return InvalidArgument("sequence ", i, " has no row");
      INTERP_RETURN_IF_ERROR(CheckIndices(values, labels[i].length, shape[3], "label"));
      lattices.push_back({ctx.input(kInput).data<T>() + start,
                          grad == nullptr ? nullptr : grad + start, shape[2] * shape[3], shape[3],
                          rows[i].length, std::vector<int64_t>(values, values + labels[i].length),
                          ctx.attrs<WarpRnntAttrs>().blank});
    }
    return absl::OkStatus();
  }));
  return lattices;
}

template <typename T>
absl::Status WarpRnnt(KernelContext& ctx) {
  T* grad = nullptr;
  if (Tensor* out = ctx.optional_output(kGrad)) {
    grad = out->mutable_data<T>();
    std::fill_n(grad, out->numel(), T{0});
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<Lattice<T>> lattices, Lattices<T>(ctx, grad));
  T* const loss = ctx.output(kLoss).mutable_data<T>();
  const double emit = 1 + static_cast<double>(ctx.attrs<WarpRnntAttrs>().fastemit_lambda);
  int64_t size = 0;
  for (const Lattice<T>& lattice : lattices) size = std::max(size, ScratchSize(lattice));
  return ForEachSequence<double>(
      ctx, std::ssize(lattices), /*grain=*/1, size,
      [&](int64_t i, double* scratch) { loss[i] = Run(lattices[i], emit, scratch); });
}

INTERP_REGISTER_OP(OpDef{
    .type = "warprnnt",
    .inputs = {{"input"},
               {"label", kAnyDType},
               {"input_lengths", kAnyDType},
               {"label_lengths", kAnyDType}},
    .outputs = {{"loss"}, {"warprnntgrad", kOptional}},
    .parse = ParseAttrs<WarpRnntAttrs, ReadWarpRnnt>,
    .infer = InferWarpRnnt,
    .kernels = {{DType::kFloat32, WarpRnnt<float>}, {DType::kFloat64, WarpRnnt<double>}},
    .gradient = {.inputs = {"input", "input_lengths", "warprnntgrad", "loss@GRAD"},
                 .outputs = {"input@GRAD"}},
});

}  // namespace
}  // namespace interp::crf
