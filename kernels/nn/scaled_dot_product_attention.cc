// scaled_dot_product_attention: what the pass fuse_attention makes of two products and the softmax
// between.
//   Out = softmax(scale * Q K^T + Bias...) V
// with Q [batch.., queries, width], K [batch.., keys, width] and V [batch.., keys, values]; batch
// dims broadcast. `trans_k` and `trans_v` say that the last two dims of K or V are the other way
// round. Each Bias broadcasts to the scores [batch.., queries, keys], or has one dim more, [1,
// period, ..], and takes turns along the first of them, as the masks of shifted windows do.
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

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "core/op_def.h"
#include "kernels/nn/attention.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/flops.h"
#include "kernels/util/flush_denormals.h"
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
  float scale = 1;
  std::vector<int64_t> out_axes = {};  // empty: in order
};

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs = {.trans_k = reader.Bool("trans_k", false),
                 .trans_v = reader.Bool("trans_v", false),
                 .scale = reader.Float("scale", 1),
                 .out_axes = reader.Ints("out_axes")};
  for (int i = 0; i < 3; ++i) {
    ViewAttrs& view = attrs.views[i];
    const std::string name = absl::AsciiStrToLower(kNames[i]);
    view = {reader.Ints(name + "_axes"), reader.Ints(name + "_slice")};
    if (!view.slice.empty() && (view.slice.size() != 2 || view.axes.empty())) {
      reader.Fail(absl::StrCat("attribute '", name,
                               "_slice' is not an axis and an index, or there ", "is no '", name,
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

// An op with its shapes. Batch dims of all views are those of Out, and such that are repeated have
// a stride of 0.
struct Problem {
  View q, k, v;
  Shape batch;
  Shape scores;              // batch dims, queries and keys
  Shape out;                 // in the order of Out
  Strides out_strides = {};  // of batch dims, queries and values
  int64_t queries() const { return q.dims.back(2); }
  int64_t keys() const { return k.dims.back(2); }
  int64_t width() const { return q.dims.back(); }
  int64_t values() const { return v.dims.back(); }
};

// Joins the batch dims of `view` into `batch`; false where they do not broadcast.
bool JoinBatch(const View& view, Shape& batch) {
  const int rank = view.dims.rank() - 2;
  Shape joined;
  joined.resize(std::max(rank, batch.rank()));
  for (int i = 1; i <= joined.rank(); ++i) {
    const int64_t a = i <= batch.rank() ? batch.back(i) : 1;
    const int64_t b = i <= rank ? view.dims.back(i + 2) : 1;
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

// The dims of a bias by the dims of the scores, those of the first batch dim its period. An empty
// shape where it does not fit.
Shape BiasDims(const Shape& bias, const Shape& scores) {
  const bool takes_turns = bias.rank() == scores.rank() + 1 && scores.rank() > 2;
  if (!takes_turns && bias.rank() > scores.rank()) return {};
  if (takes_turns && (bias[0] != 1 || bias[1] == 0 || scores[0] % bias[1] != 0)) return {};
  Shape dims;
  dims.resize(scores.rank());
  for (int i = 1; i <= std::min(bias.rank(), scores.rank()); ++i) {
    const int at = scores.rank() - i;
    dims[at] = bias.back(i);
    const bool turns = takes_turns && at == 0;
    if (!turns && dims[at] != 1 && dims[at] != scores[at]) return {};
  }
  return dims;
}

absl::StatusOr<Problem> Resolve(const OpContext& ctx) {
  Problem p;
  INTERP_ASSIGN_OR_RETURN(p.q, ViewOf(ctx, kQ));
  INTERP_ASSIGN_OR_RETURN(p.k, ViewOf(ctx, kK));
  INTERP_ASSIGN_OR_RETURN(p.v, ViewOf(ctx, kV));
  const bool fit = p.k.dims.back() == p.width() && p.v.dims.back(2) == p.keys() &&
                   JoinBatch(p.q, p.batch) && JoinBatch(p.k, p.batch) && JoinBatch(p.v, p.batch) &&
                   p.batch.rank() + 2 <= kMaxRank;
  if (!fit) {
    return InvalidArgument("queries ", ToString(p.q.dims), ", keys ", ToString(p.k.dims),
                           " and values ", ToString(p.v.dims), " do not fit each other");
  }
  p.scores = p.batch;
  p.scores.push_back(p.queries());
  p.scores.push_back(p.keys());
  for (const Tensor* const bias : ctx.inputs(kBias)) {
    if (bias != nullptr && BiasDims(bias->shape, p.scores).rank() == 0) {
      return InvalidArgument("input 'Bias' has shape ", ToString(bias->shape),
                             ", which does not broadcast to the scores ", ToString(p.scores),
                             "; the pass fuse_attention joins the sum, unless it is disabled");
    }
  }
  INTERP_RETURN_IF_ERROR(OrderOut(ctx.attrs<Attrs>().out_axes, p));
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
  return ToFlops(2.0 * static_cast<double>(p->scores.numel()) *
                 static_cast<double>(p->width() + p->values()));
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
Bias<T> BiasOf(const Tensor& tensor, const Shape& scores) {
  Bias<T> bias = {tensor.data<T>(), tensor.data<T>() + tensor.numel(),
                  BiasDims(tensor.shape, scores)};
  int64_t step = 1;
  for (int i = scores.rank() - 1; i >= 0; step *= bias.dims[i--]) {
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
    for (const Tensor* const bias : ctx.inputs(kBias)) {
      if (bias != nullptr) biases_.push_back(BiasOf<T>(*bias, p_.scores));
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
  const FlushDenormals flush;
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
