// Ops of kernels/sequence, and of evaluation programs, on random shapes, LoDs, values and
// attributes that mostly do not fit each other: each run ends with a result or with
// InvalidArgument. What is read beyond a tensor shows under AddressSanitizer.
#include <gtest/gtest.h>

#include <random>

#include "tests/kernels/run_op.h"
#include "tests/testing/matchers.h"

namespace interp::testing {
namespace {

struct FuzzedOp {
  std::string type;
  std::vector<std::pair<std::string, DType>> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attrs;  // names; '[' in front: a list of integers
  int rank = 2;                    // of most of the first inputs
};

std::vector<FuzzedOp> FuzzedOps() {
  constexpr DType kF = DType::kFloat32;
  constexpr DType kI = DType::kInt64;
  return {
      {"sequence_conv", {{"X", kF}, {"Filter", kF}}, {"Out"}, {"contextLength", "contextStart"}},
      {"sequence_pool", {{"X", kF}}, {"Out", "MaxIndex"}, {}},
      {"sequence_softmax", {{"X", kF}}, {"Out"}, {}},
      {"sequence_expand", {{"X", kF}, {"Y", kF}}, {"Out"}, {"ref_level"}},
      {"sequence_expand_as", {{"X", kF}, {"Y", kI}}, {"Out"}, {}},
      {"sequence_concat", {{"X", kF}, {"X", kF}}, {"Out"}, {}},
      {"sequence_slice", {{"X", kF}, {"Offset", kI}, {"Length", kI}}, {"Out"}, {}},
      {"sequence_pad", {{"X", kF}, {"PadValue", kF}}, {"Out", "Length"}, {"padded_length"}},
      {"sequence_unpad", {{"X", kF}, {"Length", kI}}, {"Out"}, {}},
      {"sequence_mask", {{"X", kI}}, {"Y"}, {"maxlen"}},
      {"sequence_reverse", {{"X", kF}}, {"Y"}, {}},
      {"sequence_enumerate", {{"X", kI}}, {"Out"}, {"win_size"}},
      {"sequence_erase", {{"X", kI}}, {"Out"}, {"[tokens"}},
      {"sequence_reshape", {{"X", kF}}, {"Out"}, {"new_dim"}},
      {"sequence_scatter", {{"X", kF}, {"Ids", kI}, {"Updates", kF}}, {"Out"}, {}},
      {"sequence_topk_avg_pooling",
       {{"X", kF}, {"ROW", kF}, {"COLUMN", kF}},
       {"Out", "pos"},
       {"[topks", "channel_num"}},
      {"lod_reset", {{"X", kF}, {"Y", kI}}, {"Out"}, {"append"}},
      {"lod_reset", {{"X", kF}}, {"Out"}, {"[target_lod", "append"}},
      {"row_conv", {{"X", kF}, {"Filter", kF}}, {"Out"}, {}},
      {"im2sequence", {{"X", kF}, {"Y", kF}}, {"Out"}, {"[kernels"}, 4},
      {"edit_distance", {{"Hyps", kI}, {"Refs", kI}}, {"Out", "SequenceNum"}, {"normalized"}},
      {"edit_distance",
       {{"Hyps", kI}, {"Refs", kI}, {"HypsLength", kI}, {"RefsLength", kI}},
       {"Out", "SequenceNum"},
       {}},
      {"ctc_align", {{"Input", kI}, {"InputLength", kI}}, {"Output", "OutputLength"}, {"blank"}},
      {"hash", {{"X", kI}}, {"Out"}, {"num_hash"}},
      {"add_position_encoding", {{"X", kF}}, {"Out"}, {}},
      {"filter_by_instag",
       {{"Ins", kF}, {"Ins_tag", kI}, {"Filter_tag", kI}},
       {"Out", "LossWeight", "IndexMap"},
       {"is_lod"}},
  };
}

// Of kernels/beam, kernels/loss, kernels/metric and others, whose inputs seldom fit by chance.
std::vector<FuzzedOp> FuzzedEvaluationOps() {
  constexpr DType kF = DType::kFloat32;
  constexpr DType kI = DType::kInt64;
  return {
      {"beam_search",
       {{"pre_ids", kI}, {"pre_scores", kF}, {"ids", kI}, {"scores", kF}},
       {"selected_ids", "selected_scores", "parent_idx"},
       {"beam_size", "level", "end_id"}},
      {"chunk_eval",
       {{"Inference", kI}, {"Label", kI}, {"SeqLength", kI}},
       {"Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"},
       {"num_chunk_types"}},
      {"accuracy",
       {{"Out", kF}, {"Indices", kI}, {"Label", kI}},
       {"Accuracy", "Correct", "Total"},
       {}},
      {"auc",
       {{"Predict", kF}, {"Label", kI}, {"StatPos", kI}, {"StatNeg", kI}},
       {"AUC", "StatPosOut", "StatNegOut"},
       {"num_thresholds", "slide_steps"}},
      {"cvm", {{"X", kF}, {"CVM", kF}}, {"Y"}, {"use_cvm"}},
      {"data_norm",
       {{"X", kF}, {"BatchSize", kF}, {"BatchSum", kF}, {"BatchSquareSum", kF}},
       {"Y", "Means", "Scales"},
       {"slot_dim"}},
      {"cross_entropy", {{"X", kF}, {"Label", kI}}, {"Y"}, {"ignore_index"}},
      {"softmax_with_cross_entropy",
       {{"Logits", kF}, {"Label", kI}},
       {"Softmax", "Loss"},
       {"axis", "soft_label", "ignore_index"}},
      {"set_value",
       {{"Input", kF}, {"ValueTensor", kF}},
       {"Out"},
       {"[axes", "[starts", "[ends", "[steps"}},
      {"inverse", {{"Input", kF}}, {"Output"}, {}, 3},
  };
}

class Fuzzer {
 public:
  explicit Fuzzer(uint32_t seed) : generator_(seed) {}

  OpRun Next(const FuzzedOp& op) {
    OpRun run{op.type, {}, op.outputs, ""};
    sequences_ = Int(1, 3);
    for (const auto& [slot, dtype] : op.inputs) {
      run.inputs.emplace_back(slot, NextTensor(dtype, run.inputs.empty() ? op.rank : 2));
    }
    std::vector<std::string> attrs;
    for (const std::string& name : op.attrs) {
      attrs.push_back(name[0] == '['
                          ? absl::StrCat(name.substr(1), "=[", Int(0, 2), ",", Int(0, 4), "]")
                          : absl::StrCat(name, "=", Int(-2, 4)));
    }
    run.attrs = absl::StrJoin(attrs, ", ");
    return run;
  }

 private:
  int64_t Int(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(generator_() % static_cast<uint32_t>(most - least + 1));
  }

  // A LoD that fits `rows`, as that of every feed does.
  Lod NextLod(int64_t rows) {
    Lod lod;
    if (Int(0, 1) == 0) {
      std::vector<int64_t>& level = lod.emplace_back(1, 0);
      while (std::ssize(level) < sequences_) level.push_back(Int(level.back(), rows));
      level.push_back(rows);
      return lod;
    }
    int64_t parts = rows;
    const int64_t kind = Int(0, 7);
    for (int64_t levels = kind == 0 ? 0 : kind == 1 ? 2 : 1; levels > 0; --levels) {
      std::vector<int64_t> level = {0};
      while (level.back() < parts) level.push_back(level.back() + Int(0, parts - level.back()));
      if (level.size() == 1) level.push_back(0);
      parts = std::ssize(level) - 1;
      lod.insert(lod.begin(), std::move(level));
    }
    return lod;
  }

  Tensor NextTensor(DType dtype, int64_t rank) {
    Shape shape;
    for (int64_t i = Int(0, 7) == 0 ? Int(0, 4) : rank; i > 0; --i) shape.push_back(Int(0, 4));
    if (shape.rank() > 0 && Int(0, 1) == 0) shape[0] = sequences_;
    if (shape.rank() > 1 && Int(0, 1) == 0) shape[1] = 1;
    const auto count = static_cast<size_t>(shape.numel());
    Tensor tensor;
    if (dtype == DType::kInt64) {
      std::vector<int64_t> values(count);
      const int64_t most = Int(0, 4);
      for (int64_t& value : values) value = Int(most < 2 ? 0 : -1, most);
      tensor = Tensor::Of<int64_t>(shape, values);
    } else {
      tensor = Tensor::Of<float>(shape, std::vector<float>(count, 2.0F));
    }
    if (shape.rank() > 0) tensor.lod = NextLod(shape[0]);
    return tensor;
  }

  std::mt19937 generator_;
  int64_t sequences_ = 1;  // that half of all LoDs of a run have
};

// Runs each op `times` times and returns how many runs gave a result.
int FuzzAll(const std::vector<FuzzedOp>& ops, int times) {
  CoreOptions options;
  options.num_threads = 1;
  Fuzzer fuzzer(/*seed=*/7);
  int results = 0;
  for (const FuzzedOp& op : ops) {
    for (int i = 0; i < times; ++i) {
      const OpRun run = fuzzer.Next(op);
      const absl::Status status = RunOp(run, options).status();
      results += status.ok() ? 1 : 0;
      EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument)
          << status << "\n"
          << ProgramText(run);
    }
  }
  return results;
}

TEST(SequenceFuzzTest, RunsEndWithAResultOrSayWhatIsWrong) {
  EXPECT_GT(FuzzAll(FuzzedOps(), 500), 2000) << "most inputs should not fit, but not nearly all";
}

TEST(SequenceFuzzTest, EvaluationOpsEndWithAResultOrSayWhatIsWrong) {
  EXPECT_GT(FuzzAll(FuzzedEvaluationOps(), 2000), 200);
}

}  // namespace
}  // namespace interp::testing
