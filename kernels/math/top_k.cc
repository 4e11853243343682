// top_k, top_k_v2: the k largest (or smallest) elements along an axis, in order, and where they
// were. top_k takes the last axis and the largest. Without `sorted` they are in any order: on the
// host in that of a selection, on GPUs sorted.

#include "kernels/math/sorting.h"
#include "kernels/math/sorting_attrs.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kK = 1;  // one integer; wins over the attribute
constexpr int kOut = 0;
constexpr int kIndices = 1;

TopKAttrs ReadTopKAttrs(AttrReader& attrs) {
  return {.k = attrs.Long("k", 1), .partial_sort = true};
}

TopKAttrs ReadTopKV2Attrs(AttrReader& attrs) {
  return {attrs.Long("k", 1), attrs.Long("axis", -1), attrs.Bool("largest", true),
          attrs.Bool("sorted", true)};
}

absl::StatusOr<int64_t> ReadK(const InferContext& ctx) {
  const Tensor* tensor = ctx.optional_input(kK);
  if (tensor == nullptr) return ctx.attrs<TopKAttrs>().k;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> values, InferContext::Integers(*tensor));
  if (values.size() != 1) {
    return InvalidArgument("input 'K' is ", DescribeType(*tensor), ", expected one element");
  }
  return values[0];
}

absl::Status InferTopK(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  const int64_t attr_axis = ctx.attrs<TopKAttrs>().axis;
  INTERP_RETURN_IF_ERROR(CheckAxis(attr_axis, x, "X"));
  const int axis = AxisOf(attr_axis, x);
  INTERP_ASSIGN_OR_RETURN(const int64_t k, ReadK(ctx));
  const int64_t length = x.rank() == 0 ? 1 : x[axis];
  // As in Paddle, a number has one largest element whatever k is.
  if (x.rank() > 0 && (k < 1 || k > length)) {
    return InvalidArgument("k is ", k, " for 'X' ", ToString(x), ", expected 1 to ", length);
  }
  for (const int output : {kOut, kIndices}) {
    ctx.ShareShape(kX, output);
    if (x.rank() > 0) ctx.output(output).shape[axis] = k;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status TopK(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const TopKAttrs& attrs = ctx.attrs<TopKAttrs>();
  Tensor& out = ctx.output(kOut);
  const int axis = AxisOf(attrs.axis, x.shape);
  const int64_t k = x.shape.rank() == 0 ? 1 : out.shape[axis];
  int64_t* indices = ctx.output(kIndices).mutable_data<int64_t>();
  const auto choose = [k, &attrs](Ranked<T>* first, Ranked<T>* last) {
    if (attrs.partial_sort) {
      // A NaN stays where it does not disturb: Paddle's kernel does not know them.
      std::partial_sort(first, first + k, last,
                        [](const Ranked<T>& a, const Ranked<T>& b) { return a.value > b.value; });
    } else if (attrs.largest) {
      SelectFirst<true>(first, last, k, attrs.sorted);
    } else {
      SelectFirst<false>(first, last, k, attrs.sorted);
    }
  };
  return SortLines(ctx, x.data<T>(), LinesAlong(x.shape, axis), k, out.mutable_data<T>(), indices,
                   choose);
}

OpDef TopKDef() {
  return OpDef{
      .type = "top_k",
      .inputs = {{"X"}, {"K", kOptional | kAnyDType | kValueInInfer}},
      .outputs = {{"Out"}, {"Indices"}},
      .parse = ParseAttrs<TopKAttrs, ReadTopKAttrs>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kIndices, DType::kInt64); },
      .infer = InferTopK,
      .kernels = {{DType::kFloat32, TopK<float>}, {DType::kFloat64, TopK<double>}},
      .gradient = {.inputs = {"X", "Indices", "Out@GRAD"}, .outputs = {"X@GRAD"}},
  };
}

OpDef TopKV2Def() {
  OpDef def = TopKDef();
  def.type = "top_k_v2";
  def.parse = ParseAttrs<TopKAttrs, ReadTopKV2Attrs>;
  def.gradient.inputs.emplace_back("K");
  def.kernels.push_back({DType::kInt32, TopK<int32_t>});
  def.kernels.push_back({DType::kInt64, TopK<int64_t>});
  return def;
}

INTERP_REGISTER_OP(TopKDef());
INTERP_REGISTER_OP(TopKV2Def());

}  // namespace
}  // namespace interp
