#include "core/resource/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "core/resource/random_stream.h"

namespace interp {
namespace {

TEST(Distributions, UnitsStayInTheirIntervals) {
  EXPECT_EQ(UnitFloat(0), 0.0F);
  EXPECT_LT(UnitFloat(UINT32_MAX), 1.0F);
  EXPECT_EQ(UnitDouble(0), 0.0);
  EXPECT_LT(UnitDouble(UINT64_MAX), 1.0);
  EXPECT_GT(OpenUnit(uint32_t{0}), 0.0);
  EXPECT_LT(OpenUnit(UINT32_MAX), 1.0);
  EXPECT_GT(OpenUnit(uint64_t{0}), 0.0);
  EXPECT_LT(OpenUnit(UINT64_MAX), 1.0);
  EXPECT_EQ(OpenUnit(uint32_t{0}), 1.0 - OpenUnit(UINT32_MAX));
}

TEST(Distributions, BelowReachesBothEnds) {
  EXPECT_EQ(Below(0, 7), 0u);
  EXPECT_EQ(Below(UINT64_MAX, 7), 6u);
  EXPECT_EQ(Below(UINT64_MAX, uint64_t{1} << 32), (uint64_t{1} << 32) - 1);
  EXPECT_EQ(Below(12345, 1), 0u);
}

TEST(Distributions, ThresholdsOfCertainty) {
  EXPECT_EQ(Threshold32(0), 0u);                 // never
  EXPECT_EQ(Threshold32(1), uint64_t{1} << 32);  // whatever the bits
  EXPECT_EQ(Threshold32(0.5), uint64_t{1} << 31);
}

TEST(Distributions, QuantilesInvertTheDistribution) {
  EXPECT_EQ(NormalQuantile(0.5), 0.0);
  EXPECT_NEAR(NormalQuantile(0.975), 1.9599639845400545, 1e-14);
  for (const double p : {1e-300, 1e-20, 1e-9, 0.001, 0.02275, 0.07, 0.3, 0.499}) {
    const double x = NormalQuantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1.0, 1e-12) << p;
  }
  EXPECT_NEAR(NormalQuantile(0.7), -NormalQuantile(0.3), 1e-15);
}

TEST(Distributions, NormalPairsAreFiniteAtTheEdges) {
  for (const uint32_t radius : {uint32_t{0}, UINT32_MAX}) {
    for (const uint32_t angle : {uint32_t{0}, uint32_t{1} << 31, UINT32_MAX}) {
      const auto [a, b] = NormalPair<float>(radius, angle);
      EXPECT_TRUE(std::isfinite(a) && std::isfinite(b));
      EXPECT_LT(std::hypot(a, b), 6.8F);
    }
  }
  const auto [a, b] = NormalPair<double>(uint64_t{0}, UINT64_MAX);
  EXPECT_TRUE(std::isfinite(a) && std::isfinite(b));
}

// Streams are told apart by every part of their address.
TEST(RandomStream, DiffersBySeedStreamStepOpAndSplit) {
  std::set<PhiloxBlock> blocks;
  int drawn = 0;
  const auto draw = [&](const RandomStream& stream) {
    for (uint64_t block : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40}) {
      blocks.insert(stream.Block(block));
      ++drawn;
    }
  };
  for (uint64_t n = 0; n < 4; ++n) draw(RandomStream({.seed = n}, 0));
  for (uint64_t n = 1; n < 4; ++n) draw(RandomStream({.stream = n}, 0));
  for (uint64_t n = 1; n < 4; ++n) draw(RandomStream({.step = n}, 0));
  for (uint64_t n = 1; n < 4; ++n) draw(RandomStream(RandomState{}, n));
  const RandomStream stream({.seed = 9}, 5);
  for (uint64_t n = 0; n < 4; ++n) {
    draw(stream.Split(n));
    draw(stream.Split(n).Split(n));
  }
  EXPECT_EQ(blocks.size(), static_cast<size_t>(drawn));
}

TEST(RandomStream, WordsAreThoseOfTheBlocks) {
  const RandomStream stream({.seed = 3, .step = 8}, 77);
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(stream.Word(i), stream.Block(i / 4)[i % 4]);
}

// Numbers that are part of the promise: the same in every version and on every machine.
TEST(RandomStream, KeepsItsNumbers) {
  const PhiloxBlock block = RandomStream({.seed = 1, .stream = 2, .step = 3}, 4).Block(5);
  EXPECT_EQ(block, (PhiloxBlock{0xe0bf4dee, 0x90afab72, 0xe5a8c5d9, 0x23066728}));
}

}  // namespace
}  // namespace interp
