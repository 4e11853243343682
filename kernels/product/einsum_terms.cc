#include <algorithm>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "kernels/product/einsum.h"
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

bool HasLabel(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
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
                                   [&](const Labels& labels) { return HasLabel(labels, label); });
    if (known && std::count(terms.out.begin(), terms.out.end(), label) == 1) continue;
    return InvalidArgument("attribute 'equation' is '", equation,
                           "', whose output has a letter twice or one that no operand has");
  }
  return terms;
}

}  // namespace interp::einsum
