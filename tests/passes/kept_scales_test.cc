#include "passes/quant/kept_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/program_parse.h"
#include "core/program_print.h"
#include "tests/testing/matchers.h"

namespace interp::kept_scales_test {
namespace {

using testing::IsOk;

constexpr absl::string_view kVars = R"(block 0
  var x float32[2]
  var y float32[2]
  var t float32[1]
  var s float32[1] persistable
  var a float32[1] persistable
  var z float32[1] persistable
)";

// What becomes of the ops.
std::string Kept(absl::string_view ops) {
  absl::StatusOr<Program> program = ParseProgram(absl::StrCat(kVars, ops));
  EXPECT_THAT(program, IsOk());
  if (program.ok()) program = KeepScales(*std::move(program));
  EXPECT_THAT(program, IsOk());
  return program.ok() ? ToText(*program).substr(kVars.size()) : "";
}

TEST(KeepScalesTest, TestsLeaveStates) {
  EXPECT_EQ(Kept("  moving_average_abs_max_scale(X=x) -> (Out=y, OutScale=s, OutState=z, "
                 "OutAccum=a) {is_test=true}\n"),
            "  moving_average_abs_max_scale(X=x) -> (Out=y) {is_test=true}\n");
  EXPECT_EQ(Kept("  fake_quantize_moving_average_abs_max(X=x, InScale=s) -> (Out=y, OutScale=s) "
                 "{is_test=true}\n"),
            "  fake_quantize_moving_average_abs_max(X=x, InScale=s) -> (Out=y) {is_test=true}\n");
}

TEST(KeepScalesTest, AnOpWithoutResultsGoes) {
  EXPECT_EQ(Kept("  moving_average_abs_max_scale(X=x) -> (OutScale=s) {is_test=true}\n"), "");
}

TEST(KeepScalesTest, TestsByChannelReadWhatTrainingHasLeft) {
  EXPECT_EQ(
      Kept("  fake_channel_wise_quantize_abs_max(X=x) -> (Out=y, OutScale=s) {is_test=true}\n"),
      "  fake_channel_wise_quantize_abs_max(X=x, InScale=s) -> (Out=y) {is_test=true}\n");
}

TEST(KeepScalesTest, TrainingWritesThem) {
  for (const absl::string_view ops : {
           "  moving_average_abs_max_scale(X=x) -> (Out=y, OutScale=s) {is_test=false}\n",
           "  moving_average_abs_max_scale(X=x) -> (Out=y, OutScale=s)\n",
           "  fake_channel_wise_quantize_abs_max(X=x) -> (Out=y, OutScale=s)\n",
           "  quantize_linear(X=x, Scale=s) -> (Y=y, OutScale=s, OutState=z, OutAccum=a) "
           "{is_test=false, quant_axis=-1}\n",
       }) {
    EXPECT_EQ(Kept(ops), ops);
  }
}

TEST(KeepScalesTest, LinearQuantizersTestByDefault) {
  EXPECT_EQ(Kept("  quantize_linear(X=x, Scale=s) -> (Y=y, OutScale=s, OutState=z)\n"),
            "  quantize_linear(X=x, Scale=s) -> (Y=y)\n");
}

TEST(KeepScalesTest, TrainingByChannelLeavesTheAverage) {
  EXPECT_EQ(Kept("  quantize_linear(X=x, Scale=s) -> (Y=y, OutScale=s, OutState=z, OutAccum=a) "
                 "{is_test=false, quant_axis=0}\n"),
            "  quantize_linear(X=x, Scale=s) -> (Y=y, OutScale=s) {is_test=false, quant_axis=0}\n");
}

TEST(KeepScalesTest, DequantizersLeaveStatesInTraining) {
  EXPECT_EQ(Kept("  dequantize_linear(X=x, Scale=s) -> (Y=y, OutScale=s, OutState=z) "
                 "{is_test=false}\n"),
            "  dequantize_linear(X=x, Scale=s) -> (Y=y) {is_test=false}\n");
}

TEST(KeepScalesTest, WhatDoesNotOutliveARunStays) {
  const absl::string_view ops =
      "  fake_quantize_moving_average_abs_max(X=x, InScale=s) -> (Out=y, OutScale=t) "
      "{is_test=true}\n";
  EXPECT_EQ(Kept(ops), ops);
}

}  // namespace
}  // namespace interp::kept_scales_test
