// What is read of the parameters of a packed plan whose kernels have packed their weights.
#include "interpreter/plan_file/plan_file.h"
#include "tests/testing/packed_plans.h"
#include "tests/testing/test_program.h"

namespace interp::testing {
namespace {

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// Reads a plan file of real ops, in which a byte of that parameter is damaged.
absl::Status UseDamaged(const Ready& packed, size_t parameter) {
  const Tensor& damaged = packed.compiled.packed->parameters[parameter].second;
  INTERP_ASSIGN_OR_RETURN(
      CompiledProgram read,
      ParsePlan(WithDamage(*FormatPlan(packed.compiled), damaged), OpRegistry::Global()));
  Scope scope;
  std::string note;
  return UsePackedConstants(read, scope, &note);
}

TEST(PackedWeightsTest, ABiasThatIsReadBesideAPackedWeightIsChecked) {
  const Ready packed = PackedOf(
      TestProgram()
          .Feed("x", {-1, 2})
          .Param("b", {3})
          .Param("w", {2, 3})
          .AddOp("mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"m"}}})
          .Declare("y", {-1, 3})
          .AddOp("elementwise_add", {{"X", {"m"}}, {"Y", {"b"}}}, {{"Out", {"y"}}}, {{"axis", 1}})
          .Fetch("y")
          .Build(),
      {{"b", Tensor::Of<float>({3}, {7, 8, 9})},
       {"w", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}},
      Tensor::Of<float>({1, 2}, {10, 20}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  EXPECT_THAT(UseDamaged(packed, 0),
              FailsWith(kDataLoss, "damaged: the checksum of parameter 'b' differs"));
  EXPECT_THAT(UseDamaged(packed, 1), IsOk());  // its packed form is read
}

TEST(PackedWeightsTest, WhatARecurrentOpReadsBesideItsPackedWeightIsChecked) {
  const Ready packed = PackedOf(
      TestProgram()
          .Feed("x", {-1, 3})
          .Param("b", {1, 3})
          .Param("h", {1, 1})
          .Param("w", {1, 3})
          .AddOp("gru_unit",
                 {{"Input", {"x"}}, {"HiddenPrev", {"h"}}, {"Weight", {"w"}}, {"Bias", {"b"}}},
                 {{"Gate", {"gate"}}, {"ResetHiddenPrev", {"reset"}}, {"Hidden", {"y"}}})
          .Fetch("y")
          .Build(),
      {{"b", Tensor::Of<float>({1, 3}, {7, 8, 9})},
       {"h", Tensor::Of<float>({1, 1}, {0.625F})},
       {"w", Tensor::Of<float>({1, 3}, {1, 2, 3})}},
      Tensor::Of<float>({1, 3}, {10, 20, 30}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  EXPECT_THAT(UseDamaged(packed, 0), FailsWith(kDataLoss, "parameter 'b' differs"));
  EXPECT_THAT(UseDamaged(packed, 1), FailsWith(kDataLoss, "parameter 'h' differs"));
  EXPECT_THAT(UseDamaged(packed, 2), IsOk());
}

TEST(PackedWeightsTest, WhatIsFoldedIntoAPackedFilterIsNotRead) {
  const Ready packed =
      PackedOf(TestProgram()
                   .Feed("x", {-1, 1, 2, 2})
                   .Param("b", {2})
                   .Param("w", {2, 1, 2, 2})
                   .Declare("c", {-1, 2, 1, 1})
                   .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}, {"Bias", {"b"}}},
                          {{"Output", {"c"}}})
                   .Fetch("c")
                   .Build(),
               {{"b", Tensor::Of<float>({2}, {0.375F, 8})},
                {"w", Tensor::Of<float>({2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}},
               Tensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4}), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 1U);
  CompiledProgram read = *ParsePlan(*FormatPlan(packed.compiled), OpRegistry::Global());
  auto damaged = std::make_shared<PackedConstants>(*read.packed);
  for (uint64_t& checksum : damaged->parameter_checksums) checksum ^= 1;
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), IsOk());
  damaged->entries.clear();
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), FailsWith(kDataLoss, "damaged"));
}

// A weight that is made of parameters is made and packed once.
TEST(PackedWeightsTest, WhatIsMadeOfParametersIsPackedToo) {
  const Ready packed = PackedOf(
      TestProgram()
          .Feed("x", {-1, 2})
          .Param("v", {2, 1})
          .Param("w", {2, 2})
          .Declare("joined", {2, 3})
          .AddOp("concat", {{"X", {"v", "w"}}}, {{"Out", {"joined"}}}, {{"axis", 1}})
          .AddOp("mul", {{"X", {"x"}}, {"Y", {"joined"}}}, {{"Out", {"y"}}})
          .Fetch("y")
          .Build(),
      {{"v", Tensor::Of<float>({2, 1}, {1, 2})}, {"w", Tensor::Of<float>({2, 2}, {3, 4, 5, 6})}},
      Tensor::Of<float>({1, 2}, {10, 20}), OpRegistry::Global());
  // The folded value, and what the product packed of it.
  ASSERT_EQ(packed.compiled.packed->entries.size(), 2U);
  EXPECT_LT(packed.compiled.packed->entries[0].instruction, 0);
  EXPECT_GE(packed.compiled.packed->entries[1].instruction, 0);
}

TEST(PackedWeightsTest, FiltersOfAPairAreNotRead) {
  const std::vector<float> w(256 * 256, 0.5F);
  const std::vector<float> v(256 * 9, 0.25F);
  const std::vector<float> x(256 * 16, 2);
  const Ready packed = PackedOf(
      TestProgram()
          .Feed("x", {-1, 256, 4, 4})
          .Param("v", {256, 1, 3, 3})
          .Param("w", {256, 256, 1, 1})
          .Declare("a", {-1, 256, 4, 4})
          .Declare("b", {-1, 256, 2, 2})
          .AddOp("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"a"}}})
          .AddOp("depthwise_conv2d", {{"Input", {"a"}}, {"Filter", {"v"}}}, {{"Output", {"b"}}},
                 {{"groups", 256}})
          .Fetch("b")
          .Build(),
      {{"v", Tensor::Of<float>({256, 1, 3, 3}, v)}, {"w", Tensor::Of<float>({256, 256, 1, 1}, w)}},
      Tensor::Of<float>({1, 256, 4, 4}, x), OpRegistry::Global());
  ASSERT_EQ(packed.compiled.packed->entries.size(), 2U);
  CompiledProgram read = *ParsePlan(*FormatPlan(packed.compiled), OpRegistry::Global());
  auto damaged = std::make_shared<PackedConstants>(*read.packed);
  for (uint64_t& checksum : damaged->parameter_checksums) checksum ^= 1;
  EXPECT_THAT(CheckReadParameters(read.plans, *damaged), IsOk());

  Ready loaded;
  loaded.compiled = std::move(read);
  ASSERT_THAT(UsePackedConstants(loaded.compiled, *loaded.scope, &loaded.note), IsOk());
  const auto core =
      InterpreterCore::Create(loaded.compiled, loaded.scope, PackedOptions(OpRegistry::Global()));
  ASSERT_THAT(core, IsOk());
  for (const int64_t batch : {1, 40}) {
    Tensor feed;
    feed.dtype = DType::kFloat32;
    feed.shape = {batch, 256, 4, 4};
    ASSERT_THAT(feed.Allocate(SystemAllocator()), IsOk());
    std::fill_n(feed.mutable_data<float>(), feed.numel(), 2.0F);
    const auto out = (*core)->Run({feed});
    ASSERT_THAT(out, IsOk());
    EXPECT_EQ(*(*out)[0].data<float>(), 256 * 0.5F * 2 * 9 * 0.25F);
  }
}

}  // namespace
}  // namespace interp::testing
