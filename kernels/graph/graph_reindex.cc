// graph_reindex: numbers the nodes of a sampled graph anew. Out_Nodes are those of X, then those of
// Neighbors that are not among them, in the order they come. Node X[i] has Count[i] of the
// Neighbors: edge e goes from Reindex_Src[e], the number of Neighbors[e], to Reindex_Dst[e], the
// number of the node that has it; of a node that X lists twice, its last. Count may go over X
// several times, once for each kind of edge. Tables on other devices are not read.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op_def.h"

namespace interp::graph {
namespace {

constexpr int kX = 0;
constexpr int kNeighbors = 1;
constexpr int kCount = 2;
constexpr int kSrc = 0;
constexpr int kDst = 1;
constexpr int kNodes = 2;

// InvalidArgument unless the inputs are vectors, Count one of X, or of X again and again, that adds
// up to the neighbors.
absl::Status CheckInputs(const OpContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& count = ctx.input(kCount);
  const Tensor& neighbors = ctx.input(kNeighbors);
  if (x.shape.rank() != 1 || neighbors.shape.rank() != 1 || neighbors.dtype != x.dtype) {
    return InvalidArgument("inputs 'X' and 'Neighbors' are ", DescribeType(x), " and ",
                           DescribeType(neighbors), ", expected vectors of the same type");
  }
  const bool whole = x.numel() == 0 ? count.numel() == 0 : count.numel() % x.numel() == 0;
  if (count.dtype != DType::kInt32 || count.shape.rank() != 1 || !whole) {
    return InvalidArgument("input 'Count' is ", DescribeType(count), ", expected int32 numbers of ",
                           "the shape ", ToString(x.shape), " or a multiple of it");
  }
  int64_t edges = 0;
  for (int64_t i = 0; i < count.numel(); ++i) {
    const int32_t of_node = count.data<int32_t>()[i];
    if (of_node < 0) return InvalidArgument("input 'Count' has the value ", of_node);
    edges += of_node;
  }
  if (edges == neighbors.numel()) return absl::OkStatus();
  return InvalidArgument("input 'Count' adds up to ", edges, ", expected ", neighbors.numel(),
                         ", the number of 'Neighbors'");
}

template <typename T>
absl::Status Give(KernelContext& ctx, int slot, const std::vector<T>& values) {
  Tensor& out = ctx.output(slot);
  out.shape = {static_cast<int64_t>(values.size())};
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(values.begin(), values.end(), out.mutable_data<T>());
  return absl::OkStatus();
}

template <typename T>
absl::Status Reindex(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckInputs(ctx));
  const Tensor& x = ctx.input(kX);
  const T* const neighbors = ctx.input(kNeighbors).data<T>();
  const int32_t* const count = ctx.input(kCount).data<int32_t>();
  std::vector<T> nodes(x.data<T>(), x.data<T>() + x.numel());
  absl::flat_hash_map<T, T> numbers;
  numbers.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i]] = static_cast<T>(i);
  std::vector<T> src;
  for (int64_t e = 0; e < ctx.input(kNeighbors).numel(); ++e) {
    const auto [at, is_new] = numbers.try_emplace(neighbors[e], static_cast<T>(nodes.size()));
    if (is_new) nodes.push_back(neighbors[e]);
    src.push_back(at->second);
  }
  std::vector<T> dst;
  for (int64_t i = 0; i < ctx.input(kCount).numel(); ++i) {
    dst.insert(dst.end(), count[i], numbers[nodes[i % x.numel()]]);
  }
  INTERP_RETURN_IF_ERROR(Give(ctx, kSrc, src));
  INTERP_RETURN_IF_ERROR(Give(ctx, kDst, dst));
  return Give(ctx, kNodes, nodes);
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_reindex",
    .inputs = {{"X"},
               {"Neighbors", kAnyDType},
               {"Count", kAnyDType},
               {"HashTable_Value", kOptional | kNoNeedBuffer | kAnyDType},
               {"HashTable_Index", kOptional | kNoNeedBuffer | kAnyDType}},
    .outputs = {{"Reindex_Src"}, {"Reindex_Dst"}, {"Out_Nodes"}},
    .kernels = {{DType::kInt32, Reindex<int32_t>}, {DType::kInt64, Reindex<int64_t>}},
    .dynamic_outputs = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::graph
