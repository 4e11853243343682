// Every gradient against finite differences in float64: the golden cases of each differentiable op,
// a weighted sum of its outputs as the loss, and the backward part that AppendBackward makes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/program_load.h"
#include "core/resource/random_stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter_core.h"
#include "passes/train/append_backward.h"
#include "tests/testing/golden.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using testing::GoldenCase;

// Ops whose gradients are by definition something else than derivatives, or cannot be looked at so.
const std::map<std::string, std::string>& Exempt() {
  static const auto& exempt = *new std::map<std::string, std::string>{
      {"batch_norm_grad", "reads the statistics of X beside it"},
      {"cast", "names the dtypes itself"},
      {"cholesky", "reads one triangle and gives a symmetric gradient"},
      {"cvm", "gives the gradients of show and click from its second input"},
      {"data_norm", "gives statistics of the batch as gradients of its sums"},
      {"dropout", "draws random numbers"},
      {"eigh", "reads one triangle and gives a symmetric gradient"},
      {"eigvalsh", "the same"},
      {"elementwise_div_grad", "divides X by Y itself, and Out has the gradient of that"},
      {"fused_seqpool_cvm", "gives the gradients of show and click from its second input"},
      {"instance_norm_grad", "reads the statistics of X beside it"},
      {"assign", "covered by all others"},
  };
  return exempt;
}

// Cases where Paddle's gradients, which ours equal, are no derivatives: "op/case".
const std::map<std::string, std::string>& ExemptCases() {
  static const auto& exempt = *new std::map<std::string, std::string>{
      {"clip_grad/min_tensor", "has no gradient with bounds that are tensors"},
      {"clip_grad/tensors_float32", "the same"},
      {"gather/axis1_int32", "takes the first block of the gradient for all"},
      {"gather/middle", "the same"},
      {"group_norm/no_affine", "leaves a mean out without Scale"},
      {"log_softmax/extreme", "cuts logits off at -64"},
      {"softmax_with_cross_entropy/far_apart", "the same"},
      {"cross_entropy/label_of_float32", "takes integers for labels alone, in Paddle, too"},
      {"cross_entropy/label_of_float64", "the same"},
      {"softmax_with_cross_entropy/label_of_float32", "the same"},
      {"softmax_with_cross_entropy/label_of_float64", "the same"},
      {"pow_grad/tensor_float32", "has no gradient with a factor that is a tensor"},
      {"qr/complete_float32", "has no gradient for more rows than columns"},
      {"qr/complete_float64", "the same"},
      {"roi_align/small_aligned_float32", "takes a region for one pixel wide at least"},
      {"roi_align/small_aligned_float64", "the same"},
      {"qr/r_float32", "has no Q for a gradient"},
      {"qr/r_float64", "the same"},
      {"lu/singular", "has no inverse to go back by"},
      {"sigmoid_cross_entropy_with_logits/pos_weight_float32", "weighs the sigmoid alone"},
      {"soft_relu/values1", "is the slope at the threshold beyond it, too"},
      {"spectral_norm/rows_1_float32", "takes vectors that still change for constants"},
      {"spectral_norm/rows_1_float64", "the same"},
      {"split/section_minus1", "the forward op cuts in another order than concat joins"},
      {"split/flat_middle", "the same"},
      {"teacher_student_sigmoid_loss/far", "is 0 beyond the bounds"},
      {"unpool/same_place", "gives its place's gradient to an element that another one covers"},
      {"unpool3d/same_place", "the same"},
      {"warpctc/norm_by_times", "divides the gradient alone by the length"},
  };
  return exempt;
}

bool IsExempt(const std::string& folder) {
  const std::filesystem::path path = folder;
  const std::string type = path.parent_path().filename().string();
  return ExemptCases().contains(absl::StrCat(type, "/", path.filename().string()));
}

bool IsStraightThrough(const std::string& type) { return absl::StartsWith(type, "fake_"); }

const OpDef* Differentiable(const std::string& type) {
  const OpDef* def = OpRegistry::Global().Find(type);
  const bool checked = def != nullptr && def->gradient.exists() && !def->random &&
                       def->sub_block == nullptr && !Exempt().contains(type) &&
                       !IsStraightThrough(type);
  return checked ? def : nullptr;
}

std::map<std::string, std::vector<std::string>> FindCases() {
  std::map<std::string, std::vector<std::string>> cases;
  for (const std::string& set : testing::GoldenSets()) {
    for (const std::string& folder : testing::GoldenCaseFolders(set)) {
      const std::string type = std::filesystem::path(folder).parent_path().filename().string();
      if (Differentiable(type) != nullptr && !IsExempt(folder)) cases[type].push_back(folder);
    }
  }
  return cases;
}

const std::map<std::string, std::vector<std::string>>& Cases() {
  static const auto& cases = *new std::map(FindCases());
  return cases;
}

std::vector<std::string> Types() {
  std::vector<std::string> types;
  for (const auto& [type, folders] : Cases()) types.push_back(type);
  return types;
}

Tensor Doubles(const Tensor& tensor) {
  if (tensor.dtype != DType::kFloat32) return tensor;
  const std::vector<double> values(tensor.data<float>(), tensor.data<float>() + tensor.numel());
  Tensor doubles = Tensor::Of<double>(tensor.shape, values);
  doubles.lod = tensor.lod;
  return doubles;
}

// One op in float64 with a loss behind it.
class Problem {
 public:
  // False when the case has nothing to differentiate.
  bool Make(const GoldenCase& golden, const OpDef& def) {
    absl::StatusOr<Program> loaded = LoadProgram(golden.program);
    if (!loaded.ok() || loaded->blocks.size() != 1) return false;
    program_ = *std::move(loaded);
    Block& block = program_.blocks[0];
    std::erase_if(block.ops, [](const Op& op) { return op.type == "feed" || op.type == "fetch"; });
    if (block.ops.size() != 1 || block.ops[0].type != def.type) return false;
    if (IsTest(block.ops[0]) || !HasDoubles(def)) return false;
    const std::set<VarId> sizes = SizesOf(block.ops[0], def);
    for (Var& var : block.vars) {
      if (var.dtype == DType::kFloat32 && !sizes.contains(var.id)) var.dtype = DType::kFloat64;
      if (var.dtype == DType::kFloat16) return false;
      var.wire.clear();
      var.stop_gradient = false;
    }
    for (const NamedTensor& feed : golden.feeds) {
      const bool size = sizes.contains(program_.Find(feed.first));
      feeds_.emplace_back(feed.first, size ? feed.second : Doubles(feed.second));
    }
    const Op op = block.ops[0];
    MakeGradient(op, def);
    FindSources(op);
    AddLoss(op, golden);
    return !sources_.empty() && !terms_.empty();
  }

  // Empty when the gradients are those of the loss.
  std::string Check() {
    absl::StatusOr<BackwardProgram> backward =
        AppendBackward(program_, {.loss = "check_loss", .sources = sources_}, OpRegistry::Global());
    if (!backward.ok()) return std::string(backward.status().message());
    std::vector<std::string> fetches;
    for (const SourceGradient& found : backward->gradients) {
      fetches.push_back(backward->program.NameOf(found.gradient));
      checked_.push_back(backward->program.NameOf(found.source));
    }
    auto core = InterpreterCore::Create(backward->program, FeedNames(), fetches, nullptr);
    if (!core.ok()) return std::string(core.status().message());
    auto gradients = (*core)->Run(FeedValues());
    if (!gradients.ok()) return std::string(gradients.status().message());
    auto forward = InterpreterCore::Create(program_, FeedNames(), {"check_loss"}, nullptr);
    if (!forward.ok()) return std::string(forward.status().message());
    std::vector<std::string> errors;
    for (size_t i = 0; i < checked_.size(); ++i) {
      const std::string error = Compare(**forward, checked_[i], (*gradients)[i]);
      if (!error.empty()) errors.push_back(error);
    }
    return absl::StrJoin(errors, "\n");
  }

 private:
  // Arguments that say how large outputs are.
  static std::set<VarId> SizesOf(const Op& op, const OpDef& def) {
    std::set<VarId> sizes;
    for (const Slot& slot : op.inputs) {
      const int position = def.InputIndex(slot.name);
      if (position < 0 || (def.inputs[position].flags & kValueInInfer) == 0) continue;
      sizes.insert(slot.args.begin(), slot.args.end());
    }
    return sizes;
  }

  // What gradients read is not there in test mode.
  static bool IsTest(const Op& op) {
    const Attr* attr = op.FindAttr("is_test");
    const bool* value = attr == nullptr ? nullptr : std::get_if<bool>(&attr->value);
    return value != nullptr && *value;
  }
  static bool HasDoubles(const OpDef& def) {
    return std::any_of(def.kernels.begin(), def.kernels.end(), [](const KernelDef& kernel) {
      return kernel.dtype == DType::kFloat64 || kernel.dtype == DType::kUndefined;
    });
  }

  Tensor* FindFeed(const std::string& name) {
    for (NamedTensor& feed : feeds_) {
      if (feed.first == name) return &feed.second;
    }
    return nullptr;
  }
  std::vector<std::string> FeedNames() const {
    std::vector<std::string> names;
    for (const NamedTensor& feed : feeds_) names.push_back(feed.first);
    return names;
  }
  std::vector<Tensor> FeedValues() const {
    std::vector<Tensor> values;
    for (const NamedTensor& feed : feeds_) values.push_back(feed.second);
    return values;
  }

  // The gradients that the definition's ops read and write.
  void MakeGradient(const Op& op, const OpDef& def) {
    GradientMaker maker(
        {.program = &program_, .block = 0, .op = &op, .gradient_block = -1, .wants = [&](VarId id) {
           const Tensor* feed = FindFeed(program_.NameOf(id));
           return feed != nullptr && feed->dtype == DType::kFloat64;
         }});
    if (def.gradient.make == nullptr) {
      maker.AddByTable(def.gradient);
    } else if (!def.gradient.make(maker).ok()) {
      return;
    }
    for (const Op& made : maker.Take()) {
      for (const Slot& slot : made.inputs) read_.insert(slot.args.begin(), slot.args.end());
      for (const Slot& slot : made.outputs) given_.insert(slot.args.begin(), slot.args.end());
    }
  }
  bool IsIn(const std::set<VarId>& gradients, const std::string& name) const {
    return gradients.contains(program_.Find(GradientName(name)));
  }

  void FindSources(const Op& op) {
    for (const Slot& slot : op.inputs) {
      for (const VarId id : slot.args) {
        const std::string& name = program_.NameOf(id);
        const Tensor* feed = FindFeed(name);
        if (!IsIn(given_, name) || feed->numel() == 0) continue;
        if (std::find(sources_.begin(), sources_.end(), name) == sources_.end()) {
          sources_.push_back(name);
        }
      }
    }
  }

  void Declare(const std::string& name, const Shape& shape) {
    Var var;
    var.id = program_.Intern(name);
    var.dtype = DType::kFloat64;
    var.dims.assign(shape.begin(), shape.end());
    program_.blocks[0].vars.push_back(std::move(var));
  }
  Op& AddOp(const std::string& type) {
    Op& op = program_.blocks[0].ops.emplace_back();
    op.type = type;
    return op;
  }

  // loss = the sum of all elements of the outputs, each with a weight of its own.
  void AddLoss(const Op& op, const GoldenCase& golden) {
    for (const Slot& slot : op.outputs) {
      for (const VarId id : slot.args) {
        if (IsIn(read_, program_.NameOf(id))) AddTerm(program_.NameOf(id), golden);
      }
    }
    Op& sum = AddOp("sum");
    AddInput(sum, "X", terms_);
    AddOutput(sum, "Out", {program_.Intern("check_loss")});
    Declare("check_loss", Shape{});
  }
  void AddTerm(std::string output, const GoldenCase& golden) {
    const auto want = std::find_if(golden.fetches.begin(), golden.fetches.end(),
                                   [&](const NamedTensor& f) { return f.first == output; });
    if (want == golden.fetches.end() || want->second.dtype != DType::kFloat32) return;
    const Shape& shape = want->second.shape;
    const RandomStream random({.seed = 11}, terms_.size());
    std::vector<double> weights(shape.numel());
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] = 0.5 + static_cast<double>(random.Word(i)) / 4294967296.0;
    }
    const std::string weight = absl::StrCat("check_weight_", terms_.size());
    const std::string product = absl::StrCat("check_product_", terms_.size());
    const std::string term = absl::StrCat("check_term_", terms_.size());
    feeds_.emplace_back(weight, Tensor::Of<double>(shape, weights));
    Declare(weight, shape);
    Declare(product, shape);
    Declare(term, Shape{});
    Op& multiply = AddOp("elementwise_mul");
    AddInput(multiply, "X", {program_.Intern(output)});
    AddInput(multiply, "Y", {program_.Intern(weight)});
    AddOutput(multiply, "Out", {program_.Intern(product)});
    SetAttr(multiply, "axis", int32_t{-1});
    Op& reduce = AddOp("reduce_sum");
    AddInput(reduce, "X", {program_.Intern(product)});
    AddOutput(reduce, "Out", {program_.Intern(term)});
    SetAttr(reduce, "reduce_all", true);
    terms_.push_back(program_.Intern(term));
  }

  double Loss(InterpreterCore& forward) {
    const auto loss = forward.Run(FeedValues());
    if (!loss.ok() || (*loss)[0].dtype != DType::kFloat64) return std::nan("");
    return *(*loss)[0].data<double>();
  }

  // Central differences with two steps. Where they, or the slopes to both sides, disagree, the
  // function has a corner.
  std::string Compare(InterpreterCore& forward, const std::string& name, const Tensor& gradient) {
    Tensor& feed = *FindFeed(name);
    if (gradient.numel() != feed.numel() || gradient.dtype != feed.dtype) {
      return absl::StrCat("'", name, "' is ", DescribeType(feed), ", its gradient ",
                          DescribeType(gradient));
    }
    const Tensor original = feed;
    const int64_t stride = std::max<int64_t>(1, feed.numel() / 5);
    for (int64_t i = 0; i < feed.numel(); i += stride) {
      double slopes[2];
      double losses[2] = {0, 0};
      for (int k = 0; k < 2; ++k) {
        const double h = k == 0 ? 1e-5 : 2e-6;
        for (int side = 0; side < 2; ++side) {
          feed = *original.Clone(SystemAllocator());
          feed.mutable_data<double>()[i] += side == 0 ? h : -h;
          losses[side] = Loss(forward);
        }
        slopes[k] = (losses[0] - losses[1]) / (2 * h);
      }
      feed = original;
      // What rounding leaves of differences of large losses counts, too.
      const double scale = std::max(1.0, std::abs(slopes[0])) + 1e-6 * std::abs(losses[0]);
      // The slopes of the two sides: the last step was 2e-6 wide.
      const double middle = Loss(forward);
      const double sides = std::abs((losses[0] - middle) - (middle - losses[1])) / 2e-6;
      if (!(std::abs(slopes[0] - slopes[1]) < 1e-4 * scale) || sides > 1e-2 * scale) continue;
      const double got = gradient.data<double>()[i];
      if (std::abs(got - slopes[0]) <= 2e-4 * scale) continue;
      return absl::StrCat("gradient of '", name, "' at ", i, " is ", got, ", expected ", slopes[0]);
    }
    return "";
  }

  Program program_;
  std::vector<NamedTensor> feeds_;
  std::vector<std::string> sources_;
  std::vector<std::string> checked_;
  ArgIds terms_;
  std::set<VarId> read_;   // gradients of outputs
  std::set<VarId> given_;  // and of inputs
};

class GradientCheckTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GradientCheckTest, IsTheDerivative) {
  const OpDef& def = *OpRegistry::Global().Find(GetParam());
  for (const std::string& folder : Cases().at(GetParam())) {
    SCOPED_TRACE(folder);
    const absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
    ASSERT_THAT(golden, testing::IsOk());
    Problem problem;
    if (!problem.Make(*golden, def)) continue;
    EXPECT_EQ(problem.Check(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, GradientCheckTest, ::testing::ValuesIn(Types()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GradientCheckTest);

}  // namespace
}  // namespace interp
