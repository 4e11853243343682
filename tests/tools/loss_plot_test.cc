#include "tools/loss_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace interp {
namespace {

using ::testing::HasSubstr;

TEST(PlotSvgTest, DrawsValuesThatDifferInTheLastBit) {
  const std::string svg = PlotSvg({{"loss", {1, 2}, {1, std::nextafter(1.0, 2.0)}}});
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_LT(svg.size(), 10000u);
}

TEST(PlotSvgTest, DrawsAnyRange) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
  for (const double value : {0.0, kSmallest, kLargest, -kLargest, std::nan("")}) {
    EXPECT_THAT(PlotSvg({{"loss", {1, 2}, {value, value}}}), HasSubstr("</svg>")) << value;
    EXPECT_THAT(PlotSvg({{"loss", {1, 2}, {value, -value}}}), HasSubstr("</svg>")) << value;
  }
}

}  // namespace
}  // namespace interp
