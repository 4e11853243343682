#include "kernels/control_flow/lod_parts.h"

#include <cstring>

#include "kernels/sequence/lod.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

absl::Status MissingParts(const Tensor& tensor, int64_t begin, int64_t end, int64_t have) {
  return InvalidArgument("parts ", begin, " to ", end, " are wanted of a tensor that has ", have,
                         " (", DescribeType(tensor), " with ", tensor.lod.size(),
                         " LoD levels): the LoDs of the inputs do not fit each other");
}

absl::Status AppendLengths(const std::vector<int64_t>& offsets, int64_t begin, int64_t end,
                           std::vector<int64_t>& level) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    if (length < 0) return InvalidArgument("a LoD has descending offsets");
    level.push_back(level.back() + length);
  }
  return absl::OkStatus();
}

absl::Status CheckJoins(const Tensor& part, const Tensor& like) {
  bool fits = part.dtype == like.dtype && part.shape.rank() == like.shape.rank();
  for (int i = 1; fits && i < like.shape.rank(); ++i) fits = part.shape[i] == like.shape[i];
  if (fits) return absl::OkStatus();
  return InvalidArgument(DescribeType(part), " and ", DescribeType(like),
                         " are to be joined, expected one dtype and, but for the rows, one shape");
}

}  // namespace

int64_t CountParts(const Tensor& tensor, int64_t level) {
  if (level < std::ssize(tensor.lod)) return SequenceCount(tensor.lod[level]);
  return tensor.shape[0];
}

absl::StatusOr<RowRange> AppendParts(const Tensor& tensor, int64_t level, int64_t begin,
                                     int64_t end, Lod* lod) {
  const int64_t levels = std::ssize(tensor.lod) - level;
  if (levels < 0) {
    return InvalidArgument("a tensor has ", tensor.lod.size(), " LoD levels, expected ", level,
                           " at least");
  }
  if (lod != nullptr && lod->empty()) lod->assign(levels, {0});
  if (lod != nullptr && std::ssize(*lod) != levels) {
    return InvalidArgument("parts with ", levels, " and with ", lod->size(),
                           " LoD levels are to be joined");
  }
  for (int64_t i = 0; i < levels; ++i) {
    const std::vector<int64_t>& offsets = tensor.lod[level + i];
    if (begin < 0 || begin > end || end >= std::ssize(offsets)) {
      return MissingParts(tensor, begin, end, SequenceCount(offsets));
    }
    if (lod != nullptr) {
      INTERP_RETURN_IF_ERROR(AppendLengths(offsets, begin, end, (*lod)[i]));
    }
    begin = offsets[begin];
    end = offsets[end];
  }
  if (begin < 0 || begin > end || end > tensor.shape[0]) {
    return MissingParts(tensor, begin, end, tensor.shape[0]);
  }
  return RowRange{.tensor = &tensor, .begin = begin, .end = end};
}

absl::Status JoinRows(const KernelContext& ctx, absl::Span<const RowRange> ranges,
                      const Tensor& like, Tensor& out) {
  int64_t rows = 0;
  for (const RowRange& range : ranges) {
    INTERP_RETURN_IF_ERROR(CheckJoins(*range.tensor, like));
    rows += range.end - range.begin;
  }
  const size_t row_bytes = static_cast<size_t>(RowSize(like)) * SizeOf(like.dtype);
  Shape shape = like.shape;
  shape[0] = rows;
  INTERP_RETURN_IF_ERROR(
      Annotate(CheckLod(out.lod, shape), "the LoDs of what is to be joined do not fit each other"));
  out.shape = shape;
  out.dtype = like.dtype;
  out.layout = Layout::kPlain;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  char* to = static_cast<char*>(out.mutable_raw_data());
  for (const RowRange& range : ranges) {
    const size_t bytes = static_cast<size_t>(range.end - range.begin) * row_bytes;
    if (bytes == 0) continue;
    const char* const from = static_cast<const char*>(range.tensor->raw_data());
    std::memcpy(to, from + static_cast<size_t>(range.begin) * row_bytes, bytes);
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status CheckHasRows(const Tensor& x) {
  if (x.shape.rank() > 0) return absl::OkStatus();
  return InvalidArgument("input 'X' is ", DescribeType(x), ", expected a tensor with rows");
}

absl::StatusOr<const RankTable*> RankTableOf(const KernelContext& ctx, int slot) {
  const RankTable* const table = ctx.input_variable(slot).rank_table.get();
  if (table == nullptr) {
    return InvalidArgument("input 'RankTable' holds no rank table: nothing has written it");
  }
  return table;
}

absl::StatusOr<int64_t> IndexOf(const Tensor& index, absl::string_view slot) {
  if (index.numel() != 1) {
    return InvalidArgument("input '", slot, "' is ", DescribeType(index), ", expected one element");
  }
  int64_t value = 0;
  INTERP_RETURN_IF_ERROR(WithIndices(index, slot, [&](const auto* values) {
    value = values[0];
    return absl::OkStatus();
  }));
  if (value < 0) return InvalidArgument("input '", slot, "' is ", value, ", expected an index");
  return value;
}

absl::Status InferNothing(InferContext&) { return absl::OkStatus(); }

}  // namespace interp
