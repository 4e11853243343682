// crf_decoding: the most likely tags of each sequence, by Viterbi's algorithm.
//
// Row 0 of Transition are the scores of starting in a tag, row 1 of ending in it, row 2 + i of
// going on from tag i. With Label the output is 1 where the path agrees with it, else 0. Padding
// is 0.
#include "core/op_def.h"
#include "kernels/crf/sequences.h"
#include "kernels/crf/viterbi.h"
#include "kernels/util/indices.h"

namespace interp::crf {
namespace {

constexpr int kEmission = 0;
constexpr int kTransition = 1;
constexpr int kLabel = 2;
constexpr int kLength = 3;
constexpr int kPath = 0;

// Tags by sequence: [rows, 1] with a LoD, [batch, steps] in padded form.
Shape PathShape(const OpContext& ctx) {
  const Shape& emission = ctx.input(kEmission).shape;
  return {emission[0], ctx.has_input(kLength) ? emission[1] : 1};
}

absl::Status InferCrfDecoding(InferContext& ctx) {
  const Tensor& emission = ctx.input(kEmission);
  const Tensor* length = ctx.optional_input(kLength);
  const int rank = length == nullptr ? 2 : 3;
  if (emission.shape.rank() != rank || emission.shape.back() < 1) {
    return InvalidArgument("input 'Emission' has shape ", ToString(emission.shape), ", expected ",
                           rank == 2 ? "[rows, tags]" : "[batch, steps, tags] with 'Length'");
  }
  const int64_t tags = emission.shape.back();
  const Shape& transition = ctx.input(kTransition).shape;
  if (transition.rank() != 2 || transition[0] - 2 != tags || transition[1] != tags) {
    return InvalidArgument("input 'Transition' has shape ", ToString(transition),
                           ", expected [tags + 2, tags] with ", tags, " tags");
  }
  if (length == nullptr) {
    INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(emission, "Emission").status());
  } else if (length->shape.CheckedNumel() != emission.shape[0]) {
    return InvalidArgument("input 'Length' has shape ", ToString(length->shape), ", expected ",
                           emission.shape[0], " elements");
  }
  const Tensor* label = ctx.optional_input(kLabel);
  if (label != nullptr && label->shape.CheckedNumel() != PathShape(ctx).CheckedNumel()) {
    return InvalidArgument("input 'Label' has shape ", ToString(label->shape),
                           ", expected a tag for each row of 'Emission' ",
                           ToString(emission.shape));
  }
  ctx.SetShape(kPath, PathShape(ctx));
  ctx.output(kPath).lod = emission.lod;
  return absl::OkStatus();
}

// Replaces the tags of `path` by 1 where they are those of `label`, else by 0.
absl::Status CompareWithLabel(const Tensor& label, const std::vector<Sequence>& sequences,
                              int64_t* path) {
  return WithIndices(label, "Label", [&](const auto* tags) {
    for (const Sequence& s : sequences) {
      for (int64_t i = s.first; i < s.first + s.length; ++i) path[i] = tags[i] == path[i] ? 1 : 0;
    }
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status CrfDecoding(KernelContext& ctx) {
  const Tensor& emission = ctx.input(kEmission);
  const Tensor* length = ctx.optional_input(kLength);
  std::vector<Sequence> sequences;
  if (length == nullptr) {
    sequences = LodSequences(emission.lod[0]);
  } else {
    INTERP_ASSIGN_OR_RETURN(sequences, PaddedSequences(*length, "Length", emission.shape[1]));
  }
  const int64_t tags = emission.shape.back();
  const int64_t size = ViterbiDecoder<T>::ScratchSize(tags, LongestOf(sequences));
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
  const T* const w = ctx.input(kTransition).data<T>();
  ViterbiDecoder<T> decoder(tags, {.transitions = w + 2 * tags, .start = w, .stop = w + tags},
                            scratch.data<T>());
  int64_t* const path = ctx.output(kPath).mutable_data<int64_t>();
  if (length != nullptr) std::fill_n(path, ctx.output(kPath).numel(), 0);
  for (const Sequence& sequence : sequences) {
    if (sequence.length == 0) continue;
    decoder.Decode(emission.data<T>() + sequence.first * tags, sequence.length,
                   path + sequence.first);
  }
  const Tensor* label = ctx.optional_input(kLabel);
  return label == nullptr ? absl::OkStatus() : CompareWithLabel(*label, sequences, path);
}

INTERP_REGISTER_OP(OpDef{
    .type = "crf_decoding",
    .inputs = {{"Emission"},
               {"Transition"},
               {"Label", kOptional | kAnyDType},
               {"Length", kOptional | kAnyDType}},
    .outputs = {{"ViterbiPath"}},
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kPath, DType::kInt64); },
    .infer = InferCrfDecoding,
    .kernels = {{DType::kFloat32, CrfDecoding<float>}, {DType::kFloat64, CrfDecoding<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::crf
