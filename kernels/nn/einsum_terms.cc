#include <algorithm>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/nn/einsum.h"
#include "kernels/nn/product.h"
#include "kernels/util/shape_args.h"

namespace interp::einsum {
namespace {

constexpr absl::string_view kEllipsis = "...";
constexpr int kLetters = 128;
// Labels of the dimensions of an ellipsis, counted from its last one.
constexpr Label EllipsisLabel(int from_end) { return kLetters + from_end - 1; }
constexpr int kLabels = kLetters + kMaxRank;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The labels of one term, whose ellipsis has `hidden` dimensions.
absl::StatusOr<Labels> ParseTerm(absl::string_view term, int hidden) {
  Labels labels;
  const size_t at = term.find(kEllipsis);
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == at) {
      for (int from_end = hidden; from_end > 0; --from_end) {
        labels.push_back(EllipsisLabel(from_end));
      }
      i += kEllipsis.size() - 1;
    } else if (IsLetter(term[i])) {
      labels.push_back(term[i]);
    } else {
      return InvalidArgument("attribute 'equation' has the term '", term,
                             "', expected letters and at most one '...'");
    }
  }
  return labels;
}

int CountLetters(absl::string_view term) {
  return static_cast<int>(std::count_if(term.begin(), term.end(), IsLetter));
}

absl::Status AddOperand(absl::string_view term, const Shape& shape, Terms& terms, int& hidden) {
  const bool ellipsis = term.find(kEllipsis) != absl::string_view::npos;
  const int own = shape.rank() - CountLetters(term);
  if (own < 0 || (own > 0 && !ellipsis)) {
    return InvalidArgument("term '", term, "' of attribute 'equation' does not fit the operand ",
                           ToString(shape));
  }
  hidden = std::max(hidden, own);
  INTERP_ASSIGN_OR_RETURN(const Labels labels, ParseTerm(term, own));
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t& length = terms.lengths[labels[d]];
    if (length != 1 && shape[d] != 1 && length != shape[d]) {
      return InvalidArgument("dimension ", d, " of the operand ", ToString(shape), ", '", term,
                             "' of attribute 'equation', has another length elsewhere, ", length);
    }
    if (length == 1) length = shape[d];
  }
  terms.operands.push_back(labels);
  return absl::OkStatus();
}

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Elements from one index of a label to the next; 0 where the operand repeats.
int64_t StrideOf(const Operand& operand, Label label) {
  const Strides strides = StridesOf(operand.shape, Layout::kPlain);
  int64_t stride = 0;
  for (int d = 0; d < operand.shape.rank(); ++d) {
    if (operand.labels[d] == label && operand.shape[d] != 1) stride += strides[d];
  }
  return stride;
}

int64_t Size(absl::Span<const int64_t> lengths, const Labels& labels) {
  int64_t size = 1;
  for (const Label label : labels) size *= lengths[label];
  return size;
}

Labels Joined(std::initializer_list<const Labels*> groups) {
  Labels labels;
  for (const Labels* group : groups) labels.insert(labels.end(), group->begin(), group->end());
  return labels;
}

// Which labels are the batch, the rows, the columns and the sum of a product of matrices.
struct Groups {
  Labels batch;
  Labels rows;
  Labels columns;
  Labels summed;
};

Groups GroupLabels(const Operand& x, const Operand* y, const Labels& out) {
  Groups groups;
  for (const Label label : out) {
    const bool in_x = Has(x.labels, label);
    const bool in_y = y != nullptr && Has(y->labels, label);
    (in_x && in_y ? groups.batch : in_y ? groups.columns : groups.rows).push_back(label);
  }
  const auto add = [&](const Labels& labels) {
    for (const Label label : labels) {
      if (!Has(out, label) && !Has(groups.summed, label)) groups.summed.push_back(label);
    }
  };
  add(x.labels);
  if (y != nullptr) add(y->labels);
  return groups;
}

// Copies an operand so that its dimensions are those of `labels`, in their order.
template <typename T>
absl::Status Arrange(KernelContext& ctx, absl::Span<const int64_t> lengths, const Operand& operand,
                     const Labels& labels, T* out) {
  if (labels.size() > kMaxCopyRank) {
    return InvalidArgument("attribute 'equation' names ", labels.size(),
                           " dimensions, expected at most ", kMaxCopyRank);
  }
  CopyDims dims;
  int64_t step = Size(lengths, labels);
  if (step == 0) return absl::OkStatus();
  for (const Label label : labels) {
    step /= lengths[label];
    dims.push_back({lengths[label], StrideOf(operand, label), step});
  }
  CopyStrided(ctx.num_threads(), sizeof(T), dims, operand.data, out);
  return absl::OkStatus();
}

}  // namespace

Shape Terms::OutShape() const {
  Shape shape;
  for (const Label label : out) shape.push_back(lengths[label]);
  return shape;
}

absl::StatusOr<Terms> ParseEquation(const std::string& equation, absl::Span<const Shape> shapes) {
  const std::string plain = absl::StrReplaceAll(equation, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(plain, "->");
  const std::vector<std::string> inputs = absl::StrSplit(sides[0], ',');
  if (sides.size() != 2 || inputs.size() != shapes.size()) {
    return InvalidArgument("attribute 'equation' is '", equation, "', expected ", shapes.size(),
                           " terms, '->' and the output's");
  }
  Terms terms;
  terms.lengths.assign(kLabels, 1);
  int hidden = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    INTERP_RETURN_IF_ERROR(AddOperand(inputs[i], shapes[i], terms, hidden));
  }
  INTERP_ASSIGN_OR_RETURN(terms.out, ParseTerm(sides[1], hidden));
  if (terms.out.size() > kMaxRank) {
    return InvalidArgument("attribute 'equation' is '", equation, "', which gives more than ",
                           kMaxRank, " dims");
  }
  for (size_t i = 0; i < terms.out.size(); ++i) {
    const Label label = terms.out[i];
    const bool known = std::any_of(terms.operands.begin(), terms.operands.end(),
                                   [&](const Labels& labels) { return Has(labels, label); });
    if (known && std::count(terms.out.begin(), terms.out.end(), label) == 1) continue;
    return InvalidArgument("attribute 'equation' is '", equation,
                           "', whose output has a letter twice or one that no operand has");
  }
  return terms;
}

template <typename T>
absl::Status Contract(KernelContext& ctx, absl::Span<const int64_t> lengths, const Operand& x,
                      const Operand* y, const Labels& out_labels, T* out) {
  const Groups groups = GroupLabels(x, y, out_labels);
  nn::Product product = nn::ProductOf(Size(lengths, groups.rows), Size(lengths, groups.columns),
                                      Size(lengths, groups.summed));
  const int64_t batch[] = {Size(lengths, groups.batch)};
  const int64_t size = batch[0] * product.m * product.n;
  if (size == 0) return absl::OkStatus();
  INTERP_RETURN_IF_ERROR(nn::BroadcastBatch(batch, batch, product));
  INTERP_ASSIGN_OR_RETURN(const int64_t x_rows, CheckedProduct(batch[0], product.m));
  INTERP_ASSIGN_OR_RETURN(const int64_t y_rows, CheckedProduct(batch[0], product.n));
  INTERP_ASSIGN_OR_RETURN(const int64_t x_size, CheckedProduct(x_rows, product.k));
  INTERP_ASSIGN_OR_RETURN(const int64_t y_size, CheckedProduct(y_rows, product.k));
  INTERP_ASSIGN_OR_RETURN(int64_t elements, CheckedSum(x_size, y_size));
  INTERP_ASSIGN_OR_RETURN(elements, CheckedSum(elements, size));
  INTERP_ASSIGN_OR_RETURN(const int64_t bytes, CheckedProduct(elements, sizeof(T)));
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(static_cast<size_t>(bytes)));
  T* const left = work.data<T>();
  T* const right = left + x_size;
  T* const result = right + y_size;
  INTERP_RETURN_IF_ERROR(
      Arrange(ctx, lengths, x, Joined({&groups.batch, &groups.rows, &groups.summed}), left));
  const T one = 1;
  const Operand unit = {&one, {}, {}};
  INTERP_RETURN_IF_ERROR(Arrange(ctx, lengths, y == nullptr ? unit : *y,
                                 Joined({&groups.batch, &groups.summed, &groups.columns}), right));
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, left, right, /*y_constant=*/false,
                                           /*bias=*/nullptr, result));
  const Labels order = Joined({&groups.batch, &groups.rows, &groups.columns});
  Operand arranged = {result, {}, order};
  for (const Label label : order) arranged.shape.push_back(lengths[label]);
  return Arrange(ctx, lengths, arranged, out_labels, out);
}

template absl::Status Contract<float>(KernelContext&, absl::Span<const int64_t>, const Operand&,
                                      const Operand*, const Labels&, float*);
template absl::Status Contract<double>(KernelContext&, absl::Span<const int64_t>, const Operand&,
                                       const Operand*, const Labels&, double*);

}  // namespace interp::einsum
