// Random programs through every pass: the verifier must find nothing, and a run on memory that is
// shared as the passes say must give the values of a run of the original program. The programs are
// dense in what makes aliasing hard: views, copies, variables written again, tensor arrays,
// parameters that are updated, sub-blocks.
#include <gtest/gtest.h>

#include <random>

#include "core/program_print.h"
#include "passes/pipeline.h"
#include "tests/testing/fake_ops.h"
#include "tests/testing/sample.h"

namespace interp {
namespace {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  Program Make(int num_ops) {
    program_.blocks.resize(2);
    program_.blocks[1].idx = 1;
    program_.blocks[1].parent_idx = 0;
    Declare("x", 0).need_check_feed = true;
    for (const char* name : {"w0", "w1"}) Declare(name, 0).persistable = true;
    Declare("c", 0).dtype = DType::kBool;
    Declare("array", 0).kind = VarKind::kLodTensorArray;
    values_ = {"x", "w0", "w1"};
    for (int i = 0; i < num_ops; ++i) AddOp(0);
    const std::vector<std::string> outer = values_;
    for (int i = 0; i < 5; ++i) AddOp(1);
    values_ = outer;
    Op loop = Make("while", {{"X", {Pick()}}, {"Condition", {"c"}}}, {{"Out", {"c"}}});
    loop.attrs.push_back({.name = "sub_block", .value = BlockIndex{1}});
    program_.blocks[0].ops.push_back(std::move(loop));
    for (int i = 0; i < num_ops; ++i) AddOp(0);
    return std::move(program_);
  }

  std::vector<std::string> PickFetches() {
    std::vector<std::string> fetches;
    for (int i = 0; i < 3; ++i) fetches.push_back(Pick());
    return fetches;
  }

 private:
  using Args = std::vector<std::pair<std::string, std::vector<std::string>>>;

  Var& Declare(const std::string& name, int block) {
    Var& var = program_.blocks[block].vars.emplace_back();
    var.id = program_.Intern(name);
    var.dtype = DType::kFloat32;
    var.dims = {2, 3};
    return var;
  }

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  std::string Pick() {
    // Recent values more often, so that chains form.
    const int recent = Below(2) == 0 ? std::min<int>(4, std::ssize(values_)) : std::ssize(values_);
    return values_[values_.size() - 1 - Below(recent)];
  }

  std::string NewValue(int block) {
    if (Below(8) == 0) return Pick();  // written again, perhaps over an input
    const std::string name = absl::StrCat("v", next_++);
    Declare(name, block);
    values_.push_back(name);
    return name;
  }

  Op Make(const std::string& type, const Args& inputs, const Args& outputs) {
    Op op;
    op.type = type;
    const auto add = [this](const Args& args, std::vector<Slot>& slots) {
      for (const auto& [name, vars] : args) {
        Slot& slot = slots.emplace_back();
        slot.name = name;
        for (const std::string& var : vars) slot.args.push_back(program_.Intern(var));
      }
    };
    add(inputs, op.inputs);
    add(outputs, op.outputs);
    return op;
  }

  void AddOp(int block) {
    const std::string a = Pick();
    const std::string b = Pick();
    Op op;
    switch (Below(10)) {
      case 0:
        op = Make("reshape2", {{"X", {a}}}, {{"Out", {NewValue(block)}}});
        break;
      case 1:
        op = Make("assign", {{"X", {a}}}, {{"Out", {NewValue(block)}}});
        break;
      case 2:
        op = Make("sum", {{"X", {a, b, Pick()}}}, {{"Out", {NewValue(block)}}});
        break;
      case 3:
        op = Make("write_to_array", {{"X", {a}}}, {{"Out", {"array"}}});
        break;
      case 4:
        op = Make("read_from_array", {{"X", {"array"}}}, {{"Out", {NewValue(block)}}});
        break;
      case 5:
        op = Make("sgd", {{"Param", {"w0"}}, {"Grad", {a}}, {"LearningRate", {b}}},
                  {{"ParamOut", {"w0"}}});
        break;
      case 6:
        op = Make("mean_grad", {{"X", {a}}, {"Out@GRAD", {b}}}, {{"X@GRAD", {NewValue(block)}}});
        break;
      case 7:
        op = Make("elementwise_add", {{"X", {a}}, {"Y", {b}}}, {{"Out", {NewValue(block)}}});
        break;
      default:
        op = Make("relu", {{"X", {a}}}, {{"Out", {NewValue(block)}}});
    }
    program_.blocks[block].ops.push_back(std::move(op));
  }

  std::mt19937 random_;
  Program program_;
  std::vector<std::string> values_;  // that have been written
  int next_ = 0;
};

// Runs programs on hashes instead of tensors: a value is the hash of how it was computed. Variables
// refer to cells of memory; in-place pairs make two refer to one.
class HashMachine {
 public:
  explicit HashMachine(const Program& program)
      : program_(program), cell_of_(program.names.size(), -1) {
    RunBlock(0);
  }

  uint64_t ValueOf(absl::string_view name) { return Read(program_.Find(name)); }
  const std::vector<uint64_t>& fetched() const { return fetched_; }

 private:
  static uint64_t Mix(uint64_t a, uint64_t b) { return (a ^ (b >> 7)) * 0x9E3779B97F4A7C15u + b; }
  static uint64_t Add(uint64_t a, uint64_t b) { return Mix(std::min(a, b), std::max(a, b)); }

  uint64_t Read(VarId id) {
    if (cell_of_[id] < 0) Write(id, Mix(1, std::hash<std::string>()(program_.NameOf(id))));
    return cells_[cell_of_[id]];
  }
  void Write(VarId id, uint64_t value) {
    cell_of_[id] = static_cast<int>(cells_.size());
    cells_.push_back(value);
  }

  // `inputs` are the values the op reads.
  uint64_t Compute(const Op& op, const std::vector<uint64_t>& inputs) const {
    uint64_t value = inputs[0];
    if (op.type == "assign" || op.type == "reshape2") return value;
    const bool adds = op.type == "sum" || op.type == "elementwise_add";
    if (!adds) value = Mix(value, std::hash<std::string>()(op.type));
    for (size_t i = 1; i < inputs.size(); ++i) {
      value = adds ? Add(value, inputs[i]) : Mix(value, inputs[i]);
    }
    return value;
  }

  void RunOp(const Op& op) {
    if (op.type == "while") return RunBlock(1);
    std::vector<VarId> ids;
    std::vector<uint64_t> values;
    for (const Slot& slot : op.inputs) {
      const bool shape_only = op.type == "mean_grad" && slot.name == "X";
      for (const VarId id : slot.args) {
        ids.push_back(id);
        values.push_back(shape_only ? 0 : Read(id));
      }
    }
    if (op.type == "fetch") return fetched_.push_back(values[0]);
    const VarId out = op.outputs[0].args[0];
    if (op.type == "feed") return Write(out, Mix(2, static_cast<uint64_t>(out)));
    // Arrays keep all that was put in; taking out gives the whole.
    if (op.type == "write_to_array") values.push_back(Read(out));
    const uint64_t value = Compute(op, values);
    if (op.inplace.empty()) return Write(out, value);
    cell_of_[out] = cell_of_[ids[op.inplace[0].input]];
    cells_[cell_of_[out]] = value;
  }

  void RunBlock(int block) {
    for (const Op& op : program_.blocks[block].ops) RunOp(op);
  }

  const Program& program_;
  std::vector<int> cell_of_;  // by VarId; -1: not used yet
  std::vector<uint64_t> cells_;
  std::vector<uint64_t> fetched_;
};

TEST(RandomProgramTest, PassesKeepProgramsValidAndValuesEqual) {
  int pairs = 0;
  for (const uint64_t seed : testing::Seeds(500)) {
    RandomProgram random(seed);
    const Program program = random.Make(/*num_ops=*/3 + static_cast<int>(seed % 40));
    const PassContext context{testing::FakeOps(), {{"x", "c"}}, random.PickFetches()};
    const auto result = RunPipeline(program, context, {.enable = {"addto"}});
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.status() << "\n"
                             << ToText(program);
    const auto reference = RunPasses(program, context, AllPasses().subspan(0, 1));
    ASSERT_TRUE(reference.ok()) << reference.status();
    HashMachine expected(reference->program);
    HashMachine got(result->program);
    ASSERT_EQ(got.fetched(), expected.fetched()) << "seed " << seed << "\n"
                                                 << ToText(program) << ToText(result->program);
    ASSERT_EQ(got.ValueOf("w0"), expected.ValueOf("w0")) << "seed " << seed;
    ASSERT_EQ(got.ValueOf("w1"), expected.ValueOf("w1")) << "seed " << seed;
    for (const Block& block : result->program.blocks) {
      for (const Op& op : block.ops) pairs += static_cast<int>(op.inplace.size());
    }
  }
  EXPECT_GT(pairs, 1000);  // the programs do exercise sharing
}

}  // namespace
}  // namespace interp
