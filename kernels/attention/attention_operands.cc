#include "kernels/attention/attention_operands.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "core/status.h"

namespace interp::nn::scaled_dot_product_attention {
namespace {

constexpr absl::string_view kNames[] = {"Q", "K", "V", "Factor", "Bias"};

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

// Lets a term make the scores larger, as a sum or product with it does.
bool JoinTerm(const Shape& term, Problem& p) {
  const int64_t rows = term.rank() < 2 ? 1 : term.back(2);
  const int64_t columns = term.rank() < 1 ? 1 : term.back();
  return (term.rank() <= 2 || JoinBatch(term.dims(), p.batch)) && RepeatRows(rows, p.q) &&
         RepeatRows(columns, p.k);
}

absl::Status CheckTerms(absl::Span<const Term> terms, const Problem& p) {
  for (const Term& term : terms) {
    if (TermDims(term, p).rank() != 0) continue;
    return InvalidArgument("input '", kNames[term.slot], "' argument ", term.position,
                           " has shape ", ToString(term.tensor->shape),
                           ", which does not fit the scores ", ToString(p.scores));
  }
  return absl::OkStatus();
}

}  // namespace

Attrs ReadAttrs(AttrReader& reader) {
  Attrs attrs = {.trans_k = reader.Bool("trans_k", false),
                 .trans_v = reader.Bool("trans_v", false),
                 .scale = reader.Double("scale", 1),
                 .out_axes = reader.Ints("out_axes"),
                 .turning = reader.Ints("turning"),
                 .subtracted = reader.Ints("subtracted")};
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

Strides BatchSteps(const View& view, const Shape& batch) {
  Strides steps = {};
  for (int i = 1; i <= std::min(view.dims.rank() - 2, batch.rank()); ++i) {
    const int axis = view.dims.rank() - 2 - i;
    steps[batch.rank() - i] = view.dims[axis] == 1 ? 0 : view.strides[axis];
  }
  return steps;
}

absl::InlinedVector<Term, 3> TermsOf(const OpContext& ctx) {
  const auto& attrs = ctx.attrs<Attrs>();
  absl::InlinedVector<Term, 3> terms;
  for (const int slot : {kFactor, kBias}) {
    const absl::Span<const Tensor* const> arguments = ctx.inputs(slot);
    for (int64_t i = 0; i < std::ssize(arguments); ++i) {
      if (arguments[i] == nullptr) continue;
      terms.push_back({slot, i, arguments[i],
                       slot == kBias && absl::c_linear_search(attrs.turning, i),
                       slot == kBias && absl::c_linear_search(attrs.subtracted, i)});
    }
  }
  return terms;
}

Shape TermDims(const Term& term, const Problem& p) {
  const Shape& shape = term.tensor->shape;
  const bool turns = term.turns;
  const int rank = p.scores.rank();
  const int turning = rank - p.score_rank;  // the first dim of the scores of Q and K
  if (turns && (shape.rank() != p.score_rank + 1 || p.score_rank < 3 || shape[0] != 1)) return {};
  if (!turns && shape.rank() > rank) return {};
  Shape dims;
  dims.resize(rank);
  for (int i = 1; i <= shape.rank() - (turns ? 1 : 0); ++i) {
    const int at = rank - i;
    dims[at] = shape.back(i);
    const bool fits = turns && at == turning ? dims[at] > 0 && p.scores[at] % dims[at] == 0
                                             : dims[at] == 1 || dims[at] == p.scores[at];
    if (!fits) return {};
  }
  return dims;
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
  const absl::InlinedVector<Term, 3> terms = TermsOf(ctx);
  for (const Term& term : terms) fit = fit && (term.turns || JoinTerm(term.tensor->shape, p));
  fit = fit && p.v.dims.back(2) == p.k.dims.back(2) && JoinBatch(p.v.dims.dims(), p.batch) &&
        p.batch.rank() + 2 <= kMaxRank;
  if (!fit) {
    return InvalidArgument("queries ", ToString(p.q.dims), ", keys ", ToString(p.k.dims),
                           ", values ", ToString(p.v.dims), " and what changes the scores ",
                           "do not fit each other");
  }
  p.scores = p.batch;
  p.scores.push_back(p.q.dims.back(2));
  p.scores.push_back(p.k.dims.back(2));
  if (!p.scores.CheckedNumel().has_value()) {
    return ResourceExhausted("scores of shape ", ToString(p.scores));
  }
  INTERP_RETURN_IF_ERROR(CheckTerms(terms, p));
  INTERP_RETURN_IF_ERROR(OrderOut(attrs.out_axes, p));
  return p;
}

}  // namespace interp::nn::scaled_dot_product_attention
