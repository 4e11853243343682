// What is given for a program and is none.
#include "core/io/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/file.h"

namespace interp {
namespace {

using ::testing::HasSubstr;

const std::string kDigits = std::string(INTERP_SOURCE_DIR) + "/tools/digits/";

TEST(FileKindTest, ForeignFilesAreCalledByTheirNames) {
  const std::string onnx("\x08\x07\x12\x07pytorch", 11);
  EXPECT_THAT(ForeignFileHint("m.onnx", "anything"), HasSubstr("an ONNX model"));
  EXPECT_THAT(ForeignFileHint("m.bin", onnx), HasSubstr("an ONNX model"));
  EXPECT_THAT(ForeignFileHint("m.json", "{\"base_code\":{\"magic\":\"pir\"}}"),
              HasSubstr("a program of Paddle 3"));
  EXPECT_EQ(ForeignFileHint("m.pdmodel", ""), "the file is empty");
  EXPECT_THAT(ForeignFileHint("m", absl::string_view("PK\x03\x04", 4)), HasSubstr("zip"));
  EXPECT_THAT(ForeignFileHint("m", *ReadFile(kDigits + "image.npy")), HasSubstr("NumPy"));
  EXPECT_THAT(ForeignFileHint("m", *ReadFile(kDigits + "digits.pdiparams")),
              HasSubstr("a parameter file"));
  EXPECT_EQ(ForeignFileHint("m", "something else"), "");
}

}  // namespace
}  // namespace interp
