#include "interpreter/model_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TempFolder;

class ModelFilesTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "x";
    return folder_ / name;
  }
  void Expect(const std::string& path, const std::string& model, const std::string& params) {
    SCOPED_TRACE(path);
    const absl::StatusOr<ModelFiles> files = FindModelFiles(path);
    ASSERT_THAT(files, IsOk());
    EXPECT_EQ(files->model, model);
    EXPECT_EQ(files->params, params);
  }
  TempFolder folder_;
};

TEST_F(ModelFilesTest, FindsParametersByTheNameOfTheModel) {
  const std::string model = Make("a/inference.pdmodel");
  Expect(model, model, "");
  const std::string pickled = Make("a/inference.pdparams");
  Make("a/other.pdiparams");
  Expect(model, model, pickled);
  const std::string params = Make("a/inference.pdiparams");
  for (const std::string path : {"a/inference.pdmodel", "a/inference", "a"}) {
    Expect(folder_ / path, model, params);
  }
}

TEST_F(ModelFilesTest, KnowsTheNamesOfOldReleases) {
  const std::string model = Make("old/__model__");
  Expect(folder_ / "old", model, "");
  Make("old/conv_w");
  Expect(folder_ / "old", model, folder_ / "old");
  const std::string params = Make("old/__params__");
  Expect(folder_ / "old", model, params);
  Expect(model, model, params);
}

TEST_F(ModelFilesTest, TakesAnyFileAsAModel) {
  const std::string text = Make("net.txt");
  Expect(text, text, "");
}

TEST_F(ModelFilesTest, SaysWhatItLookedFor) {
  const auto not_found = absl::StatusCode::kNotFound;
  EXPECT_THAT(FindModelFiles(folder_ / "none"), FailsWith(not_found, "none.pdmodel"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(FindModelFiles(folder_ / "empty"), FailsWith(not_found, "neither a .pdmodel nor"));
  Make("two/a.pdmodel");
  Make("two/b.pdmodel");
  EXPECT_THAT(FindModelFiles(folder_ / "two"),
              FailsWith(absl::StatusCode::kInvalidArgument, "two/a.pdmodel, "));
}

}  // namespace
}  // namespace interp
