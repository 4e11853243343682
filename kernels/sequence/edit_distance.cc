// edit_distance: for each pair of strings the fewest insertions, deletions and substitutions that
// make Hyps out of Refs; `normalized` divides them by the length of Refs. Strings are sequences, or
// rows of a matrix whose lengths HypsLength and RefsLength tell. SequenceNum has their number.
#include <algorithm>
#include <numeric>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kHyps = 0;
constexpr int kRefs = 1;
constexpr int kHypsLength = 2;
constexpr int kRefsLength = 3;
constexpr int kSequenceNum = 0;
constexpr int kOut = 1;

struct EditDistanceAttrs {
  bool normalized = false;
};

EditDistanceAttrs ReadEditDistanceAttrs(AttrReader& reader) {
  return {reader.Bool("normalized", false)};
}

DType KernelDType(const DTypeContext& ctx) { return ctx.input(kHyps); }

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kSequenceNum, DType::kInt64);
  ctx.Set(kOut, DType::kFloat32);
}

bool IsPadded(const OpContext& ctx) { return ctx.has_input(kHypsLength); }

absl::Status CheckMatrix(const Tensor& strings, const Tensor& lengths, absl::string_view slot) {
  if (strings.shape.rank() >= 2 && lengths.numel() == strings.shape[0]) return absl::OkStatus();
  return InvalidArgument("input '", slot, "' has shape ", ToString(strings.shape),
                         ", expected a row for each of the ", lengths.numel(), " lengths");
}

// Number of strings in sequences. ctc_align stands in for no tokens at all with one row beyond its
// LoD, so rows may be left.
absl::StatusOr<int64_t> CheckSequences(const Tensor& strings, absl::string_view slot) {
  if (strings.lod.size() != 1 || strings.lod[0].empty() || strings.shape.rank() == 0) {
    return InvalidArgument("input '", slot, "' has a LoD of ", strings.lod.size(),
                           " levels, expected 1 (or lengths in '", slot, "Length')");
  }
  const Offsets level = strings.lod[0];
  INTERP_RETURN_IF_ERROR(CheckOffsets(level, std::min(level.back(), strings.numel()), slot));
  return SequenceCount(level);
}

absl::StatusOr<int64_t> CountStrings(const OpContext& ctx) {
  const Tensor& hyps = ctx.input(kHyps);
  const Tensor& refs = ctx.input(kRefs);
  if (ctx.has_input(kHypsLength) != ctx.has_input(kRefsLength)) {
    return InvalidArgument("one of the inputs 'HypsLength' and 'RefsLength' is missing");
  }
  if (IsPadded(ctx)) {
    INTERP_RETURN_IF_ERROR(CheckMatrix(hyps, ctx.input(kHypsLength), "Hyps"));
    INTERP_RETURN_IF_ERROR(CheckMatrix(refs, ctx.input(kRefsLength), "Refs"));
    if (hyps.shape[0] == refs.shape[0]) return hyps.shape[0];
  } else {
    INTERP_ASSIGN_OR_RETURN(const int64_t count, CheckSequences(hyps, "Hyps"));
    INTERP_ASSIGN_OR_RETURN(const int64_t refs_count, CheckSequences(refs, "Refs"));
    if (count == refs_count) return count;
  }
  return InvalidArgument("inputs 'Hyps' and 'Refs' hold different numbers of strings");
}

absl::Status InferEditDistance(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int64_t count, CountStrings(ctx));
  ctx.SetShape(kSequenceNum, {1});
  ctx.SetShape(kOut, {count, 1});
  return absl::OkStatus();
}

// String i is values[begin[i]] ... of length[i] tokens.
template <typename T>
struct Strings {
  const T* values;
  std::vector<int64_t> begin;
  std::vector<int64_t> length;

  absl::Span<const T> operator[](int64_t i) const {
    return {values + begin[i], static_cast<size_t>(length[i])};
  }
};

template <typename T>
absl::StatusOr<Strings<T>> ReadStrings(const Tensor& tensor, const Tensor* lengths,
                                       absl::string_view slot) {
  Strings<T> strings = {tensor.data<T>(), {}, {}};
  if (lengths == nullptr) {
    const Offsets level = tensor.lod[0];
    strings.begin.assign(level.begin(), level.end() - 1);
    for (int64_t i = 0; i < SequenceCount(level); ++i) {
      strings.length.push_back(level[i + 1] - level[i]);
    }
    return strings;
  }
  INTERP_ASSIGN_OR_RETURN(strings.length, InferContext::Integers(*lengths));
  const int64_t row = RowSize(tensor);
  for (size_t i = 0; i < strings.length.size(); ++i) {
    strings.begin.push_back(static_cast<int64_t>(i) * row);
    if (strings.length[i] >= 0 && strings.length[i] <= row) continue;
    return InvalidArgument("input '", slot, "Length' has the value ", strings.length[i],
                           ", expected 0 to ", row);
  }
  return strings;
}

// Levenshtein's distance. `row` is scratch: the distances of all beginnings of `refs`.
template <typename T>
int64_t Distance(absl::Span<const T> hyps, absl::Span<const T> refs, std::vector<int64_t>& row) {
  row.resize(refs.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < hyps.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < refs.size(); ++j) {
      const int64_t substituted = diagonal + (hyps[i] == refs[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

template <typename T>
absl::Status EditDistance(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Strings<T> hyps,
      ReadStrings<T>(ctx.input(kHyps), ctx.optional_input(kHypsLength), "Hyps"));
  INTERP_ASSIGN_OR_RETURN(
      const Strings<T> refs,
      ReadStrings<T>(ctx.input(kRefs), ctx.optional_input(kRefsLength), "Refs"));
  const auto count = std::ssize(hyps.length);
  const bool normalized = ctx.attrs<EditDistanceAttrs>().normalized;
  const auto empty = std::find(refs.length.begin(), refs.length.end(), 0);
  if (normalized && empty != refs.length.end()) {
    return InvalidArgument("string ", empty - refs.length.begin(),
                           " of input 'Refs' is empty, which 'normalized' does not allow");
  }
  *ctx.output(kSequenceNum).mutable_data<int64_t>() = count;
  float* const out = ctx.output(kOut).mutable_data<float>();
  ParallelFor(ctx.num_threads(), count, /*grain=*/16, [&](int64_t begin, int64_t end) {
    std::vector<int64_t> row;
    for (int64_t i = begin; i < end; ++i) {
      const auto distance = static_cast<float>(Distance(hyps[i], refs[i], row));
      out[i] = normalized ? distance / static_cast<float>(refs.length[i]) : distance;
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "edit_distance",
    .inputs = {{"Hyps"},
               {"Refs"},
               {"HypsLength", kOptional | kAnyDType},
               {"RefsLength", kOptional | kAnyDType}},
    .outputs = {{"SequenceNum"}, {"Out"}},
    .parse = ParseAttrs<EditDistanceAttrs, ReadEditDistanceAttrs>,
    .kernel_dtype = KernelDType,
    .infer_dtype = InferDTypes,
    .infer = InferEditDistance,
    .kernels = {{DType::kInt64, EditDistance<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
