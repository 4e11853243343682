// graph_khop_sampler: samples the neighbors of the nodes of X, those of these, and so on, once for
// each of `sample_sizes`: up to so many of each node. Repeats beside each other in X count once; of
// a hop go on, in ascending order, those that the hop did not start from. Sample_Index has the
// nodes: those that each hop started from, then the others in the order they come. Edge e goes from
// the node with the number Out_Src[e] to that with the number Out_Dst[e]. Reindex_X has the numbers
// of X, Out_Eids what Eids has for the edges.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/op_def.h"
#include "kernels/graph/neighbors.h"

namespace interp::graph_khop_sampler {
namespace {

constexpr int kRow = 0;
constexpr int kEids = 1;
constexpr int kColPtr = 2;
constexpr int kX = 3;
constexpr int kSrc = 0;
constexpr int kDst = 1;
constexpr int kIndex = 2;
constexpr int kReindexX = 3;
constexpr int kOutEids = 4;

struct Attrs {
  std::vector<int64_t> sizes;
  bool return_eids = false;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {reader.Ints("sample_sizes", {}), reader.Bool("return_eids", false)};
}

template <typename T>
absl::Status Give(KernelContext& ctx, int slot, const std::vector<T>& values, bool column) {
  Tensor& out = ctx.output(slot);
  out.shape = {std::ssize(values)};
  if (column) out.shape.push_back(1);
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(values.begin(), values.end(), out.mutable_data<T>());
  return absl::OkStatus();
}

// What all hops have found.
template <typename T>
struct Sample {
  std::vector<T> starts;        // of one hop after the other
  std::vector<int64_t> counts;  // edges of each
  std::vector<int64_t> edges;
};

// Adds the edges of `nodes`, and gives the neighbors, ascending, that are not among `nodes`.
template <typename T>
absl::StatusOr<std::vector<T>> Hop(const KernelContext& ctx, const RandomStream& random,
                                   int64_t most, std::vector<T> nodes, Sample<T>& sample) {
  const Tensor& row = ctx.input(kRow);
  std::vector<T> found;
  std::vector<int64_t> edges;
  for (size_t i = 0; i < nodes.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const graph::Edges of_node,
                            graph::EdgesOf(ctx.input(kColPtr), row.numel(), nodes[i]));
    edges.resize(static_cast<size_t>(of_node.count));
    std::iota(edges.begin(), edges.end(), of_node.first);
    if (most >= 0 && most < of_node.count) {
      graph::ChooseEvenly(random.Split(i), most, edges);
      edges.resize(static_cast<size_t>(most));
    }
    sample.starts.push_back(nodes[i]);
    sample.counts.push_back(std::ssize(edges));
    sample.edges.insert(sample.edges.end(), edges.begin(), edges.end());
    for (const int64_t edge : edges) found.push_back(row.data<T>()[edge]);
  }
  std::sort(nodes.begin(), nodes.end());
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<T> next;
  std::set_difference(found.begin(), found.end(), nodes.begin(), nodes.end(),
                      std::back_inserter(next));
  return next;
}

template <typename T>
absl::Status GiveEids(KernelContext& ctx, const Sample<T>& sample) {
  std::vector<T> of_edges;
  if (ctx.attrs<Attrs>().return_eids) {
    const Tensor* const eids = ctx.optional_input(kEids);
    if (eids == nullptr || eids->numel() != ctx.input(kRow).numel()) {
      return InvalidArgument("input 'Eids' ", eids == nullptr ? "is missing" : "has another size",
                             ", expected a number for each of the ", ctx.input(kRow).numel(),
                             " edges");
    }
    for (const int64_t edge : sample.edges) of_edges.push_back(eids->data<T>()[edge]);
  }
  return ctx.has_output(kOutEids) ? Give(ctx, kOutEids, of_edges, /*column=*/false)
                                  : absl::OkStatus();
}

// Numbers the nodes of the sample anew.
template <typename T>
absl::Status GiveGraph(KernelContext& ctx, const Sample<T>& sample) {
  std::vector<T> index = sample.starts;
  absl::flat_hash_map<T, T> numbers;
  for (size_t i = 0; i < index.size(); ++i) numbers[index[i]] = static_cast<T>(i);
  std::vector<T> src;
  for (const int64_t edge : sample.edges) {
    const T node = ctx.input(kRow).data<T>()[edge];
    const auto [at, is_new] = numbers.try_emplace(node, static_cast<T>(index.size()));
    if (is_new) index.push_back(node);
    src.push_back(at->second);
  }
  std::vector<T> dst;
  for (size_t i = 0; i < sample.starts.size(); ++i) {
    dst.insert(dst.end(), static_cast<size_t>(sample.counts[i]), numbers[sample.starts[i]]);
  }
  const Tensor& x = ctx.input(kX);
  std::vector<T> of_x;
  for (int64_t i = 0; i < x.numel(); ++i) of_x.push_back(numbers[x.data<T>()[i]]);
  INTERP_RETURN_IF_ERROR(Give(ctx, kSrc, src, /*column=*/true));
  INTERP_RETURN_IF_ERROR(Give(ctx, kDst, dst, /*column=*/true));
  INTERP_RETURN_IF_ERROR(Give(ctx, kIndex, index, /*column=*/false));
  return Give(ctx, kReindexX, of_x, /*column=*/false);
}

template <typename T>
absl::Status KhopSampler(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const RandomStream random = ctx.random();
  std::vector<T> nodes(x.data<T>(), x.data<T>() + x.numel());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  Sample<T> sample;
  uint64_t hop = 0;
  for (const int64_t most : ctx.attrs<Attrs>().sizes) {
    if (nodes.empty()) break;
    INTERP_ASSIGN_OR_RETURN(nodes, Hop(ctx, random.Split(hop++), most, std::move(nodes), sample));
  }
  INTERP_RETURN_IF_ERROR(GiveEids(ctx, sample));
  return GiveGraph(ctx, sample);
}

INTERP_REGISTER_OP(OpDef{
    .type = "graph_khop_sampler",
    .inputs = {{"Row"}, {"Eids", kOptional}, {"Col_Ptr"}, {"X"}},
    .outputs = {{"Out_Src"}, {"Out_Dst"}, {"Sample_Index"}, {"Reindex_X"}, {"Out_Eids", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernels = {{DType::kInt32, KhopSampler<int32_t>}, {DType::kInt64, KhopSampler<int64_t>}},
    .dynamic_outputs = true,
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::graph_khop_sampler
