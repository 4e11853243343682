// chunk_eval: chunks (named entities, say) that a tagging finds, beside those of the labels:
// precision, recall, F1 and the counts they come from.
//
// Label t means tag t % tags of chunk type t / tags; the type num_chunk_types is outside of chunks.
// `chunk_scheme` says what tags there are: IOB (begin, inside), IOE (inside, end), IOBES (begin,
// inside, end, single) or plain (none). Sequences are those of the LoD of Label, or the first
// SeqLength labels of each row.
#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr int kInference = 0;
constexpr int kLabel = 1;
constexpr int kSeqLength = 2;
constexpr int kPrecision = 0;
constexpr int kRecall = 1;
constexpr int kF1 = 2;
constexpr int kNumInfer = 3;
constexpr int kNumLabel = 4;
constexpr int kNumCorrect = 5;

constexpr int64_t kNoTag = -1;

struct Scheme {
  int64_t tags = 1;
  int64_t begin = kNoTag;
  int64_t inside = kNoTag;
  int64_t end = kNoTag;
  int64_t single = kNoTag;
};

struct ChunkAttrs {
  Scheme scheme;
  int64_t types = 0;
  std::vector<int64_t> excluded;
};

ChunkAttrs ReadChunkAttrs(AttrReader& reader) {
  ChunkAttrs attrs;
  attrs.types = reader.Int("num_chunk_types", 0);
  attrs.excluded = reader.Ints("excluded_chunk_types");
  if (attrs.types < 1) reader.Fail("attribute 'num_chunk_types' is below 1");
  attrs.scheme =
      ReadChoice<Scheme>(reader, "chunk_scheme",
                         {{"IOB", {.tags = 2, .begin = 0, .inside = 1}},
                          {"IOE", {.tags = 2, .inside = 0, .end = 1}},
                          {"IOBES", {.tags = 4, .begin = 0, .inside = 1, .end = 2, .single = 3}},
                          {"plain", {}}});
  return attrs;
}

void InferDTypes(DTypeContext& ctx) {
  for (const int slot : {kPrecision, kRecall, kF1}) ctx.Set(slot, DType::kFloat32);
}

absl::Status CheckSequences(const InferContext& ctx) {
  const Tensor& inference = ctx.input(kInference);
  const Tensor& label = ctx.input(kLabel);
  if (!label.lod.empty()) {
    INTERP_RETURN_IF_ERROR(OnlyLevelOffsets(label, "Label").status());
    if (inference.lod == label.lod && inference.numel() == label.shape[0] &&
        label.numel() == label.shape[0]) {
      return absl::OkStatus();
    }
    return InvalidArgument("inputs 'Inference' ", DescribeType(inference), " and 'Label' ",
                           DescribeType(label), " differ in LoD, or have rows of several elements");
  }
  if (!ctx.has_input(kSeqLength)) {
    return InvalidArgument("input 'Label' is ", DescribeType(label),
                           " without LoD, and there is no 'SeqLength'");
  }
  const Shape& shape = inference.shape;
  const Tensor& lengths = ctx.input(kSeqLength);
  if (shape.rank() < 2 || shape != label.shape || shape.numel() != shape[0] * shape[1] ||
      lengths.dtype != DType::kInt64 || lengths.numel() != shape[0]) {
    return InvalidArgument("inputs 'Inference' ", DescribeType(inference), ", 'Label' ",
                           DescribeType(label), " and 'SeqLength' ", DescribeType(lengths),
                           " do not fit, expected [n,length] twice and n of int64");
  }
  return absl::OkStatus();
}

absl::Status InferChunkEval(InferContext& ctx) {
  INTERP_RETURN_IF_ERROR(CheckSequences(ctx));
  for (int slot = kPrecision; slot <= kNumCorrect; ++slot) ctx.SetShape(slot, {1});
  return absl::OkStatus();
}

struct Chunk {
  int64_t begin = 0;
  int64_t end = 0;  // its last element
  int64_t type = 0;
  bool operator==(const Chunk&) const = default;
};

struct Tagged {
  int64_t tag = kNoTag;
  int64_t type = 0;
};

// Whether a chunk that holds `before` ends there when `now` follows.
bool Ends(const ChunkAttrs& attrs, const Tagged& before, const Tagged& now) {
  const Scheme& scheme = attrs.scheme;
  if (before.type == attrs.types) return false;
  if (now.type != before.type) return true;
  if (before.tag == scheme.begin || before.tag == scheme.inside) {
    return now.tag == scheme.begin || now.tag == scheme.single;
  }
  return before.tag == scheme.end || before.tag == scheme.single;
}

// Whether a chunk starts at `now`.
bool Starts(const ChunkAttrs& attrs, const Tagged& before, const Tagged& now) {
  const Scheme& scheme = attrs.scheme;
  if (now.type == attrs.types) return false;
  if (before.type == attrs.types) return true;
  if (now.type != before.type || now.tag == scheme.begin) return true;
  if (now.tag == scheme.inside || now.tag == scheme.end) {
    return before.tag == scheme.end || before.tag == scheme.single;
  }
  return now.tag == scheme.single;
}

absl::Status FindChunks(const ChunkAttrs& attrs, const int64_t* labels, int64_t length,
                        std::vector<Chunk>& chunks) {
  chunks.clear();
  Tagged now = {.type = attrs.types};
  bool inside = false;
  int64_t begin = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (labels[i] < 0 || labels[i] > attrs.types * attrs.scheme.tags) {
      return InvalidArgument("a label is ", labels[i], ", expected 0 to ",
                             attrs.types * attrs.scheme.tags);
    }
    const Tagged before = now;
    now = {.tag = labels[i] % attrs.scheme.tags, .type = labels[i] / attrs.scheme.tags};
    if (inside && Ends(attrs, before, now)) {
      chunks.push_back({begin, i - 1, before.type});
      inside = false;
    }
    if (Starts(attrs, before, now)) {
      begin = i;
      inside = true;
    }
  }
  if (inside) chunks.push_back({begin, length - 1, now.type});
  return absl::OkStatus();
}

struct Counts {
  int64_t inferred = 0;
  int64_t labelled = 0;
  int64_t correct = 0;
};

// Finds and counts the chunks of one sequence after the other.
class ChunkCounter {
 public:
  explicit ChunkCounter(const ChunkAttrs& attrs) : attrs_(attrs) {}

  absl::Status Add(const int64_t* inference, const int64_t* label, int64_t length) {
    INTERP_RETURN_IF_ERROR(FindChunks(attrs_, inference, length, inferred_));
    INTERP_RETURN_IF_ERROR(FindChunks(attrs_, label, length, labelled_));
    const auto counts = [this](const Chunk& chunk) {
      return !absl::c_linear_search(attrs_.excluded, chunk.type);
    };
    counts_.inferred += absl::c_count_if(inferred_, counts);
    counts_.labelled += absl::c_count_if(labelled_, counts);
    size_t i = 0;
    size_t k = 0;
    while (i < inferred_.size() && k < labelled_.size()) {
      const Chunk& found = inferred_[i];
      const Chunk& wanted = labelled_[k];
      if (found == wanted && counts(found)) ++counts_.correct;
      if (found.end <= wanted.end) ++i;
      if (found.end >= wanted.end) ++k;
    }
    return absl::OkStatus();
  }

  const Counts& counts() const { return counts_; }

 private:
  const ChunkAttrs& attrs_;
  std::vector<Chunk> inferred_;
  std::vector<Chunk> labelled_;
  Counts counts_;
};

absl::Status CountAll(const KernelContext& ctx, ChunkCounter& counter) {
  const Tensor& label_tensor = ctx.input(kLabel);
  const int64_t* const inference = ctx.input(kInference).data<int64_t>();
  const int64_t* const label = label_tensor.data<int64_t>();
  if (!label_tensor.lod.empty()) {
    const std::vector<int64_t>& offsets = label_tensor.lod[0];
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          counter.Add(inference + offsets[i], label + offsets[i], offsets[i + 1] - offsets[i]));
    }
    return absl::OkStatus();
  }
  const int64_t* const lengths = ctx.input(kSeqLength).data<int64_t>();
  const int64_t width = label_tensor.shape[1];
  for (int64_t i = 0; i < label_tensor.shape[0]; ++i) {
    if (lengths[i] < 0 || lengths[i] > width) {
      return InvalidArgument("input 'SeqLength' has the value ", lengths[i], ", expected 0 to ",
                             width);
    }
    INTERP_RETURN_IF_ERROR(counter.Add(inference + i * width, label + i * width, lengths[i]));
  }
  return absl::OkStatus();
}

float Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0f : static_cast<float>(part) / static_cast<float>(whole);
}

absl::Status ChunkEval(KernelContext& ctx) {
  ChunkCounter counter(ctx.attrs<ChunkAttrs>());
  INTERP_RETURN_IF_ERROR(CountAll(ctx, counter));
  const Counts& counts = counter.counts();
  const float precision = Share(counts.correct, counts.inferred);
  const float recall = Share(counts.correct, counts.labelled);
  *ctx.output(kPrecision).mutable_data<float>() = precision;
  *ctx.output(kRecall).mutable_data<float>() = recall;
  *ctx.output(kF1).mutable_data<float>() =
      counts.correct == 0 ? 0.0f : 2.0f * precision * recall / (precision + recall);
  *ctx.output(kNumInfer).mutable_data<int64_t>() = counts.inferred;
  *ctx.output(kNumLabel).mutable_data<int64_t>() = counts.labelled;
  *ctx.output(kNumCorrect).mutable_data<int64_t>() = counts.correct;
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "chunk_eval",
    .inputs = {{"Inference"}, {"Label"}, {"SeqLength", kOptional | kAnyDType}},
    .outputs = {{"Precision"},
                {"Recall"},
                {"F1-Score"},
                {"NumInferChunks"},
                {"NumLabelChunks"},
                {"NumCorrectChunks"}},
    .parse = ParseAttrs<ChunkAttrs, ReadChunkAttrs>,
    .infer_dtype = InferDTypes,
    .infer = InferChunkEval,
    .kernels = {{DType::kInt64, ChunkEval}},
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp
