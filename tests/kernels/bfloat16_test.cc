// Kernels for bfloat16 against those for float32, on the same values: the golden cases of
// tests/goldens with their floats rounded to bfloat16. A kernel computes in float32 and rounds what
// it stores, once, so that results differ by a rounding and no more.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/find_kernel.h"
#include "core/program_load.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/nn/onednn.h"
#include "tests/kernels/op_runs.h"
#include "tests/testing/golden.h"
#include "tests/testing/kernel_runner.h"

namespace interp::bfloat16_test {
namespace {

using ::testing::Contains;
using testing::GoldenCase;
using ::testing::IsEmpty;
using testing::KernelRunOptions;
using Values = std::vector<NamedTensor>;

bool HasRow(const OpDef& def, DType dtype) {
  return absl::c_any_of(def.kernels, [&](const KernelDef& row) {
    return row.dtype == dtype && row.place == PlaceKind::kCpu;
  });
}

// Whether rows for bfloat16, or for any dtype, take the op's attributes.
bool TakesBfloat16(const OpDef& def, const Op& op) {
  if (def.precision == PrecisionRule::kFull && !HasRow(def, DType::kBFloat16)) return false;
  if (def.type == "weight_dequantize") return false;  // an attribute names its dtype
  AttrReader reader(op);
  const absl::StatusOr<ParsedAttrs> attrs =
      def.parse == nullptr ? ParsedAttrs() : def.parse(reader);
  return attrs.ok() && FindKernel(def, DType::kBFloat16, attrs->get(), PlaceKind::kCpu).ok();
}

template <typename From, typename To>
Tensor ConvertedTo(const Tensor& tensor) {
  Tensor result;
  result.shape = tensor.shape;
  result.lod = tensor.lod;
  result.dtype = DTypeOf<To>;
  EXPECT_TRUE(result.Allocate(SystemAllocator()).ok());
  std::copy_n(tensor.data<From>(), tensor.numel(), result.mutable_data<To>());
  return result;
}
Tensor Narrow(const Tensor& tensor) { return ConvertedTo<float, bfloat16>(tensor); }
Tensor Wide(const Tensor& tensor) {
  return tensor.dtype == DType::kBFloat16 ? ConvertedTo<bfloat16, float>(tensor) : tensor;
}

// The one op of a case, when it has a row that bfloat16 is computed by and takes float32.
struct Bfloat16Case {
  Program program;
  Op op;
  GoldenCase golden;
  Values wide;    // what its float32 kernel takes...
  Values narrow;  // ... and its bfloat16 kernel
};

std::set<std::string> NarrowedInputs(const Program& program, const Op& op, const OpDef& def) {
  std::set<std::string> names;
  for (const Slot& slot : op.inputs) {
    const int index = def.InputIndex(slot.name);
    if (index < 0 || (def.inputs[static_cast<size_t>(index)].flags & kAnyDType) != 0) continue;
    for (const VarId id : slot.args) names.emplace(program.NameOf(id));
  }
  return names;
}

std::optional<Bfloat16Case> ReadCase(const std::string& folder) {
  absl::StatusOr<GoldenCase> golden = testing::ReadGoldenCase(folder);
  if (!golden.ok() || golden->ops.size() != 1) return std::nullopt;
  const OpDef* def = OpRegistry::Global().Find(golden->ops[0]);
  if (def == nullptr) return std::nullopt;
  absl::StatusOr<Program> program = LoadProgram(golden->program);
  if (!program.ok()) return std::nullopt;
  Bfloat16Case result;
  for (const Op& op : program->blocks[0].ops) {
    if (op.type == golden->ops[0]) result.op = op;
  }
  if (!TakesBfloat16(*def, result.op)) return std::nullopt;
  const std::set<std::string> narrowed = NarrowedInputs(*program, result.op, *def);
  bool any = false;
  for (const auto& [name, tensor] : golden->feeds) {
    const bool narrow = tensor.dtype == DType::kFloat32 && narrowed.contains(name);
    any |= narrow;
    result.narrow.emplace_back(name, narrow ? Narrow(tensor) : tensor);
    result.wide.emplace_back(name, narrow ? Wide(Narrow(tensor)) : tensor);
  }
  if (!any) return std::nullopt;
  result.program = *std::move(program);
  result.golden = *std::move(golden);
  return result;
}

// Cases by op type.
const std::map<std::string, std::vector<std::string>>& Folders() {
  static const auto* folders = [] {
    auto* by_type = new std::map<std::string, std::vector<std::string>>;
    for (const std::string& set : testing::GoldenSets()) {
      for (const std::string& folder : testing::GoldenCaseFolders(set)) {
        if (const auto found = ReadCase(folder)) (*by_type)[found->op.type].push_back(folder);
      }
    }
    return by_type;
  }();
  return *folders;
}

// The largest finite magnitude.
float Scale(const Tensor& tensor) {
  float most = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const float value = std::abs(tensor.data<float>()[i]);
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

// By what a result may differ: half a unit in the last of 8 bits, and float32's own roundings in
// sums that cancel out.
struct Tolerance {
  double relative = 0x1.02p-8;
  double of_scale = 1e-5;  // of the tensor's largest element
};

// Recurrent ops round the operands of each step's product, so that later steps see roundings of
// earlier ones.
Tolerance ToleranceOf(const std::string& type) {
  if (type == "rnn" || type == "rnn_grad") return {.of_scale = 0x1p-6};
  return {};
}

// Empty when `got` is `want` but for rounding.
std::string Difference(const Tensor& got, const Tensor& want, const Tolerance& tolerance = {}) {
  if (want.dtype != DType::kFloat32) return testing::Difference(got, want, 0, 0);
  return testing::Difference(Wide(got), want, tolerance.relative, tolerance.of_scale * Scale(want));
}

// NaN where `got` has it.
Tensor WithNanOf(const Tensor& got, Tensor want) {
  if (want.dtype != DType::kFloat32 || got.shape != want.shape) return want;
  const Tensor wide = Wide(got);
  for (int64_t i = 0; i < want.numel(); ++i) {
    const float value = wide.data<float>()[i];
    if (std::isnan(value)) want.mutable_data<float>()[i] = value;
  }
  return want;
}

// `spreads`: NaN may also be where float32 has a number.
std::vector<std::string> Differences(const Bfloat16Case& test, const KernelRunOptions& options,
                                     bool spreads = false) {
  const auto want = testing::RunKernel(test.program, test.op, test.wide, options);
  if (!want.ok()) return {};  // not in this layout
  const auto got = testing::RunKernel(test.program, test.op, test.narrow, options);
  if (!got.ok()) return {got.status().ToString()};
  std::vector<std::string> errors;
  for (size_t i = 0; i < want->size(); ++i) {
    const auto& [name, value] = (*want)[i];
    const Tensor& result = (*got)[i].second;
    const std::string text =
        Difference(result, spreads ? WithNanOf(result, value) : value, ToleranceOf(test.op.type));
    if (!text.empty()) errors.push_back(absl::StrCat(name, ": ", text));
  }
  return errors;
}

class Bfloat16RowTest : public ::testing::TestWithParam<std::string> {};

TEST_P(Bfloat16RowTest, RoundsWhatFloat32Gives) {
  for (const std::string& folder : Folders().at(GetParam())) {
    EXPECT_THAT(Differences(*ReadCase(folder), {}), IsEmpty()) << folder;
  }
}

TEST_P(Bfloat16RowTest, TakesChannelsLastImages) {
  for (const std::string& folder : Folders().at(GetParam())) {
    EXPECT_THAT(Differences(*ReadCase(folder), {.layout = Layout::kChannelsLast}), IsEmpty())
        << folder;
  }
}

TEST_P(Bfloat16RowTest, PassesOnWhatIsNotFinite) {
  // With AMX oneDNN multiplies what lies beside a window by zeros.
  const bool convolution =
      absl::StartsWith(GetParam(), "conv2d") || absl::StartsWith(GetParam(), "conv3d");
  const bool spreads = convolution && nn::MultipliesBf16Tiles();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (const std::string& folder : Folders().at(GetParam())) {
      Bfloat16Case test = *ReadCase(folder);
      for (size_t i = 0; i < test.narrow.size(); ++i) {
        Tensor& narrow = test.narrow[i].second;
        if (narrow.dtype != DType::kBFloat16 || narrow.numel() == 0) continue;
        narrow.mutable_data<bfloat16>()[narrow.numel() / 2] = value;
        test.wide[i].second = Wide(narrow);
        break;
      }
      EXPECT_THAT(Differences(test, {}, spreads), IsEmpty()) << folder << " with " << value;
    }
  }
}

TEST_P(Bfloat16RowTest, GivesTheSameBitsOnThreeThreads) {
  for (const std::string& folder : Folders().at(GetParam())) {
    const Bfloat16Case test = *ReadCase(folder);
    const auto one = testing::RunKernel(test.program, test.op, test.narrow, {});
    const auto three = testing::RunKernel(test.program, test.op, test.narrow, {.num_threads = 3});
    ASSERT_EQ(one.ok(), three.ok()) << folder;
    for (size_t i = 0; one.ok() && i < one->size(); ++i) {
      EXPECT_EQ(testing::Difference((*three)[i].second, (*one)[i].second, 0, 0), "") << folder;
    }
  }
}

std::vector<std::string> Types() {
  std::vector<std::string> types;
  for (const auto& [type, folders] : Folders()) types.push_back(type);
  return types;
}
INSTANTIATE_TEST_SUITE_P(Ops, Bfloat16RowTest, ::testing::ValuesIn(Types()),
                         [](const auto& info) { return info.param; });

// Golden cases hold no bfloat16, which NumPy does not have: conformance_test.cc leaves these rows
// to this test.
TEST(Bfloat16Test, EveryRowHasCases) {
  const std::set<std::string> exempt = {
      // No case in float32 either; below.
      "fused_conv2d", "fused_matmul", "sync_batch_norm", "sync_batch_norm_grad",
      // random_ops_test.cc
      "uniform_random", "uniform_random_batch_size_like",
      // optimizer_ops_test.cc
      "proximal_adagrad",
      // rnn_bfloat16_test.cc
      "rnn_grad",
      // evaluation_ops_test.cc
      "dequantize", "requantize",
      // weight_only_test.cc
      "weight_dequantize", "weight_quantize",
      // data_parallel_test.cc
      "c_bucket_allreduce"};
  std::vector<std::string> missing;
  for (absl::string_view type : OpRegistry::Global().Types()) {
    const OpDef& def = *OpRegistry::Global().Find(type);
    if (!HasRow(def, DType::kBFloat16) || Folders().contains(std::string(type))) continue;
    if (!exempt.contains(std::string(type))) missing.emplace_back(type);
  }
  EXPECT_THAT(missing, IsEmpty());
}

// `run` of float32 inputs, those in `narrowed` rounded, against the same with these as bfloat16.
void ExpectRounded(testing::OpRun run, const std::set<std::string>& narrowed,
                   const Tolerance& tolerance = {}) {
  testing::OpRun narrow_run = run;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (!narrowed.contains(run.inputs[i].first)) continue;
    narrow_run.inputs[i].second = Narrow(run.inputs[i].second);
    run.inputs[i].second = Wide(narrow_run.inputs[i].second);
  }
  const std::vector<Tensor> got = testing::OutputsOf(narrow_run);
  const std::vector<Tensor> want = testing::OutputsOf(run);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(Difference(got[i], want[i], tolerance), "") << testing::ProgramText(narrow_run);
  }
}

// Products of more than one block, of whole and of odd rows, whose matrices broadcast.
TEST(Bfloat16Test, LargeProductsRoundWhatFloat32Gives) {
  const auto run = [](const Shape& x, const Shape& y, const std::string& attrs) {
    ExpectRounded({.type = "matmul_v2",
                   .inputs = {{"X", testing::Numbers(x, 1)}, {"Y", testing::Numbers(y, 2)}},
                   .outputs = {"Out"},
                   .attrs = attrs},
                  {"X", "Y"});
  };
  run({500, 130}, {130, 70}, "");
  run({500, 131}, {131, 70}, "");
  run({131, 500}, {70, 131}, "trans_x=true, trans_y=true");
  run({3, 1, 50, 33}, {2, 33, 65}, "");
  run({1, 33}, {33, 1}, "");
}

TEST(Bfloat16Test, FusedProductsRoundOnce) {
  ExpectRounded({.type = "fused_matmul",
                 .inputs = {{"X", testing::Numbers({30, 17}, 1)},
                            {"Y", testing::Numbers({17, 40}, 2)},
                            {"Bias", testing::Numbers({40}, 3)}},
                 .outputs = {"Out"},
                 .attrs = "fuse_activation=\"gelu\", matmul_alpha=0.5"},
                {"X", "Y", "Bias"});
}

// The batch norm's parameters stay float32; the filter that they are folded into is rounded again.
// An activation that is no post-op of oneDNN's is computed in float32, too.
TEST(Bfloat16Test, FusedConvolutionsRoundOnce) {
  for (const std::string activation :
       {"fuse_activation=\"relu\"", "fuse_activation=\"hard_swish\", fuse_alpha=0.3"}) {
    testing::OpRun run = {.type = "fused_conv2d",
                          .inputs = {{"Input", testing::Numbers({2, 3, 7, 6}, 1)},
                                     {"Filter", testing::Numbers({5, 3, 3, 3}, 2)},
                                     {"Bias", testing::Numbers({5}, 3)}},
                          .outputs = {"Output"},
                          .attrs = absl::StrCat("paddings=[1, 1], ", activation)};
    ExpectRounded(run, {"Input", "Filter", "Bias"});
    run.inputs.emplace_back("ResidualData", testing::Numbers({2, 5, 7, 6}, 4));
    for (const char* name : {"BnScale", "BnBias", "BnMean"}) {
      run.inputs.emplace_back(name, testing::Numbers({5}, 5));
    }
    run.inputs.emplace_back("BnVariance", Tensor::Of<float>({5}, {0.3F, 0.7F, 1.1F, 0.9F, 2.3F}));
    absl::StrAppend(&run.attrs, ", fuse_residual=true");
    ExpectRounded(run, {"Input", "Filter", "Bias", "ResidualData"}, {.of_scale = 0x1p-8});
  }
}

}  // namespace
}  // namespace interp::bfloat16_test
