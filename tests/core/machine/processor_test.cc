#include "core/machine/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/machine/build_info.h"

namespace interp {
namespace {

// The features that Linux sees; empty where it does not list them as on x86.
std::set<std::string> KernelFlags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    return {words.begin(), words.end()};
  }
  return {};
}

TEST(ProcessorTest, AgreesWithTheKernel) {
  const std::set<std::string> flags = KernelFlags();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no flags";
  const auto has = [&](const char* flag) { return flags.count(flag) != 0; };
  EXPECT_EQ(ProcessorHasBf16Products(), has("avx512_bf16"));
  EXPECT_EQ(ProcessorHasBf16Tiles(), has("amx_bf16"));
  EXPECT_EQ(ProcessorHasInt8Products(), has("avx512_vnni"));
  EXPECT_EQ(ProcessorLevel() == "x86-64-v4", has("avx512vl") && has("avx512bw") &&
                                                 has("avx512dq") && has("avx512cd") && has("avx2"));
  EXPECT_EQ(ProcessorLevel() >= "x86-64-v3", has("avx2") && has("fma") && has("bmi2"));
  EXPECT_EQ(ProcessorLevel() >= "x86-64-v2", has("sse4_2") && has("popcnt"));
}

TEST(ProcessorTest, L2CachesAreLikeThoseThatAreSold) {
  EXPECT_GE(L2CacheBytes(), int64_t{64} << 10);
  EXPECT_LE(L2CacheBytes(), int64_t{1} << 30);
}

TEST(ProcessorTest, RunsWhatTheLibraryIsBuiltFor) {
  EXPECT_LE(GetBuildInfo().level, ProcessorLevel());
}

}  // namespace
}  // namespace interp
