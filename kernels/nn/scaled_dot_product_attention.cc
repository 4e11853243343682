// scaled_dot_product_attention: what the pass fuse_attention makes of two products and the softmax
// between.
//   Out = softmax(scale * Q K^T + Bias...) V
// with Q [batch.., queries, width], K [batch.., keys, width] and V [batch.., keys, values]; batch
// dims broadcast. `trans_k` and `trans_v` say that the last two dims of K or V are the other way
// round. Each Bias broadcasts with the scores [batch.., queries, keys]. Those that `turning` lists
// by position have one dim more than the scores, [1, period, ..], and take turns along the first
// dim of the scores, as the masks of shifted windows do.
//
// Q, K and V may be views: of the input's axis `q_slice[0]` the index `q_slice[1]`, with the axes
// `q_axes` of the input in this order. `out_axes` orders the axes of Out as transpose's `axis`
// does. Elements of a query, of a key or value or of a column of these, and of a row of Out lie
// beside each other.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "core/op_def.h"
#include "kernels/nn/attention.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/flops.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn::scaled_dot_product_attention {
namespace {

constexpr int kQ = 0;
constexpr int kK = 1;
constexpr int kV = 2;
constexpr int kBias = 3;
constexpr int kOut = 0;
constexpr absl::string_view kNames[] = {"Q", "K", "V"};

struct ViewAttrs {
  std::vector<int64_t> axes;   // empty: all of the input, in order
  std::vector<int64_t> slice;  // axis and index; empty: none
};

struct Attrs {
  std::array<ViewAttrs, 3> views = {};  // of Q, K and V
  bool trans_k = false;
  bool trans_v = false;
  double scale = 1;
  std::vector<int64_t> out_axes = {};  // empty: in order
  std::vector<int64_t> turning = {};   // biases
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs = {.trans_k = reader.Bool("trans_k", false),
                 .trans_v = reader.Bool("trans_v", false),
                 .scale = reader.Double("scale", 1),
                 .out_axes = reader.Ints("out_axes"),
                 .turning = reader.Ints("turning")};
  for (int i = 0; i < 3; ++i) {
    ViewAttrs& view = attrs.views[i];
    const std::string name = absl::AsciiStrToLower(kNames[i]);
    view = {reader.Ints(name + "_axes"), reader.Ints(name + "_slice")};
    if (!view.slice.empty() && (view.slice.size() != 2 || view.axes.empty())) {
      reader.Fail(absl::StrCat("attribute '", name,
                               "_slice' is not an axis and an index, or there is no '", name,
                               "_axes'"));
    }
  }
  return attrs;
}

// A tensor as it is read: dims and the elements from one index of each to the next.
struct View {
  Shape dims;
  Strides strides = {};
  int64_t offset = 0;
};

// Whether `axes` names each of `rank` axes once, but for `without`.
bool AreAxes(const std::vector<int64_t>& axes, int rank, int64_t without) {
  std::array<bool, kMaxRank> named = {};
  if (without >= 0) named[without] = true;
  for (const int64_t axis : axes) {
    if (axis < 0 || axis >= rank || std::exchange(named[axis], true)) return false;
  }
  return std::ssize(axes) + (without >= 0 ? 1 : 0) == rank;
}

// The view of input `index`, its rows and columns last.
absl::StatusOr<View> ViewOf(const OpContext& ctx, int index) {
  const auto& attrs = ctx.attrs<Attrs>();
  const ViewAttrs& view = attrs.views[index];
  const Shape& shape = ctx.input(index).shape;
  const Strides strides = StridesOf(shape, Layout::kPlain);
  View result = {shape, strides};
  if (!view.axes.empty()) {
    const int64_t axis = view.slice.empty() ? -1 : view.slice[0];
    const bool inside = view.slice.empty() || (axis >= 0 && axis < shape.rank() &&
                                               view.slice[1] >= 0 && view.slice[1] < shape[axis]);
    if (!inside || !AreAxes(view.axes, shape.rank(), axis)) {
      return InvalidArgument("input '", kNames[index], "' has shape ", ToString(shape),
                             ", expected one with the axes of its view");
    }
    result = {};
    if (axis >= 0) result.offset = view.slice[1] * strides[axis];
    for (int i = 0; i < std::ssize(view.axes); ++i) {
      result.dims.push_back(shape[static_cast<int>(view.axes[i])]);
      result.strides[i] = strides[view.axes[i]];
    }
  }
  const int rank = result.dims.rank();
  if (rank < 2) {
    return InvalidArgument("input '", kNames[index], "' has shape ", ToString(shape),
                           ", expected at least two dims");
  }
  if ((index == kK && attrs.trans_k) || (index == kV && attrs.trans_v)) {
    std::swap(result.dims[rank - 2], result.dims[rank - 1]);
    std::swap(result.strides[rank - 2], result.strides[rank - 1]);
  }
  const bool in_rows = result.strides[rank - 1] == 1;
  if (!in_rows && (index == kQ || result.strides[rank - 2] != 1)) {
    return InvalidArgument("the rows of input '", kNames[index], "' with shape ", ToString(shape),
                           " do not lie in memory as attention reads them");
  }
  return result;
}

// An op with its shapes. What is repeated along a dim has a stride of 0 there.
struct Problem {
  View q, k, v;
  Shape batch;               // of all inputs
  Shape scores;              // batch dims, queries and keys
  int score_rank = 0;        // of Q and K alone: batch dims of others stand before theirs
  Shape out;                 // in the order of Out
  Strides out_strides = {};  // of batch dims, queries and values
  int64_t queries() const { return scores.back(2); }
  int64_t keys() const { return scores.back(); }
  int64_t width() const { return q.dims.back(); }
  int64_t values() const { return v.dims.back(); }
};

// Joins `dims`, without the last two, into `batch`; false where they do not broadcast.
bool JoinBatch(absl::Span<const int64_t> dims, Shape& batch) {
  const int rank = static_cast<int>(dims.size()) - 2;
  Shape joined;
  joined.resize(std::max(rank, batch.rank()));
  for (int i = 1; i <= joined.rank(); ++i) {
    const int64_t a = i <= batch.rank() ? batch.back(i) : 1;
    const int64_t b = i <= rank ? dims[rank - i] : 1;
    if (a != b && a != 1 && b != 1) return false;
    joined[joined.rank() - i] = a == 1 ? b : a;
  }
  batch = joined;
  return true;
}

// Steps of the view along each of the batch dims; 0 where it is repeated.
Strides BatchSteps(const View& view, const Shape& batch) {
  Strides steps = {};
  for (int i = 1; i <= std::min(view.dims.rank() - 2, batch.rank()); ++i) {
    const int axis = view.dims.rank() - 2 - i;
    steps[batch.rank() - i] = view.dims[axis] == 1 ? 0 : view.strides[axis];
  }
  return steps;
}

absl::Status OrderOut(const std::vector<int64_t>& axes, Problem& problem) {
  Shape dims = problem.batch;
  dims.push_back(problem.queries());
  dims.push_back(problem.values());
  const int rank = dims.rank();
  problem.out = dims;
  if (!axes.empty()) {
    if (std::ssize(axes) != rank || !AreAxes(axes, rank, /*without=*/-1) ||
        axes.back() != rank - 1) {
      return InvalidArgument("attribute 'out_axes' does not order the axes of ", ToString(dims),
                             ", or moves the last one");
    }
    for (int i = 0; i < rank; ++i) problem.out[i] = dims[static_cast<int>(axes[i])];
  }
  const Strides strides = StridesOf(problem.out, Layout::kPlain);
  for (int i = 0; i < rank; ++i) problem.out_strides[axes.empty() ? i : axes[i]] = strides[i];
  return absl::OkStatus();
}

// Repeats the rows of a view, of which there is one, to be `count`.
bool RepeatRows(int64_t count, View& view) {
  const int rows = view.dims.rank() - 2;
  if (view.dims[rows] == count || count == 1) return true;
  if (view.dims[rows] != 1) return false;
  view.dims[rows] = count;
  view.strides[rows] = 0;
  return true;
}

// Lets a bias make the scores larger, as a sum with it does.
bool JoinBias(const Shape& bias, Problem& p) {
  const int64_t rows = bias.rank() < 2 ? 1 : bias.back(2);
  const int64_t columns = bias.rank() < 1 ? 1 : bias.back();
  return (bias.rank() <= 2 || JoinBatch(bias.dims(), p.batch)) && RepeatRows(rows, p.q) &&
         RepeatRows(columns, p.k);
}

bool IsTurning(const Attrs& attrs, int64_t bias) {
  return absl::c_linear_search(attrs.turning, bias);
}

// The dims of a bias by those of the scores; of one that takes turns, the period stands for the
// dim that it takes turns along. Empty where it does not fit.
Shape BiasDims(const Shape& bias, bool turns, const Problem& p) {
  const int rank = p.scores.rank();
  const int turning = rank - p.score_rank;  // the first dim of the scores of Q and K
  if (turns && (bias.rank() != p.score_rank + 1 || p.score_rank < 3 || bias[0] != 1)) return {};
  if (!turns && bias.rank() > rank) return {};
  Shape dims;
  dims.resize(rank);
  for (int i = 1; i <= bias.rank() - (turns ? 1 : 0); ++i) {
    const int at = rank - i;
    dims[at] = bias.back(i);
    const bool fits = turns && at == turning ? dims[at] > 0 && p.scores[at] % dims[at] == 0
                                             : dims[at] == 1 || dims[at] == p.scores[at];
    if (!fits) return {};
  }
  return dims;
}

absl::Status CheckBiases(const OpContext& ctx, const Problem& p) {
  const absl::Span<const Tensor* const> biases = ctx.inputs(kBias);
  for (int64_t i = 0; i < std::ssize(biases); ++i) {
    if (biases[i] == nullptr) continue;
    if (BiasDims(biases[i]->shape, IsTurning(ctx.attrs<Attrs>(), i), p).rank() == 0) {
      return InvalidArgument("input 'Bias' argument ", i, " has shape ", ToString(biases[i]->shape),
                             ", which does not fit the scores ", ToString(p.scores));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Problem> Resolve(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  Problem p;
  INTERP_ASSIGN_OR_RETURN(p.q, ViewOf(ctx, kQ));
  INTERP_ASSIGN_OR_RETURN(p.k, ViewOf(ctx, kK));
  INTERP_ASSIGN_OR_RETURN(p.v, ViewOf(ctx, kV));
  p.score_rank = std::max(p.q.dims.rank(), p.k.dims.rank());
  bool fit = p.k.dims.back() == p.width() && JoinBatch(p.q.dims.dims(), p.batch) &&
             JoinBatch(p.k.dims.dims(), p.batch);
  const absl::Span<const Tensor* const> biases = ctx.inputs(kBias);
  for (int64_t i = 0; fit && i < std::ssize(biases); ++i) {
    fit = biases[i] == nullptr || IsTurning(attrs, i) || JoinBias(biases[i]->shape, p);
  }
  fit = fit && p.v.dims.back(2) == p.k.dims.back(2) && JoinBatch(p.v.dims.dims(), p.batch) &&
        p.batch.rank() + 2 <= kMaxRank;
  if (!fit) {
    return InvalidArgument("queries ", ToString(p.q.dims), ", keys ", ToString(p.k.dims),
                           ", values ", ToString(p.v.dims), " and what is added to the scores ",
                           "do not fit each other");
  }
  p.scores = p.batch;
  p.scores.push_back(p.q.dims.back(2));
  p.scores.push_back(p.k.dims.back(2));
  if (!p.scores.CheckedNumel().has_value()) {
    return ResourceExhausted("scores of shape ", ToString(p.scores));
  }
  INTERP_RETURN_IF_ERROR(CheckBiases(ctx, p));
  INTERP_RETURN_IF_ERROR(OrderOut(attrs.out_axes, p));
  return p;
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Problem problem, Resolve(ctx));
  ctx.SetShape(kOut, problem.out);
  return absl::OkStatus();
}

// Both products.
int64_t Flops(const OpContext& ctx) {
  const absl::StatusOr<Problem> p = Resolve(ctx);
  if (!p.ok()) return 0;
  double scores = 1;
  for (const int64_t dim : p->scores) scores *= static_cast<double>(dim);
  return ToFlops(2 * scores * static_cast<double>(p->width() + p->values()));
}

// A bias as the heads read it.
template <typename T>
struct Bias {
  const T* data = nullptr;
  const T* end = nullptr;
  Shape dims;
  Strides steps = {};  // of batch dims, rows and columns; 0 where it is repeated
};

template <typename T>
Bias<T> BiasOf(const Tensor& tensor, bool turns, const Problem& p) {
  Bias<T> bias = {tensor.data<T>(), tensor.data<T>() + tensor.numel(),
                  BiasDims(tensor.shape, turns, p)};
  int64_t step = 1;
  for (int i = p.scores.rank() - 1; i >= 0; step *= bias.dims[i--]) {
    bias.steps[i] = bias.dims[i] == 1 ? 0 : step;
  }
  return bias;
}

// The parts of biases that are added to the scores of one head.
template <typename T>
struct BiasedHead : AttentionHead<T> {
  absl::InlinedVector<const T*, 2> biases = {};
};

template <typename T>
class Heads {
 public:
  Heads(KernelContext& ctx, const Problem& problem, const AttentionSizes<T>& sizes)
      : p_(problem), sizes_(sizes) {
    base_.queries = ctx.input(kQ).data<T>() + p_.q.offset;
    base_.query_row = RowStep(p_.q);
    base_.keys = {ctx.input(kK).data<T>() + p_.k.offset, RowStep(p_.k), ColumnStep(p_.k)};
    base_.values = {ctx.input(kV).data<T>() + p_.v.offset, RowStep(p_.v), ColumnStep(p_.v)};
    base_.out = ctx.output(kOut).mutable_data<T>();
    base_.out_row = p_.out_strides[p_.batch.rank()];
    q_ = BatchSteps(p_.q, p_.batch);
    k_ = BatchSteps(p_.k, p_.batch);
    v_ = BatchSteps(p_.v, p_.batch);
    const absl::Span<const Tensor* const> biases = ctx.inputs(kBias);
    for (int64_t i = 0; i < std::ssize(biases); ++i) {
      const bool turns = IsTurning(ctx.attrs<Attrs>(), i);
      if (biases[i] != nullptr) biases_.push_back(BiasOf<T>(*biases[i], turns, p_));
    }
  }

  BiasedHead<T> At(int64_t index) const {
    BiasedHead<T> head = {base_, {}};
    for (const Bias<T>& bias : biases_) head.biases.push_back(bias.data);
    for (int d = p_.batch.rank() - 1; d >= 0; index /= p_.batch[d--]) {
      const int64_t i = index % p_.batch[d];
      head.queries += i * q_[d];
      head.keys.data += i * k_[d];
      head.values.data += i * v_[d];
      head.out += i * p_.out_strides[d];
      for (size_t b = 0; b < biases_.size(); ++b) {
        head.biases[b] += i % biases_[b].dims[d] * biases_[b].steps[d];
      }
    }
    return head;
  }

  // Adds the rows of the biases for a query to its products with the keys.
  void AddBiases(const BiasedHead<T>& head, int64_t query, T* scores) const {
    const int rank = p_.scores.rank();
    for (size_t b = 0; b < biases_.size(); ++b) {
      const Bias<T>& bias = biases_[b];
      AddBias(sizes_, head.biases[b] + query * bias.steps[rank - 2], bias.steps[rank - 1], bias.end,
              scores);
    }
  }

 private:
  static int64_t RowStep(const View& view) { return view.strides[view.dims.rank() - 2]; }
  static int64_t ColumnStep(const View& view) { return view.strides[view.dims.rank() - 1]; }

  const Problem& p_;
  const AttentionSizes<T>& sizes_;
  AttentionHead<T> base_;
  Strides q_, k_, v_;
  absl::InlinedVector<Bias<T>, 2> biases_;
};

template <typename T>
absl::Status Attention(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Problem p, Resolve(ctx));
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  const auto scale = static_cast<T>(ctx.attrs<Attrs>().scale);
  const AttentionSizes<T> sizes = {p.queries(), p.keys(), p.width(), p.values(), scale};
  const Heads<T> heads(ctx, p, sizes);
  const auto weigh = [&](const BiasedHead<T>& head, int64_t query, T* scores) {
    heads.AddBiases(head, query, scores);
    return softmax::MakeNumerators(scores, sizes.keys, sizes.padded_keys());
  };
  return RunAttention(
      ctx, p.batch.numel(), sizes, [&](int64_t at) { return heads.At(at); }, weigh);
}

INTERP_REGISTER_OP(OpDef{
    .type = "scaled_dot_product_attention",
    .inputs = {{"Q"}, {"K"}, {"V"}, {"Bias", kOptional | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Attention<float>}, {DType::kFloat64, Attention<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::nn::scaled_dot_product_attention
