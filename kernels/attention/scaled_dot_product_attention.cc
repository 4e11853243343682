// scaled_dot_product_attention: what the pass fuse_attention makes of two products and the softmax
// between.
//   Out = softmax(scale * Q K^T * Factor... + Bias...) V
// with Q [batch.., queries, width], K [batch.., keys, width] and V [batch.., keys, values]; batch
// dims broadcast. `trans_k` and `trans_v` say that the last two dims of K or V are the other way
// round. Each Factor and Bias broadcasts with the scores [batch.., queries, keys]. Biases that
// `subtracted` lists by position are subtracted. Those that `turning` lists have one dim more than
// the scores, [1, period, ..], and take turns along the first dim of the scores, as the masks of
// shifted windows do.
//
// Q, K and V may be views: of the input's axis `q_slice[0]` the index `q_slice[1]`, with the axes
// `q_axes` of the input in this order. `out_axes` orders the axes of Out as transpose's `axis`
// does. Elements of a query, of a key or value or of a column of these, and of a row of Out lie
// beside each other.
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/op_def.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_operands.h"
#include "kernels/nn/softmax.h"
#include "kernels/util/flops.h"
#include "kernels/util/strided_copy.h"

namespace interp::nn::scaled_dot_product_attention {
namespace {

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

// A term as the heads read it.
template <typename T>
struct TermRows {
  Term term;
  const T* end = nullptr;
  Shape dims;
  Strides steps = {};  // of batch dims, rows and columns; 0 where it is repeated
};

template <typename T>
TermRows<T> RowsOf(const Term& term, const Problem& p) {
  TermRows<T> rows = {term, term.tensor->data<T>() + term.tensor->numel(), TermDims(term, p)};
  int64_t step = 1;
  for (int i = p.scores.rank() - 1; i >= 0; step *= rows.dims[i--]) {
    rows.steps[i] = rows.dims[i] == 1 ? 0 : step;
  }
  return rows;
}

// The parts of terms that change the scores of one head.
template <typename T>
struct ChangedHead : AttentionHead<T> {
  absl::InlinedVector<const T*, 2> terms = {};
};

template <typename T>
class Heads {
 public:
  // `keys` is the first element of p.k.
  Heads(KernelContext& ctx, const Problem& problem, const T* keys, const AttentionSizes<T>& sizes)
      : p_(problem), sizes_(sizes) {
    base_.queries = ctx.input(kQ).data<T>() + p_.q.offset;
    base_.query_row = RowStep(p_.q);
    base_.keys = {keys, RowStep(p_.k), ColumnStep(p_.k)};
    base_.values = {ctx.input(kV).data<T>() + p_.v.offset, RowStep(p_.v), ColumnStep(p_.v)};
    base_.out = ctx.output(kOut).mutable_data<T>();
    base_.out_row = p_.out_strides[p_.batch.rank()];
    q_ = BatchSteps(p_.q, p_.batch);
    k_ = BatchSteps(p_.k, p_.batch);
    v_ = BatchSteps(p_.v, p_.batch);
    for (const Term& term : TermsOf(ctx)) terms_.push_back(RowsOf<T>(term, p_));
  }

  ChangedHead<T> At(int64_t index) const {
    ChangedHead<T> head = {base_, {}};
    for (const TermRows<T>& rows : terms_)
      head.terms.push_back(rows.term.tensor->template data<T>());
    for (int d = p_.batch.rank() - 1; d >= 0; index /= p_.batch[d--]) {
      const int64_t i = index % p_.batch[d];
      head.queries += i * q_[d];
      head.keys.data += i * k_[d];
      head.values.data += i * v_[d];
      head.out += i * p_.out_strides[d];
      for (size_t t = 0; t < terms_.size(); ++t) {
        head.terms[t] += i % terms_[t].dims[d] * terms_[t].steps[d];
      }
    }
    return head;
  }

  // Multiplies the products of a query with all keys by the factors and adds the biases.
  void Change(const ChangedHead<T>& head, int64_t query, T* scores) const {
    const int rank = p_.scores.rank();
    for (size_t t = 0; t < terms_.size(); ++t) {
      const TermRows<T>& rows = terms_[t];
      const auto change = [&](const auto& by) {
        ChangeScores(sizes_, head.terms[t] + query * rows.steps[rank - 2], rows.steps[rank - 1],
                     rows.end, scores, by);
      };
      if (rows.term.slot == kFactor) {
        change([](T score, T factor) { return score * factor; });
      } else if (rows.term.subtracted) {
        change([](T score, T bias) { return score - bias; });
      } else {
        change([](T score, T bias) { return score + bias; });
      }
    }
  }

 private:
  static int64_t RowStep(const View& view) { return view.strides[view.dims.rank() - 2]; }
  static int64_t ColumnStep(const View& view) { return view.strides[view.dims.rank() - 1]; }

  const Problem& p_;
  const AttentionSizes<T>& sizes_;
  AttentionHead<T> base_;
  Strides q_, k_, v_;
  absl::InlinedVector<TermRows<T>, 2> terms_;
};

// Lays one key that stands for many, as a term with more columns makes it, along a row: products
// read rows or columns, and such a view of columns is neither. `keys` is its first element then.
template <typename T>
absl::StatusOr<std::optional<Workspace>> LayKeysAlongRows(KernelContext& ctx, View& k,
                                                          const T*& keys) {
  const int rows = k.dims.rank() - 2;
  const int columns = rows + 1;
  if (k.strides[rows] != 0 || k.strides[columns] == 1) return std::nullopt;
  CopyDims dims;
  int64_t step = 1;
  for (int i = columns; i >= 0; --i) {
    if (i == rows) continue;
    dims.push_back({k.dims[i], k.strides[i], step});
    k.strides[i] = step;
    step *= k.dims[i];
  }
  INTERP_ASSIGN_OR_RETURN(Workspace copy, ctx.workspace(static_cast<size_t>(step) * sizeof(T)));
  CopyStrided(ctx.num_threads(), sizeof(T), dims, keys, copy.data<T>());
  keys = copy.data<T>();
  return copy;
}

template <typename T>
absl::Status Attention(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(Problem p, Resolve(ctx));
  if (ctx.output(kOut).numel() == 0) return absl::OkStatus();
  const T* keys = ctx.input(kK).data<T>() + p.k.offset;
  INTERP_ASSIGN_OR_RETURN(const std::optional<Workspace> copy, LayKeysAlongRows(ctx, p.k, keys));
  const auto scale = static_cast<T>(ctx.attrs<Attrs>().scale);
  const AttentionSizes<T> sizes = {p.queries(), p.keys(), p.width(), p.values(), scale};
  const Heads<T> heads(ctx, p, keys, sizes);
  const auto weigh = [&](const ChangedHead<T>& head, int64_t query, T* scores) {
    heads.Change(head, query, scores);
    return softmax::MakeNumerators(scores, sizes.keys, sizes.padded_keys());
  };
  return RunAttention(
      ctx, p.batch.numel(), sizes, [&](int64_t at) { return heads.At(at); }, weigh);
}

INTERP_REGISTER_OP(OpDef{
    .type = "scaled_dot_product_attention",
    .inputs =
        {{"Q"}, {"K"}, {"V"}, {"Factor", kOptional | kVariadic}, {"Bias", kOptional | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Attention<float>}, {DType::kFloat64, Attention<double>}},
    .flops = Flops,
});

}  // namespace
}  // namespace interp::nn::scaled_dot_product_attention
