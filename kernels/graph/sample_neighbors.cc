// graph_sample_neighbors: up to sample_size neighbors of each node, all of them where it has no
// more or sample_size is below 0, without repeats. weighted_sample_neighbors: the same, where a
// neighbor is the likelier the larger the weight of its edge is: those with the largest
// log(uniform) / weight are taken. Node n has the neighbors Row[Colptr[n]] to Row[Colptr[n+1] - 1].
// Out has those of one node after the other, Count how many of each, and with return_eids Out_Eids
// what Eids has for these edges. Perm_Buffer is memory that Paddle uses on GPUs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "core/resource/distributions.h"
#include "kernels/graph/neighbors.h"

namespace interp::sample_neighbors {
namespace {

constexpr int kRow = 0;
constexpr int kColPtr = 1;
constexpr int kNodes = 2;
constexpr int kEids = 3;
constexpr int kWeights = 4;
constexpr int kOut = 0;
constexpr int kCount = 1;
constexpr int kOutEids = 2;

struct Attrs {
  int64_t sample_size = -1;
  bool return_eids = false;
};

Attrs ReadAttrs(AttrReader& reader) {
  return {reader.Int("sample_size", -1), reader.Bool("return_eids", false)};
}

absl::Status CheckEdges(const OpContext& ctx, int slot, absl::string_view name, DType dtype) {
  const Tensor* const values = ctx.optional_input(slot);
  const int64_t edges = ctx.input(kRow).numel();
  if (values != nullptr && values->numel() == edges && values->dtype == dtype) {
    return absl::OkStatus();
  }
  return InvalidArgument("input '", name, "' ",
                         values == nullptr ? "is missing" : "is " + DescribeType(*values),
                         ", expected ", Name(dtype), " for each of the ", edges, " edges");
}

// ChooseEvenly by weight. A weight that is no positive number comes last.
void ChooseByWeight(const RandomStream& random, int64_t size, const float* weights,
                    std::vector<int64_t>& edges) {
  std::vector<std::pair<double, int64_t>> order;
  for (size_t i = 0; i < edges.size(); ++i) {
    const double weight = weights[edges[i]];
    const double key = -std::log(OpenUnit(random.Word(i))) / weight;
    order.emplace_back(weight > 0 ? key : std::numeric_limits<double>::infinity(), edges[i]);
  }
  std::partial_sort(order.begin(), order.begin() + size, order.end());
  for (int64_t i = 0; i < size; ++i) edges[i] = order[i].second;
}

template <typename T>
absl::Status Give(KernelContext& ctx, int slot, const std::vector<T>& values) {
  Tensor& out = ctx.output(slot);
  out.shape = {std::ssize(values)};
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  std::copy(values.begin(), values.end(), out.mutable_data<T>());
  return absl::OkStatus();
}

// The edges of the sample, of one node after the other.
struct Chosen {
  std::vector<int64_t> edges;
  std::vector<int32_t> counts;

  template <typename T>
  std::vector<T> Of(const Tensor& values) const {
    std::vector<T> of_edges;
    for (const int64_t edge : edges) of_edges.push_back(values.data<T>()[edge]);
    return of_edges;
  }
};

// `weights` may be null.
template <typename T>
absl::StatusOr<Chosen> Choose(KernelContext& ctx, const float* weights) {
  const Tensor& nodes = ctx.input(kNodes);
  const int64_t most = ctx.attrs<Attrs>().sample_size;
  const RandomStream random = ctx.random();
  Chosen chosen;
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < nodes.numel(); ++i) {
    INTERP_ASSIGN_OR_RETURN(
        const graph::Edges of_node,
        graph::EdgesOf(ctx.input(kColPtr), ctx.input(kRow).numel(), nodes.data<T>()[i]));
    edges.resize(static_cast<size_t>(of_node.count));
    std::iota(edges.begin(), edges.end(), of_node.first);
    const int64_t size = most < 0 ? of_node.count : std::min(most, of_node.count);
    const RandomStream of_this = random.Split(static_cast<uint64_t>(i));
    if (size < of_node.count && weights != nullptr) {
      ChooseByWeight(of_this, size, weights, edges);
    } else if (size < of_node.count) {
      graph::ChooseEvenly(of_this, size, edges);
    }
    chosen.edges.insert(chosen.edges.end(), edges.begin(), edges.begin() + size);
    chosen.counts.push_back(static_cast<int32_t>(size));
  }
  return chosen;
}

template <typename T, bool kWeighted>
absl::Status Sample(KernelContext& ctx) {
  const bool return_eids = ctx.attrs<Attrs>().return_eids;
  if (return_eids) INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kEids, "eids", DTypeOf<T>));
  const float* weights = nullptr;
  if constexpr (kWeighted) {
    INTERP_RETURN_IF_ERROR(CheckEdges(ctx, kWeights, "edge_weight", DType::kFloat32));
    weights = ctx.input(kWeights).data<float>();
  }
  INTERP_ASSIGN_OR_RETURN(const Chosen chosen, Choose<T>(ctx, weights));
  INTERP_RETURN_IF_ERROR(Give<T>(ctx, kOut, chosen.Of<T>(ctx.input(kRow))));
  INTERP_RETURN_IF_ERROR(Give<int32_t>(ctx, kCount, chosen.counts));
  if (!ctx.has_output(kOutEids)) return absl::OkStatus();
  return Give<T>(ctx, kOutEids, return_eids ? chosen.Of<T>(ctx.input(kEids)) : std::vector<T>());
}

OpDef SampleDef(absl::string_view type, const std::vector<SlotDef>& inputs,
                const std::vector<SlotDef>& outputs, KernelFn int32_kernel, KernelFn int64_kernel) {
  return OpDef{
      .type = type,
      .inputs = inputs,
      .outputs = outputs,
      .parse = ParseAttrs<Attrs, ReadAttrs>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kCount, DType::kInt32); },
      .kernels = {{DType::kInt32, int32_kernel}, {DType::kInt64, int64_kernel}},
      .dynamic_outputs = true,
      .random = true,
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(SampleDef("graph_sample_neighbors",
                             {{"Row"},
                              {"Col_Ptr"},
                              {"X"},
                              {"Eids", kOptional},
                              {"Perm_Buffer", kOptional | kNoNeedBuffer | kAnyDType}},
                             {{"Out"}, {"Out_Count"}, {"Out_Eids", kOptional}},
                             Sample<int32_t, false>, Sample<int64_t, false>));
INTERP_REGISTER_OP(SampleDef(
    "weighted_sample_neighbors",
    {{"row"}, {"colptr"}, {"input_nodes"}, {"eids", kOptional}, {"edge_weight", kAnyDType}},
    {{"out_neighbors"}, {"out_count"}, {"out_eids", kOptional}}, Sample<int32_t, true>,
    Sample<int64_t, true>));

}  // namespace
}  // namespace interp::sample_neighbors
