// viterbi_decode: the most likely tags of padded sequences and their scores.
//
// Transition [tags, tags] goes from row to column. With include_bos_eos_tag its last row are the
// scores of starting in a tag, and the row before it is added to those of the last step. Path is as
// wide as the longest sequence and 0 past the ends. An empty sequence has the best score of a first
// step.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/crf/sequences.h"
#include "kernels/crf/viterbi.h"
#include "kernels/util/check_shape.h"

namespace interp::crf {
namespace {

constexpr int kInput = 0;
constexpr int kTransition = 1;
constexpr int kLength = 2;
constexpr int kScores = 0;
constexpr int kPath = 1;

struct ViterbiAttrs {
  bool has_ends = true;
};

ViterbiAttrs ReadViterbi(AttrReader& reader) { return {reader.Bool("include_bos_eos_tag", true)}; }

absl::Status InferViterbiDecode(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const int64_t least = ctx.attrs<ViterbiAttrs>().has_ends ? 2 : 1;
  if (input.rank() != 3 || input[1] < 1 || input[2] < least) {
    return InvalidArgument("input 'Input' has shape ", ToString(input),
                           ", expected [batch, steps, tags] with at least 1 step and ", least,
                           " tags");
  }
  INTERP_RETURN_IF_ERROR(CheckInputShape(ctx, kTransition, "Transition", {input[2], input[2]}));
  const Tensor& lengths = ctx.input(kLength);
  if (lengths.shape.CheckedNumel() != input[0]) {
    return InvalidArgument("input 'Length' has shape ", ToString(lengths.shape), ", expected ",
                           input[0], " elements");
  }
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> sequences,
                          PaddedSequences(lengths, "Length", input[1]));
  ctx.SetShape(kScores, {input[0]});
  ctx.SetShape(kPath, {input[0], LongestOf(sequences)});
  return absl::OkStatus();
}

template <typename T>
absl::Status ViterbiDecode(KernelContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  const int64_t tags = input[2];
  INTERP_ASSIGN_OR_RETURN(const std::vector<Sequence> sequences,
                          PaddedSequences(ctx.input(kLength), "Length", input[1]));
  const int64_t width = ctx.output(kPath).shape[1];
  const int64_t size = ViterbiDecoder<T>::ScratchSize(tags, width);
  INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                          ctx.workspace(static_cast<size_t>(size) * sizeof(T)));
  TagScores<T> tag_scores = {ctx.input(kTransition).data<T>()};
  if (ctx.attrs<ViterbiAttrs>().has_ends) {
    tag_scores.start = tag_scores.transitions + (tags - 1) * tags;
    tag_scores.stop = tag_scores.transitions + (tags - 2) * tags;
  }
  ViterbiDecoder<T> decoder(tags, tag_scores, scratch.data<T>());
  const T* const emission = ctx.input(kInput).data<T>();
  T* const scores = ctx.output(kScores).mutable_data<T>();
  int64_t* const path = ctx.output(kPath).mutable_data<int64_t>();
  std::fill_n(path, ctx.output(kPath).numel(), 0);
  for (size_t i = 0; i < sequences.size(); ++i) {
    scores[i] = decoder.Decode(emission + sequences[i].first * tags, sequences[i].length,
                               path + static_cast<int64_t>(i) * width);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "viterbi_decode",
    .inputs = {{"Input"}, {"Transition"}, {"Length", kValueInInfer | kAnyDType}},
    .outputs = {{"Scores"}, {"Path"}},
    .parse = ParseAttrs<ViterbiAttrs, ReadViterbi>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kPath, DType::kInt64); },
    .infer = InferViterbiDecode,
    .kernels = {{DType::kFloat32, ViterbiDecode<float>}, {DType::kFloat64, ViterbiDecode<double>}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::crf
