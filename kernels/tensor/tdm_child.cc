// tdm_child: the children of tree nodes. Row n of TreeInfo is node n: its item (0: an inner node),
// its layer, its parent, and its children, of which there are `child_nums`, all 0 for a leaf. Child
// is X with these in a last dimension, and LeafMask is 1 where they are items. Node 0 is none and
// has no children.
#include "core/op_def.h"
#include "kernels/util/indices.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kTreeInfo = 1;
constexpr int kChild = 0;
constexpr int kLeafMask = 1;

constexpr int64_t kFirstChild = 3;  // column of TreeInfo

struct Attrs {
  int64_t child_nums = 0;
  DType dtype = DType::kInt32;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("child_nums", 0), reader.Type("dtype", DType::kInt32)};
  if (attrs.child_nums <= 0) {
    reader.Fail(
        absl::StrCat("attribute 'child_nums' is ", attrs.child_nums, ", expected more than 0"));
  }
  if (attrs.dtype != DType::kInt32 && attrs.dtype != DType::kInt64) {
    reader.Fail(
        absl::StrCat("attribute 'dtype' is ", Name(attrs.dtype), ", expected int32 or int64"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const int64_t children = ctx.attrs<Attrs>().child_nums;
  const Shape& tree = ctx.input(kTreeInfo).shape;
  if (tree.rank() != 2 || tree[1] < kFirstChild + children) {
    return InvalidArgument("input 'TreeInfo' has shape ", ToString(tree), ", expected [nodes,",
                           kFirstChild + children, "]");
  }
  Shape out = ctx.input(kX).shape;
  if (out.rank() == kMaxRank) {
    return InvalidArgument("input 'X' has shape ", ToString(out), ", expected a dimension less");
  }
  out.push_back(children);
  ctx.SetShape(kChild, out);
  ctx.SetShape(kLeafMask, out);
  return absl::OkStatus();
}

template <typename T, typename Node, typename Out>
absl::Status ListChildren(KernelContext& ctx, const Node* tree) {
  const int64_t children = ctx.attrs<Attrs>().child_nums;
  const int64_t nodes = ctx.input(kTreeInfo).shape[0];
  const int64_t width = ctx.input(kTreeInfo).shape[1];
  const T* const x = ctx.input(kX).data<T>();
  const int64_t count = ctx.input(kX).numel();
  INTERP_RETURN_IF_ERROR(CheckIndices(x, count, nodes, "X"));
  Out* child = ctx.output(kChild).mutable_data<Out>();
  Out* mask = ctx.output(kLeafMask).mutable_data<Out>();
  for (int64_t i = 0; i < count; ++i, child += children, mask += children) {
    const Node* const list = tree + static_cast<int64_t>(x[i]) * width + kFirstChild;
    const bool has_children = x[i] != 0 && list[0] != 0;
    if (has_children) INTERP_RETURN_IF_ERROR(CheckIndices(list, children, nodes, "TreeInfo"));
    for (int64_t k = 0; k < children; ++k) {
      child[k] = has_children ? static_cast<Out>(list[k]) : Out{0};
      mask[k] = has_children && tree[static_cast<int64_t>(list[k]) * width] != 0 ? 1 : 0;
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status TdmChild(KernelContext& ctx) {
  return WithIndices(ctx.input(kTreeInfo), "TreeInfo", [&ctx](const auto* tree) {
    using Node = std::decay_t<decltype(*tree)>;
    return ctx.attrs<Attrs>().dtype == DType::kInt32 ? ListChildren<T, Node, int32_t>(ctx, tree)
                                                     : ListChildren<T, Node, int64_t>(ctx, tree);
  });
}

INTERP_REGISTER_OP(OpDef{
    .type = "tdm_child",
    .inputs = {{"X"}, {"TreeInfo", kAnyDType}},
    .outputs = {{"Child"}, {"LeafMask"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          ctx.Set(kChild, ctx.attrs<Attrs>().dtype);
          ctx.Set(kLeafMask, ctx.attrs<Attrs>().dtype);
        },
    .infer = Infer,
    .kernels = {{DType::kInt32, TdmChild<int32_t>}, {DType::kInt64, TdmChild<int64_t>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
