#include "passes/quant/mobile_quantizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/program_text.h"

namespace interp::mobile_quantizers_test {
namespace {

using ::testing::ElementsAre;

TEST(MobileQuantizers, GetTheirNamesBack) {
  Program program = testing::Parse(R"(block 0
  quantize(X=x, InScale=s) -> (Out=a, OutScale=s) {is_test=true}
  dequantize(X=a, Scales=[c, s]) -> (Out=d)
)");
  NameMobileQuantizers(program);
  EXPECT_THAT(testing::OpTypes(program), ElementsAre("fake_quantize_moving_average_abs_max",
                                                     "fake_channel_wise_dequantize_max_abs"));
}

TEST(MobileQuantizers, OthersKeepTheirs) {
  Program program = testing::Parse(R"(block 0
  quantize(Input=x) -> (Output=a)
  dequantize(Input=a) -> (Output=b)
  quantize(X=x, InScale=s) -> (Out=a, OutScale=s)
  quantize(X=x) -> (Out=c, OutScale=t)
  dequantize(X=c, Scale=t) -> (Out=d) {max_range=8.0}
)");
  NameMobileQuantizers(program);
  EXPECT_THAT(testing::OpTypes(program),
              ElementsAre("quantize", "dequantize", "quantize", "quantize", "dequantize"));
}

}  // namespace
}  // namespace interp::mobile_quantizers_test
