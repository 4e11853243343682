// class_center_sample: SampledLocalClassCenter lists the classes of Label in ascending order, then
// others drawn at random up to num_samples, where the former are fewer; RemappedLabel are the
// places of the labels in that list.
#include <algorithm>
#include <random>
#include <vector>

#include "kernels/random/draw.h"
#include "kernels/util/indices.h"

namespace interp::random {
namespace {

constexpr int kLabel = 0;
constexpr int kRemapped = 0;
constexpr int kSampled = 1;

struct Attrs {
  int64_t num_classes = 0;
  int64_t num_samples = 0;
  int32_t seed = 0;  // 0: none
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("num_classes", 0), reader.Int("num_samples", 0),
                       reader.Bool("fix_seed", false) ? reader.Int("seed", 0) : 0};
  if (attrs.num_samples <= 0 || attrs.num_samples > attrs.num_classes) {
    reader.Fail(absl::StrCat("attribute 'num_samples' is ", attrs.num_samples,
                             ", expected 1 to 'num_classes', ", attrs.num_classes));
  }
  if (const int32_t ranks = reader.Int("nranks", 1); ranks > 1) {
    reader.Fail(
        absl::StrCat("attribute 'nranks' is ", ranks, ", expected 1: no ranks share classes"));
  }
  return attrs;
}

// Appends classes that are not in `chosen`, in the order in which Paddle draws them with that seed.
template <typename T>
void AddSeeded(const Attrs& attrs, std::vector<bool>& chosen, std::vector<T>& list) {
  std::mt19937_64 engine = SeededEngine(attrs.seed);
  std::uniform_int_distribution<T> draw(0, static_cast<T>(attrs.num_classes - 1));
  while (std::ssize(list) < attrs.num_samples) {
    const T candidate = draw(engine);
    if (chosen[candidate]) continue;
    chosen[candidate] = true;
    list.push_back(candidate);
  }
}

// The same by the stream of the op: the first places of a random order of the rest.
template <typename T>
void AddDrawn(const Attrs& attrs, const RandomStream& stream, const std::vector<bool>& chosen,
              std::vector<T>& list) {
  std::vector<T> rest;
  for (int64_t i = 0; i < attrs.num_classes; ++i) {
    if (!chosen[i]) rest.push_back(static_cast<T>(i));
  }
  for (int64_t i = 0; std::ssize(list) < attrs.num_samples; ++i) {
    const uint64_t left = rest.size() - static_cast<uint64_t>(i);
    std::swap(rest[i], rest[i + static_cast<int64_t>(Below(BitsOf(stream, i), left))]);
    list.push_back(rest[i]);
  }
}

template <typename T>
absl::Status SampleClasses(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Tensor& label = ctx.input(kLabel);
  const T* const labels = label.data<T>();
  INTERP_RETURN_IF_ERROR(CheckIndices(labels, label.numel(), attrs.num_classes, "Label"));
  std::vector<bool> chosen(static_cast<size_t>(attrs.num_classes));
  for (int64_t i = 0; i < label.numel(); ++i) chosen[labels[i]] = true;
  std::vector<T> list;
  std::vector<T> place(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    place[i] = static_cast<T>(list.size());
    if (chosen[i]) list.push_back(static_cast<T>(i));
  }
  if (attrs.seed != 0) {
    AddSeeded(attrs, chosen, list);
  } else {
    AddDrawn(attrs, ctx.random(), chosen, list);
  }
  Tensor& remapped = ctx.output(kRemapped);
  remapped.shape = label.shape;
  remapped.lod = label.lod;
  INTERP_RETURN_IF_ERROR(ctx.Allocate(remapped));
  for (int64_t i = 0; i < label.numel(); ++i) remapped.mutable_data<T>()[i] = place[labels[i]];
  Tensor& sampled = ctx.output(kSampled);
  sampled.shape = {std::ssize(list)};
  sampled.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(sampled));
  std::copy(list.begin(), list.end(), sampled.mutable_data<T>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "class_center_sample",
    .inputs = {{"Label"}},
    .outputs = {{"RemappedLabel"}, {"SampledLocalClassCenter"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .kernels = {{DType::kInt32, SampleClasses<int32_t>}, {DType::kInt64, SampleClasses<int64_t>}},
    .dynamic_outputs = true,
    .random = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::random
