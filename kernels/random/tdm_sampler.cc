// tdm_sampler: nodes of a tree for each item of X, layer by layer: with output_positive the item's
// own, which Travel lists, then neg_samples_num_list[l] others of the layer, none twice. Layer
// lists the nodes of all layers; those of layer l are its rows from layer_offset_lod[l] to [l+1].
// Labels is 1 for the item's own nodes and 0 for others. Where an item has no node in a layer, 0 in
// Travel, Out, Labels and Mask are 0; elsewhere Mask is 1.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "kernels/random/draw.h"
#include "kernels/util/indices.h"

namespace interp::random {
namespace {

constexpr int kX = 0;
constexpr int kTravel = 1;
constexpr int kLayer = 2;
constexpr int kOut = 0;
constexpr int kLabels = 1;
constexpr int kMask = 2;

struct Attrs {
  bool output_positive = true;
  std::vector<int64_t> negatives;  // by layer
  std::vector<int64_t> offsets;    // of the layers
  int32_t seed = 0;
  DType dtype = DType::kInt32;

  size_t layers() const { return negatives.size(); }
  int64_t size_of(size_t layer) const { return offsets[layer + 1] - offsets[layer]; }
  // The columns of the outputs.
  int64_t width() const {
    const int64_t own = output_positive ? std::ssize(negatives) : 0;
    return std::accumulate(negatives.begin(), negatives.end(), own);
  }
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Bool("output_positive", true), reader.Ints("neg_samples_num_list"),
                       reader.Ints("layer_offset_lod"), reader.Int("seed", 0),
                       reader.Type("dtype", DType::kInt32)};
  if (attrs.dtype != DType::kInt32 && attrs.dtype != DType::kInt64) {
    reader.Fail(
        absl::StrCat("attribute 'dtype' is ", Name(attrs.dtype), ", expected int32 or int64"));
  }
  if (attrs.offsets.size() != attrs.layers() + 1 || attrs.offsets[0] != 0) {
    reader.Fail(absl::StrCat("attribute 'layer_offset_lod' has ", attrs.offsets.size(),
                             " entries, expected 0 and the ends of ", attrs.layers(), " layers"));
    return attrs;
  }
  for (size_t l = 0; l < attrs.layers(); ++l) {
    if (attrs.negatives[l] >= 0 && attrs.negatives[l] < attrs.size_of(l)) continue;
    reader.Fail(absl::StrCat("attribute 'neg_samples_num_list' asks for ", attrs.negatives[l],
                             " nodes of layer ", l, ", which has ", attrs.size_of(l),
                             ", expected fewer"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& x = ctx.input(kX).shape;
  const Shape& travel = ctx.input(kTravel).shape;
  if (x.rank() < 1) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected a dimension or more");
  }
  if (travel.rank() != 2 || travel[1] != static_cast<int64_t>(attrs.layers())) {
    return InvalidArgument("input 'Travel' has shape ", ToString(travel), ", expected [items,",
                           attrs.layers(), "]");
  }
  if (ctx.input(kLayer).numel() != attrs.offsets.back()) {
    return InvalidArgument("input 'Layer' has shape ", ToString(ctx.input(kLayer).shape),
                           ", expected [", attrs.offsets.back(), ",1]");
  }
  for (const int slot : {kOut, kLabels, kMask}) ctx.SetShape(slot, {x.numel(), attrs.width()});
  return absl::OkStatus();
}

// Chooses among the nodes of the layers, all but one.
class NodeSampler {
 public:
  NodeSampler(const Attrs& attrs, const RandomStream& stream) : attrs_(attrs), stream_(stream) {
    if (attrs.seed != 0) engines_.assign(attrs.layers(), SeededEngine(attrs.seed));
  }

  // `nodes` are those of the layer.
  std::vector<int64_t> Sample(int64_t row, size_t layer, const int64_t* nodes, int64_t without) {
    return attrs_.seed != 0 ? SampleSeeded(layer, nodes, without)
                            : SampleDrawn(row, layer, nodes, without);
  }

 private:
  // In the order in which Paddle draws them with that seed, one engine a layer.
  std::vector<int64_t> SampleSeeded(size_t layer, const int64_t* nodes, int64_t without) {
    std::uniform_int_distribution<int> draw(0, static_cast<int>(attrs_.size_of(layer) - 1));
    std::vector<int64_t> chosen;
    while (std::ssize(chosen) < attrs_.negatives[layer]) {
      const int64_t node = nodes[draw(engines_[layer])];
      if (node == without || std::count(chosen.begin(), chosen.end(), node) > 0) continue;
      chosen.push_back(node);
    }
    return chosen;
  }

  // One number of the stream for each node that is chosen (Floyd).
  std::vector<int64_t> SampleDrawn(int64_t row, size_t layer, const int64_t* nodes,
                                   int64_t without) const {
    const int64_t size = attrs_.size_of(layer), wanted = attrs_.negatives[layer];
    const int64_t left_out = std::find(nodes, nodes + size, without) - nodes;
    const int64_t others = left_out == size ? size : size - 1;
    const RandomStream stream = stream_.Split(static_cast<uint64_t>(layer));
    absl::flat_hash_set<int64_t> taken;
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < wanted; ++i) {
      const int64_t last = others - wanted + i;
      const uint64_t bits = BitsOf(stream, row * wanted + i);
      int64_t at = static_cast<int64_t>(Below(bits, static_cast<uint64_t>(last + 1)));
      if (!taken.insert(at).second) taken.insert(at = last);
      chosen.push_back(nodes[at < left_out ? at : at + 1]);
    }
    return chosen;
  }

  const Attrs& attrs_;
  RandomStream stream_;
  std::vector<std::mt19937_64> engines_;
};

// Where the next values of the outputs go.
template <typename T>
struct Cursor {
  T *out, *labels, *mask;

  void Add(int64_t node, int label, int valid) {
    *out++ = static_cast<T>(node);
    if (labels != nullptr) *labels++ = static_cast<T>(label);
    *mask++ = static_cast<T>(valid);
  }
};

// Adds the nodes of one layer for one item, whose own is `own`.
template <typename T>
void AddLayer(const Attrs& attrs, NodeSampler& sampler, int64_t row, size_t layer,
              const std::vector<int64_t>& nodes, int64_t own, Cursor<T>& to) {
  const int64_t* const first = nodes.data() + attrs.offsets[layer];
  if (own == 0) {
    const int64_t count = attrs.negatives[layer] + (attrs.output_positive ? 1 : 0);
    for (int64_t i = 0; i < count; ++i) to.Add(0, 0, 0);
    return;
  }
  if (attrs.output_positive) to.Add(own, 1, 1);
  for (const int64_t node : sampler.Sample(row, layer, first, own)) to.Add(node, 0, 1);
}

// Sampling would not end in a layer of equal nodes.
absl::Status CheckDistinct(const Attrs& attrs, const std::vector<int64_t>& nodes) {
  for (size_t layer = 0; layer < attrs.layers(); ++layer) {
    absl::flat_hash_set<int64_t> seen;
    for (int64_t i = attrs.offsets[layer]; i < attrs.offsets[layer + 1]; ++i) {
      if (seen.insert(nodes[i]).second) continue;
      return InvalidArgument("input 'Layer' has node ", nodes[i], " twice in layer ", layer);
    }
  }
  return absl::OkStatus();
}

template <typename Out>
absl::Status SampleAll(KernelContext& ctx, const std::vector<int64_t>& items) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> travel,
                          InferContext::Integers(ctx.input(kTravel)));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> nodes,
                          InferContext::Integers(ctx.input(kLayer)));
  INTERP_RETURN_IF_ERROR(CheckDistinct(attrs, nodes));
  Tensor* const labels = ctx.optional_output(kLabels);
  Cursor<Out> to = {ctx.output(kOut).mutable_data<Out>(),
                    labels != nullptr ? labels->mutable_data<Out>() : nullptr,
                    ctx.output(kMask).mutable_data<Out>()};
  NodeSampler sampler(attrs, ctx.random());
  for (int64_t row = 0; row < std::ssize(items); ++row) {
    for (size_t layer = 0; layer < attrs.layers(); ++layer) {
      const int64_t own = travel[items[row] * std::ssize(attrs.negatives) + layer];
      AddLayer(attrs, sampler, row, layer, nodes, own, to);
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status TdmSampler(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  INTERP_RETURN_IF_ERROR(CheckIndices(x.data<T>(), x.numel(), ctx.input(kTravel).shape[0], "X"));
  const std::vector<int64_t> items(x.data<T>(), x.data<T>() + x.numel());
  return ctx.attrs<Attrs>().dtype == DType::kInt32 ? SampleAll<int32_t>(ctx, items)
                                                   : SampleAll<int64_t>(ctx, items);
}

INTERP_REGISTER_OP(OpDef{
    .type = "tdm_sampler",
    .inputs = {{"X"}, {"Travel", kAnyDType}, {"Layer", kAnyDType}},
    .outputs = {{"Out"}, {"Labels", kOptional}, {"Mask"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer_dtype =
        [](DTypeContext& ctx) {
          for (const int slot : {kOut, kLabels, kMask}) ctx.Set(slot, ctx.attrs<Attrs>().dtype);
        },
    .infer = Infer,
    .kernels = {{DType::kInt32, TdmSampler<int32_t>}, {DType::kInt64, TdmSampler<int64_t>}},
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
