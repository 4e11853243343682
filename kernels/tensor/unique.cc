// unique: Out = the different elements of X, sorted (`is_sorted`) or in the order in which they
// appear first; along `axis` they are slices, compared element by element.
//   Indices  where each of them is first in X
//   Index    for each element of X, which of Out it is
//   Counts   how often each appears
// unique_with_counts is the form that is not sorted, its counts called Count.
// unique_consecutive: the elements of X that differ from the one before.
#include <algorithm>
#include <numeric>

#include "core/op_def.h"
#include "kernels/util/indices.h"
#include "kernels/util/lines.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kNone = -1;

enum class Order : uint8_t { kSorted, kFirstSeen, kConsecutive };

struct UniqueAttrs {
  Order order = Order::kFirstSeen;
  IntList axis = {};  // none or one
  DType dtype = DType::kInt64;
  bool indices = false;
  bool inverse = false;
  bool counts = false;
};

void CheckUniqueAttrs(AttrReader& reader, const UniqueAttrs& attrs) {
  if (attrs.dtype != DType::kInt32 && attrs.dtype != DType::kInt64) {
    reader.Fail(
        absl::StrCat("attribute 'dtype' is ", Name(attrs.dtype), ", expected int32 or int64"));
  }
  if (attrs.axis.size() > 1) reader.Fail("attribute 'axis' has more than one entry");
}

UniqueAttrs ReadUnique(AttrReader& reader) {
  UniqueAttrs attrs = {.dtype = reader.Type("dtype", DType::kInt64), .inverse = true};
  if (reader.Bool("is_sorted", false)) {
    attrs = {Order::kSorted,
             ReadIntListAttr(reader, "axis"),
             attrs.dtype,
             reader.Bool("return_index", false),
             reader.Bool("return_inverse", false),
             reader.Bool("return_counts", false)};
  }
  CheckUniqueAttrs(reader, attrs);
  return attrs;
}

UniqueAttrs ReadUniqueWithCounts(AttrReader& reader) {
  const UniqueAttrs attrs = {
      .dtype = reader.Type("dtype", DType::kInt64), .inverse = true, .counts = true};
  CheckUniqueAttrs(reader, attrs);
  return attrs;
}

UniqueAttrs ReadConsecutive(AttrReader& reader) {
  const UniqueAttrs attrs = {Order::kConsecutive,
                             ReadIntListAttr(reader, "axis"),
                             reader.Type("dtype", DType::kInt64),
                             false,
                             reader.Bool("return_inverse", false),
                             reader.Bool("return_counts", false)};
  CheckUniqueAttrs(reader, attrs);
  return attrs;
}

// NaN stands behind all numbers and differs from everything, itself too.
template <typename T>
int CompareValues(T a, T b) {
  if (a < b) return -1;
  if (b < a) return 1;
  if (a == b) return 0;
  return a == a ? -1 : 1;
}

// Slices of X along the axis, each taken as one list of numbers.
template <typename T>
struct Slices {
  const T* x;
  Lines lines;

  int Compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < lines.outer; ++o) {
      const T* const base = x + o * lines.length * lines.inner;
      for (int64_t i = 0; i < lines.inner; ++i) {
        const T u = base[a * lines.inner + i];
        const T v = base[b * lines.inner + i];
        const int order = CompareValues(u, v);
        if (order != 0 && (u == u || v == v)) return order;
        if (order != 0) return a < b ? -1 : (a > b ? 1 : 0);
      }
    }
    return 0;
  }
  // The slices from the smallest to the largest, equal ones in their order.
  std::vector<int64_t> Sorted() const {
    std::vector<int64_t> order(static_cast<size_t>(lines.length));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
      const int compared = Compare(a, b);
      return compared != 0 ? compared < 0 : a < b;
    });
    return order;
  }
};

struct Found {
  std::vector<int64_t> indices;  // of the first of each
  std::vector<int64_t> inverse;
  std::vector<int64_t> counts;
};

// Groups neighbours in `order` that are equal.
template <typename T>
Found Group(const Slices<T>& slices, const std::vector<int64_t>& order) {
  Found found;
  found.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.Compare(order[i - 1], order[i]) != 0) {
      found.indices.push_back(order[i]);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    found.inverse[order[i]] = static_cast<int64_t>(found.indices.size()) - 1;
  }
  return found;
}

// Brings groups into the order in which they appear first.
Found BySight(const Found& sorted) {
  std::vector<int64_t> order(sorted.indices.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return sorted.indices[a] < sorted.indices[b]; });
  Found found;
  std::vector<int64_t> rank(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<int64_t>(i);
    found.indices.push_back(sorted.indices[order[i]]);
    found.counts.push_back(sorted.counts[order[i]]);
  }
  for (const int64_t group : sorted.inverse) found.inverse.push_back(rank[group]);
  return found;
}

template <typename T>
Found Find(const Slices<T>& slices, Order order) {
  if (order == Order::kConsecutive) {
    std::vector<int64_t> all(static_cast<size_t>(slices.lines.length));
    std::iota(all.begin(), all.end(), 0);
    return Group(slices, all);
  }
  const Found sorted = Group(slices, slices.Sorted());
  return order == Order::kSorted ? sorted : BySight(sorted);
}

absl::Status WriteIntegers(KernelContext& ctx, int slot, const std::vector<int64_t>& values) {
  Tensor* const out = ctx.optional_output(slot);
  if (out == nullptr) return absl::OkStatus();
  out->shape = {static_cast<int64_t>(values.size())};
  out->lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(*out));
  if (out->dtype == DType::kInt32) {
    std::copy(values.begin(), values.end(), out->mutable_data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), out->mutable_data<int64_t>());
  }
  return absl::OkStatus();
}

// Slots of an op of this family.
struct UniqueSlots {
  int out = 0;
  int indices = kNone;
  int inverse = kNone;
  int counts = kNone;
};

absl::Status WriteFound(KernelContext& ctx, const UniqueSlots& slots, const Found& found) {
  const UniqueAttrs& attrs = ctx.attrs<UniqueAttrs>();
  const auto write = [&](bool wanted, int slot, const std::vector<int64_t>& values) {
    if (slot == kNone) return absl::OkStatus();
    return WriteIntegers(ctx, slot, wanted ? values : std::vector<int64_t>());
  };
  INTERP_RETURN_IF_ERROR(write(attrs.indices, slots.indices, found.indices));
  INTERP_RETURN_IF_ERROR(write(attrs.inverse, slots.inverse, found.inverse));
  // Paddle's Index of elements in the order of their first sight has the shape of a scalar X.
  Tensor* const inverse = slots.inverse == kNone ? nullptr : ctx.optional_output(slots.inverse);
  if (inverse != nullptr && attrs.order == Order::kFirstSeen && ctx.input(kX).shape.rank() == 0) {
    inverse->shape = {};
  }
  return write(attrs.counts, slots.counts, found.counts);
}

template <typename T, const UniqueSlots& kSlots>
absl::Status Unique(KernelContext& ctx) {
  const UniqueAttrs& attrs = ctx.attrs<UniqueAttrs>();
  const Tensor& x = ctx.input(kX);
  Lines lines = {1, x.numel(), 1};
  Shape shape = {0};
  int axis = 0;
  if (!attrs.axis.empty() && x.shape.rank() > 0) {
    INTERP_ASSIGN_OR_RETURN(axis, ResolveAxis(attrs.axis[0], x.shape.rank()));
    shape = x.shape;
    lines = LinesAlong(shape, axis);
    if (lines.count() == 0) {
      return InvalidArgument("input 'X' has shape ", ToString(shape), ", whose slices along axis ",
                             axis, " have no elements");
    }
  }
  const Found found = Find(Slices<T>{x.data<T>(), lines}, attrs.order);
  Tensor& out = ctx.output(kSlots.out);
  shape[axis] = static_cast<int64_t>(found.indices.size());
  out.shape = shape;
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  if (out.numel() > 0) {
    GatherRows(ctx.num_threads(),
               {lines.outer, lines.length, lines.inner * static_cast<int64_t>(sizeof(T))},
               x.raw_data(), found.indices.data(), shape[axis], out.mutable_raw_data());
  }
  return WriteFound(ctx, kSlots, found);
}

template <const UniqueSlots& kSlots>
OpDef UniqueDef(absl::string_view type, const std::vector<SlotDef>& outputs,
                absl::StatusOr<ParsedAttrs> (*parse)(AttrReader& reader)) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}},
      .outputs = outputs,
      .parse = parse,
      .infer_dtype =
          [](DTypeContext& ctx) {
            for (const int slot : {kSlots.indices, kSlots.inverse, kSlots.counts}) {
              if (slot != kNone) ctx.Set(slot, ctx.attrs<UniqueAttrs>().dtype);
            }
          },
      .kernels = {{DType::kFloat32, Unique<float, kSlots>},
                  {DType::kFloat64, Unique<double, kSlots>},
                  {DType::kInt32, Unique<int32_t, kSlots>},
                  {DType::kInt64, Unique<int64_t, kSlots>}},
      .dynamic_outputs = true,
      .gradient = {.none = true},
  };
}

constexpr UniqueSlots kUniqueSlots = {0, 1, 2, 3};
constexpr UniqueSlots kCountedSlots = {.out = 0, .inverse = 1, .counts = 2};

INTERP_REGISTER_OP(UniqueDef<kUniqueSlots>(
    "unique", {{"Out"}, {"Indices", kOptional}, {"Index", kOptional}, {"Counts", kOptional}},
    ParseAttrs<UniqueAttrs, ReadUnique>));
INTERP_REGISTER_OP(UniqueDef<kCountedSlots>("unique_with_counts", {{"Out"}, {"Index"}, {"Count"}},
                                            ParseAttrs<UniqueAttrs, ReadUniqueWithCounts>));
INTERP_REGISTER_OP(UniqueDef<kCountedSlots>("unique_consecutive",
                                            {{"Out"}, {"Index", kOptional}, {"Counts", kOptional}},
                                            ParseAttrs<UniqueAttrs, ReadConsecutive>));

}  // namespace
}  // namespace interp
