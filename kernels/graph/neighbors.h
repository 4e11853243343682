// Neighbors of nodes in a graph: node n has the neighbors Row[Colptr[n]] to Row[Colptr[n+1] - 1].
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/resource/random_stream.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp::graph {

// The edges of a node.
struct Edges {
  int64_t first = 0;
  int64_t count = 0;
};

// Those of `node`, where `pointers` is Colptr. InvalidArgument where there is no such node, or its
// edges are not among the `edges` of the graph.
template <typename T>
absl::StatusOr<Edges> EdgesOf(const Tensor& pointers, int64_t edges, T node) {
  if (node < 0 || node >= pointers.numel() - 1) {
    return InvalidArgument("there is no node ", node, ": the graph has ",
                           std::max<int64_t>(pointers.numel() - 1, 0));
  }
  const T begin = pointers.data<T>()[node];
  const T end = pointers.data<T>()[node + 1];
  if (begin < 0 || end < begin || end > edges) {
    return InvalidArgument("node ", node, " has the edges ", begin, " to ", end, " of ", edges);
  }
  return Edges{begin, end - begin};
}

// Puts `size` of `edges`, chosen by chance, at the front.
inline void ChooseEvenly(const RandomStream& random, int64_t size, std::vector<int64_t>& edges) {
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t rest = edges.size() - static_cast<uint64_t>(i);
    std::swap(edges[i], edges[i + static_cast<int64_t>(random.Word(i) * rest >> 32)]);
  }
}

}  // namespace interp::graph
