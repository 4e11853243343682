// filter_by_instag: Out = the sequences of Ins (with `is_lod`; else its rows) of which a tag in
// Ins_tag is among Filter_tag. Row i of IndexMap says where sequence i of Out starts, where it
// started in Ins, and its length; LossWeight is 1 for each. When nothing is left, Out is one row of
// `out_val_ifempty` with a LossWeight of 0.
#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kIns = 0;
constexpr int kInsTag = 1;
constexpr int kFilterTag = 2;
constexpr int kOut = 0;
constexpr int kLossWeight = 1;
constexpr int kIndexMap = 2;
constexpr int64_t kMapWidth = 3;

struct FilterAttrs {
  bool is_lod = true;
  int64_t out_val_ifempty = 0;
};

FilterAttrs ReadFilterAttrs(AttrReader& reader) {
  return {reader.Bool("is_lod", true), reader.Long("out_val_ifempty", 0)};
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kLossWeight, DType::kFloat32);
  ctx.Set(kIndexMap, DType::kInt64);
}

struct Sequence {
  int64_t begin = 0;
  int64_t length = 0;
};

absl::StatusOr<std::vector<Sequence>> Sequences(const Tensor& ins, bool is_lod) {
  std::vector<Sequence> sequences;
  if (!is_lod) {
    for (int64_t i = 0; i < ins.shape[0]; ++i) sequences.push_back({i, 1});
    return sequences;
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(ins, "Ins"));
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    sequences.push_back({offsets[i], offsets[i + 1] - offsets[i]});
  }
  return sequences;
}

absl::Status CheckTags(const Tensor& tags, absl::string_view name) {
  if (tags.dtype == DType::kInt64 && tags.shape.rank() > 0 && tags.numel() == tags.shape[0]) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' is ", DescribeType(tags),
                         ", expected int64 rows of one tag");
}

// Those of which a tag is wanted.
absl::StatusOr<std::vector<Sequence>> Kept(const KernelContext& ctx) {
  const Tensor& ins = ctx.input(kIns);
  const Tensor& tags = ctx.input(kInsTag);
  const Tensor& filter = ctx.input(kFilterTag);
  if (ins.shape.rank() != 2) {
    return InvalidArgument("input 'Ins' is ", DescribeType(ins), ", expected rank 2");
  }
  INTERP_RETURN_IF_ERROR(CheckTags(tags, "Ins_tag"));
  INTERP_RETURN_IF_ERROR(CheckTags(filter, "Filter_tag"));
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> all,
                          Sequences(ins, ctx.attrs<FilterAttrs>().is_lod));
  INTERP_ASSIGN_OR_RETURN(const Offsets offsets, OnlyLevelOffsets(tags, "Ins_tag"));
  if (SequenceCount(offsets) != std::ssize(all)) {
    return InvalidArgument("inputs 'Ins' and 'Ins_tag' have ", all.size(), " and ",
                           SequenceCount(offsets), " sequences");
  }
  const auto* const wanted = filter.data<int64_t>();
  const absl::flat_hash_set<int64_t> filters(wanted, wanted + filter.numel());
  const auto* const tag = tags.data<int64_t>();
  std::vector<Sequence> kept;
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::any_of(tag + offsets[i], tag + offsets[i + 1],
                    [&](int64_t t) { return filters.contains(t); })) {
      kept.push_back(all[i]);
    }
  }
  return kept;
}

absl::Status AllocateRows(const KernelContext& ctx, Tensor& tensor, int64_t rows, int64_t width,
                          std::vector<int64_t> offsets) {
  tensor.shape = {rows, width};
  tensor.lod = {std::move(offsets)};
  return ctx.Allocate(tensor);
}

absl::Status NothingLeft(KernelContext& ctx) {
  const int64_t width = ctx.input(kIns).shape[1];
  Tensor& out = ctx.output(kOut);
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, out, 1, width, {0, 1}));
  const ScalarBytes value = ToScalarBytes(out.dtype, ctx.attrs<FilterAttrs>().out_val_ifempty);
  FillElements(1, SizeOf(out.dtype), value.bytes.data(), out.mutable_raw_data(), width);
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, ctx.output(kLossWeight), 1, 1, {0, 1}));
  *ctx.output(kLossWeight).mutable_data<float>() = 0.0f;
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, ctx.output(kIndexMap), 1, kMapWidth, {0, 1}));
  auto* const map = ctx.output(kIndexMap).mutable_data<int64_t>();
  map[0] = 0;
  map[1] = map[2] = 1;
  return absl::OkStatus();
}

absl::Status FilterByInstag(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> kept, Kept(ctx));
  if (kept.empty()) return NothingLeft(ctx);
  const auto count = static_cast<int64_t>(kept.size());
  const Tensor& ins = ctx.input(kIns);
  std::vector<int64_t> offsets = {0};
  std::vector<int64_t> each = {0};
  for (const Sequence& sequence : kept) {
    offsets.push_back(offsets.back() + sequence.length);
    each.push_back(std::ssize(each));
  }
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, ctx.output(kLossWeight), count, 1, each));
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, ctx.output(kIndexMap), count, kMapWidth, each));
  Tensor& out = ctx.output(kOut);
  INTERP_RETURN_IF_ERROR(AllocateRows(ctx, out, offsets.back(), ins.shape[1], offsets));
  std::fill_n(ctx.output(kLossWeight).mutable_data<float>(), count, 1.0f);
  auto* map = ctx.output(kIndexMap).mutable_data<int64_t>();
  const size_t row_bytes = SizeOf(ins.dtype) * static_cast<size_t>(ins.shape[1]);
  for (int64_t i = 0; i < count; ++i) {
    *map++ = offsets[i];
    *map++ = kept[i].begin;
    *map++ = kept[i].length;
    const size_t bytes = row_bytes * static_cast<size_t>(kept[i].length);
    if (bytes == 0) continue;
    std::memcpy(At(out.mutable_raw_data(), offsets[i], row_bytes),
                At(ins.raw_data(), kept[i].begin, row_bytes), bytes);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "filter_by_instag",
    .inputs = {{"Ins"}, {"Ins_tag", kAnyDType}, {"Filter_tag", kAnyDType}},
    .outputs = {{"Out"}, {"LossWeight"}, {"IndexMap"}},
    .parse = ParseAttrs<FilterAttrs, ReadFilterAttrs>,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kFloat32, FilterByInstag},
                {DType::kFloat64, FilterByInstag},
                {DType::kInt32, FilterByInstag},
                {DType::kInt64, FilterByInstag}},
    .dynamic_outputs = true,
    .gradient = {.inputs = {"IndexMap", "Ins", "LossWeight", "Out@GRAD"}, .outputs = {"Ins@GRAD"}},
});

}  // namespace
}  // namespace interp
