// interp info FILE.rec; the files are of mxnet, see tests/core/io/records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/io/file.h"
#include "nlohmann/json.hpp"
#include "tests/testing/command.h"

namespace interp::testing {
namespace {

using ::testing::HasSubstr;

std::string Records() { return absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/records/"); }

TEST(RecordInfo, TellsRecordsLabelsAndIndex) {
  const CommandResult result = RunInterp({"info", Records() + "pets.rec"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("pets.rec: 10 records, 10 of them pictures, 7.20 KiB\n"));
  EXPECT_THAT(result.out, HasSubstr("pets.idx: 10 of 10 records\n"));
  EXPECT_THAT(result.out, HasSubstr("damaged  nothing\n"));
  EXPECT_THAT(result.out, HasSubstr("    1         3\n"));
}

TEST(RecordInfo, ListsRecords) {
  const CommandResult pets = RunInterp({"info", Records() + "pets.rec", "--records"});
  EXPECT_THAT(pets.out, HasSubstr("\n  5876    723   8  16 x 12 jpg       2\n"));
  const CommandResult magic = RunInterp({"info", Records() + "magic.rec", "--records"});
  EXPECT_EQ(magic.exit_code, 0) << magic.err;
  EXPECT_THAT(magic.out, HasSubstr("14 records, 0 of them pictures"));
}

TEST(RecordInfo, DamageAndForeignIndexesAreTold) {
  const TemporaryFolder folder;
  std::string bytes = ReadFile(Records() + "pets.rec").value();
  bytes[1472] = 'x';
  std::ofstream(folder / "a.rec", std::ios::binary) << bytes;
  const CommandResult damaged = RunInterp({"info", folder / "a.rec"});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.out,
              HasSubstr("damaged  736 bytes in 1 place\n  bytes 1472 to 2208: byte 1472: "
                        "no record"));
  EXPECT_THAT(damaged.out, HasSubstr("index    none\n"));
  std::filesystem::copy_file(Records() + "pets.idx", folder / "a.idx");
  const CommandResult indexed = RunInterp({"info", folder / "a.rec"});
  EXPECT_THAT(indexed.out, HasSubstr("a.idx: no record begins at byte 1472, of key 2"));
  EXPECT_EQ(nlohmann::json::parse(RunInterp({"info", folder / "a.rec", "--json"}).out)
                .at("damaged_bytes"),
            736);
  std::ofstream(folder / "a.idx") << "0\t0\n1\t0\n";
  EXPECT_THAT(RunInterp({"info", folder / "a.rec"}).out,
              HasSubstr("a.idx: two records begin at byte 0"));
  std::ofstream(folder / "a.idx") << "0\n";
  EXPECT_THAT(RunInterp({"info", folder / "a.rec"}).out, HasSubstr("a.idx: line 1"));
}

TEST(RecordInfo, FlagsOfProgramsHaveNoEffect) {
  EXPECT_THAT(RunInterp({"info", Records() + "pets.rec", "--shape", "x=1"}).err,
              HasSubstr("--shape has no effect on a record file"));
  EXPECT_THAT(RunInterp({"info", "a.pdmodel", "--records"}).err,
              HasSubstr("--records has no effect"));
}

}  // namespace
}  // namespace interp::testing
