// Long because it has a case of each op, and models in files share its helpers.
// Kernels that take constants as files have them: at any byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/constant_elements.h"
#include "core/io/params.h"
#include "core/program_load.h"
#include "interpreter/interpreter_core.h"
#include "interpreter/load_model.h"
#include "interpreter/predictor.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/test_program.h"

namespace interp::testing::unaligned_constants_test {
namespace {

using Dims = TestProgram::Dims;

// A program whose parameters all are constants, and a feed of it.
struct Case {
  Program program;
  std::vector<Dims> params;  // of p0, p1, ...
  Tensor feed;
};

Tensor Numbers(const Dims& dims, int seed) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = Shape(dims);
  EXPECT_THAT(tensor.Allocate(SystemAllocator()), IsOk());
  auto* const values = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = static_cast<float>((i * 7 + seed * 13) % 31 - 15) / 16;
  }
  return tensor;
}

// The same values at an odd address.
Tensor Unaligned(const Tensor& tensor) {
  const BufferRef memory = *SystemAllocator().Allocate(tensor.size_bytes() + 1);
  char* const data = static_cast<char*>(memory->data) + 1;
  std::memcpy(data, tensor.raw_data(), tensor.size_bytes());
  Tensor moved = tensor;
  moved.SetMemory(memory, data);
  return moved;
}

std::shared_ptr<Scope> ScopeOf(const Case& c, bool aligned) {
  auto scope = std::make_shared<Scope>();
  for (size_t i = 0; i < c.params.size(); ++i) {
    const Tensor values = Numbers(c.params[i], static_cast<int>(i));
    scope->FindOrCreate(absl::StrCat("p", i))->tensor = aligned ? values : Unaligned(values);
  }
  return scope;
}

TestProgram Begin(const Dims& feed, const std::vector<Dims>& params) {
  TestProgram builder;
  builder.Feed("x", feed);
  for (size_t i = 0; i < params.size(); ++i) builder.Param(absl::StrCat("p", i), params[i]);
  return builder;
}

using Slots = TestProgram::Slots;
using Attrs = TestProgram::Attrs;

struct OpCall {
  std::string type;
  Slots inputs;
  Slots outputs;
  Attrs attrs = {};
};

// Of one op that takes "x", of these dims, and the parameters, and writes "y".
Case CaseOf(const Dims& feed, const std::vector<Dims>& params, const OpCall& op) {
  TestProgram builder = Begin(feed, params);
  builder.Declare("y", Dims(feed.size(), -1));
  builder.AddOp(op.type, op.inputs, op.outputs, op.attrs).Fetch("y");
  return {builder.Build(), params, Numbers(feed, /*seed=*/5)};
}

Case Product(const std::string& type, int64_t columns) {
  const bool fc = type == "fc";
  return CaseOf({3, 40}, {{40, columns}},
                {.type = type,
                 .inputs = {{fc ? "Input" : "X", {"x"}}, {fc ? "W" : "Y", {"p0"}}},
                 .outputs = {{"Out", {"y"}}}});
}

Case TransposedProduct() {
  return CaseOf({3, 40}, {{24, 40}},
                {.type = "matmul_v2",
                 .inputs = {{"X", {"x"}}, {"Y", {"p0"}}},
                 .outputs = {{"Out", {"y"}}},
                 .attrs = {{"trans_y", true}}});
}

Case Conv(const std::string& type, const Dims& image, const Dims& filter, int groups = 1) {
  return CaseOf(image, {filter},
                {.type = type,
                 .inputs = {{"Input", {"x"}}, {"Filter", {"p0"}}},
                 .outputs = {{"Output", {"y"}}},
                 .attrs = {{"groups", groups}}});
}

Case ConvPair() {
  return CaseOf({1, 16, 24, 24}, {{32, 16, 1, 1}, {32, 1, 3, 3}},
                {.type = "fused_pointwise_depthwise",
                 .inputs = {{"Input", {"x"}}, {"Filter", {"p0"}}, {"DepthwiseFilter", {"p1"}}},
                 .outputs = {{"Output", {"y"}}},
                 .attrs = {{"depthwise_groups", 32}, {"depthwise_paddings", std::vector{1, 1}}}});
}

Case Lookup(const std::string& type, int64_t padding) {
  const Dims ids = {4, 1};
  TestProgram builder;
  builder.Feed("x", ids, DType::kInt64).Param("p0", {6, 5}).Declare("y", {-1, 5});
  builder.AddOp(type, {{"W", {"p0"}}, {"Ids", {"x"}}}, {{"Out", {"y"}}},
                {{"padding_idx", padding}});
  builder.Fetch("y");
  return {builder.Build(), {{6, 5}}, Tensor::Of<int64_t>({4, 1}, {5, 0, 2, 2})};
}

Case Recurrent(const std::string& type) {
  const bool gru = type == "gru";
  const bool projects = type == "lstmp";
  const int64_t gates = gru ? 12 : 16;
  std::vector<Dims> params = {{projects ? 3 : 4, gates}, {1, gates}};
  Slots inputs = {{"Input", {"x"}}, {"Weight", {"p0"}}, {"Bias", {"p1"}}};
  Slots outputs = {{projects ? "Projection" : "Hidden", {"y"}}};
  if (projects) {
    params.push_back({4, 3});
    inputs.push_back({"ProjWeight", {"p2"}});
  }
  if (!gru) outputs.push_back({"Cell", {"c"}});
  Attrs attrs;
  if (!gru) attrs.push_back({"use_peepholes", false});
  Case c = CaseOf({5, gates}, params, {type, inputs, outputs, attrs});
  c.feed.lod = {{0, 2, 5}};
  return c;
}

// Two directions, whose weights and biases are a list.
Case Rnn() {
  std::vector<Dims> params;
  for (const Dims& dims : {Dims{12, 3}, Dims{12, 4}, Dims{12}, Dims{12}}) {
    params.insert(params.end(), 2, dims);
  }
  std::swap(params[1], params[2]);
  std::vector<std::string> list;
  for (size_t i = 0; i < params.size(); ++i) list.push_back(absl::StrCat("p", i));
  params.push_back({2, 2, 4});  // the state
  TestProgram builder = Begin({5, 2, 3}, params);
  builder.Declare("y", {-1, -1, -1});
  builder.AddOp("rnn", {{"Input", {"x"}}, {"PreState", {"p8"}}, {"WeightList", list}},
                {{"Out", {"y"}}, {"DropoutState", {"d"}}, {"Reserve", {"r"}}, {"State", {"s"}}},
                {{"mode", std::string("GRU")},
                 {"input_size", 3},
                 {"hidden_size", 4},
                 {"num_layers", 1},
                 {"is_bidirec", true},
                 {"is_test", true}});
  return {builder.Fetch("y").Build(), params, Numbers({5, 2, 3}, /*seed=*/5)};
}

// By op, cases that read a constant in each of the ways the kernel has.
const absl::flat_hash_map<std::string, std::vector<Case>>& Cases() {
  static const auto& cases = *new absl::flat_hash_map<std::string, std::vector<Case>>{
      {"mul", {Product("mul", 24), Product("mul", 1)}},
      {"matmul", {Product("matmul", 24), Product("matmul", 1)}},
      {"matmul_v2", {Product("matmul_v2", 24), Product("matmul_v2", 1), TransposedProduct()}},
      {"bmm",
       {CaseOf({2, 3, 4}, {{2, 4, 5}}, {"bmm", {{"X", {"x"}}, {"Y", {"p0"}}}, {{"Out", {"y"}}}})}},
      {"fc", {Product("fc", 24)}},
      {"fused_matmul", {Product("fused_matmul", 24)}},
      {"conv2d",
       {Conv("conv2d", {1, 16, 9, 9}, {16, 16, 1, 1}),
        Conv("conv2d", {1, 64, 28, 28}, {64, 64, 3, 3}),  // Winograd
        Conv("conv2d", {1, 3, 32, 32}, {16, 3, 5, 5}),    // few input channels
        Conv("conv2d", {1, 32, 24, 24}, {2, 32, 3, 3}),   // few output channels
        Conv("conv2d", {1, 32, 12, 12}, {32, 8, 3, 3}, 4)}},
      {"depthwise_conv2d", {Conv("depthwise_conv2d", {1, 32, 12, 12}, {32, 1, 3, 3}, 32)}},
      {"conv3d", {Conv("conv3d", {1, 4, 6, 6, 6}, {8, 4, 3, 3, 3})}},
      {"fused_conv2d", {Conv("fused_conv2d", {1, 16, 9, 9}, {16, 16, 1, 1})}},
      {"fused_conv3d", {Conv("fused_conv3d", {1, 4, 6, 6, 6}, {8, 4, 3, 3, 3})}},
      {"fused_pointwise_depthwise", {ConvPair()}},
      {"lookup_table", {Lookup("lookup_table", -1), Lookup("lookup_table", 2)}},
      {"lookup_table_v2", {Lookup("lookup_table_v2", -1), Lookup("lookup_table_v2", 2)}},
      {"conv2d_transpose", {Conv("conv2d_transpose", {1, 8, 9, 9}, {8, 6, 3, 3})}},
      {"depthwise_conv2d_transpose",
       {Conv("depthwise_conv2d_transpose", {1, 8, 9, 9}, {8, 1, 3, 3}, 8)}},
      {"conv3d_transpose", {Conv("conv3d_transpose", {1, 4, 5, 5, 5}, {4, 6, 3, 3, 3})}},
      {"fused_conv2d_transpose", {Conv("fused_conv2d_transpose", {1, 8, 9, 9}, {8, 6, 3, 3})}},
      {"rnn", {Rnn()}},
      {"lstm", {Recurrent("lstm")}},
      {"lstmp", {Recurrent("lstmp")}},
      {"gru", {Recurrent("gru")}},
  };
  return cases;
}

std::unique_ptr<InterpreterCore> CoreOf(const Program& program, std::shared_ptr<Scope> scope,
                                        Algorithms algorithms = Algorithms::kFast) {
  const CoreOptions options{
      .scheduler = SchedulerKind::kTrace, .num_threads = 1, .algorithms = algorithms};
  auto core = InterpreterCore::Create(program, {}, {}, std::move(scope), options);
  EXPECT_THAT(core, IsOk());
  return core.ok() ? *std::move(core) : nullptr;
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.dtype == b.dtype &&
         std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

TEST(UnalignedConstants, EachOpThatTakesThemHasACase) {
  for (const absl::string_view type : OpRegistry::Global().Types()) {
    for (const SlotDef& slot : OpRegistry::Global().Find(type)->inputs) {
      if ((slot.flags & kMayBeUnaligned) == 0) continue;
      EXPECT_TRUE(Cases().contains(type)) << type << " takes " << slot.name;
    }
  }
}

TEST(UnalignedConstants, GiveTheSameBits) {
  for (const auto& [type, cases] : Cases()) {
    for (const Case& c : cases) {
      for (const Algorithms algorithms : {Algorithms::kFast, Algorithms::kDirect}) {
        SCOPED_TRACE(type);
        const auto aligned = CoreOf(c.program, ScopeOf(c, /*aligned=*/true), algorithms);
        const auto scope = ScopeOf(c, /*aligned=*/false);
        const auto unaligned = CoreOf(c.program, scope, algorithms);
        ASSERT_TRUE(aligned != nullptr && unaligned != nullptr);
        for (int run = 0; run < 2; ++run) {
          const auto want = aligned->Run({c.feed});
          const auto got = unaligned->Run({c.feed});
          ASSERT_THAT(want, IsOk());
          ASSERT_THAT(got, IsOk());
          EXPECT_TRUE(SameBits((*want)[0], (*got)[0])) << "run " << run;
        }
        EXPECT_FALSE(IsAligned(scope->Find("p0")->tensor)) << "moved for nothing";
      }
    }
  }
}

// y = ((x a + b) c) * a, where a and c are large enough to stay in their file.
constexpr int64_t kSide = 160;

Program TwoReaders() {
  return TestProgram()
      .Feed("x", {-1, kSide})
      .Param("a_shared", {kSide, kSide})
      .Param("b_bias", {kSide})
      .Param("c_weight", {kSide, kSide})
      .AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"a_shared"}}}, {{"Out", {"h"}}})
      .AddOp("elementwise_add", {{"X", {"h"}}, {"Y", {"b_bias"}}}, {{"Out", {"i"}}})
      .AddOp("matmul_v2", {{"X", {"i"}}, {"Y", {"c_weight"}}}, {{"Out", {"j"}}})
      .AddOp("elementwise_mul", {{"X", {"j"}}, {"Y", {"a_shared"}}}, {{"Out", {"y"}}})
      .Fetch("y")
      .Build();
}

std::vector<NamedTensor> ParamsOfTwoReaders() {
  return {{"a_shared", Numbers({kSide, kSide}, 1)},
          {"b_bias", Numbers({kSide}, 2)},
          {"c_weight", Numbers({kSide, kSide}, 3)}};
}

// Writes the model and returns what the program makes of x with copies of the parameters.
Tensor Expected(const TempFolder& folder, const Program& program,
                const std::vector<NamedTensor>& params, const Tensor& x) {
  std::ofstream(folder / "m.pdmodel", std::ios::binary) << *SaveProgram(program);
  EXPECT_THAT(WriteCombinedParams(folder / "m.pdiparams", params), IsOk());
  auto scope = std::make_shared<Scope>();
  for (const auto& [name, tensor] : params) scope->FindOrCreate(name)->tensor = tensor;
  const auto want = CoreOf(program, scope)->Run({x});
  EXPECT_THAT(want, IsOk());
  return want.ok() ? (*want)[0] : Tensor();
}

Tensor ExpectedOfTwoReaders(const TempFolder& folder, const Tensor& x) {
  return Expected(folder, TwoReaders(), ParamsOfTwoReaders(), x);
}

absl::StatusOr<Model> Loaded(const TempFolder& folder) {
  return LoadModel(folder / "m.pdmodel", std::nullopt, RefuseUnloaded, ParamMemory::kFile);
}

TEST(UnalignedConstants, StayInTheirFileWhereOnlyPacked) {
  const TempFolder folder;
  const Tensor x = Numbers({kSide, kSide}, 9);
  const Tensor want = ExpectedOfTwoReaders(folder, x);
  const absl::StatusOr<Model> model = Loaded(folder);
  ASSERT_THAT(model, IsOk());
  const auto tensor = [&](const char* name) { return model->scope->Find(name)->tensor; };
  ASSERT_FALSE(IsAligned(tensor("a_shared")) && IsAligned(tensor("c_weight")));
  const auto core = CoreOf(model->program, model->scope);
  for (int run = 0; run < 2; ++run) {
    const auto got = core->Run({x});
    ASSERT_THAT(got, IsOk());
    EXPECT_TRUE(SameBits(want, (*got)[0]));
  }
  EXPECT_TRUE(tensor("c_weight").buffer()->in_file);
  EXPECT_TRUE(IsAligned(tensor("a_shared")));
  // What the file has is what there was.
  const absl::StatusOr<ConstantElements> weight = ConstantElements::Of(tensor("c_weight"));
  ASSERT_THAT(weight, IsOk());
  EXPECT_TRUE(SameBits(**weight, Numbers({kSide, kSide}, 3)));
}

// The model, whose program gives the same from its files.
Model ExpectSameFromFiles(const Program& program, const std::vector<NamedTensor>& params,
                          const Tensor& x) {
  const TempFolder folder;
  const Tensor want = Expected(folder, program, params, x);
  absl::StatusOr<Model> model = Loaded(folder);
  EXPECT_THAT(model, IsOk());
  if (!model.ok()) return {};
  const auto got = CoreOf(model->program, model->scope)->Run({x});
  EXPECT_THAT(got, IsOk());
  EXPECT_TRUE(got.ok() && SameBits(want, (*got)[0]));
  return *std::move(model);
}

// More than 4 MiB each.
TEST(UnalignedConstants, LargeOnesArePackedInParts) {
  const Dims dims = {1100, 1010};
  const Program program =
      TestProgram()
          .Feed("x", {-1, dims[0]})
          .Param("a", dims)
          .Param("b", dims)
          .AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"a"}}}, {{"Out", {"y"}}})
          .AddOp("matmul_v2", {{"X", {"y"}}, {"Y", {"b"}}}, {{"Out", {"z"}}}, {{"trans_y", true}})
          .Fetch("z")
          .Build();
  const Model model = ExpectSameFromFiles(
      program, {{"a", Numbers(dims, 1)}, {"b", Numbers(dims, 2)}}, Numbers({3, dims[0]}, 9));
  for (const char* const name : {"a", "b"}) {
    EXPECT_TRUE(model.scope->Find(name)->tensor.buffer()->in_file) << name;
  }
}

TEST(UnalignedConstants, MayHaveNoColumns) {
  const Program program =
      TestProgram()
          .Feed("x", {-1, 0})
          .Param("a", {20000, 0})
          .AddOp("matmul_v2", {{"X", {"x"}}, {"Y", {"a"}}}, {{"Out", {"y"}}}, {{"trans_y", true}})
          .Fetch("y")
          .Build();
  ExpectSameFromFiles(program, {{"a", Numbers({20000, 0}, 1)}}, Numbers({3, 0}, 9));
}

TEST(UnalignedConstants, APredictorGivesTheSameBits) {
  const TempFolder folder;
  const Tensor x = Numbers({kSide, kSide}, 9);
  const Tensor want = ExpectedOfTwoReaders(folder, x);
  const auto predictor = Predictor::Load(folder / "m.pdmodel");
  ASSERT_THAT(predictor, IsOk());
  for (int run = 0; run < 2; ++run) {
    const auto got = (*predictor)->Run({x});
    ASSERT_THAT(got, IsOk());
    EXPECT_TRUE(SameBits(want, (*got)[0]));
  }
}

// A core whose plan reads the weight in another way shares the scope.
TEST(UnalignedConstants, MayBeMovedByAnotherCore) {
  const TempFolder folder;
  const Tensor x = Numbers({kSide, kSide}, 9);
  const Tensor want = ExpectedOfTwoReaders(folder, x);
  const absl::StatusOr<Model> model = Loaded(folder);
  ASSERT_THAT(model, IsOk());
  const auto core = CoreOf(model->program, model->scope);
  ASSERT_THAT(core->Run({x}), IsOk());
  const auto reader =
      CoreOf(TestProgram()
                 .Feed("x", {-1, kSide})
                 .Param("c_weight", {kSide, kSide})
                 .AddOp("elementwise_add", {{"X", {"x"}}, {"Y", {"c_weight"}}}, {{"Out", {"y"}}})
                 .Fetch("y")
                 .Build(),
             model->scope);
  ASSERT_THAT(reader->Run({x}), IsOk());
  EXPECT_TRUE(IsAligned(model->scope->Find("c_weight")->tensor));
  const auto got = core->Run({x});
  ASSERT_THAT(got, IsOk());
  EXPECT_TRUE(SameBits(want, (*got)[0]));
}

}  // namespace
}  // namespace interp::testing::unaligned_constants_test
