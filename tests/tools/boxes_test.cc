#include "tools/boxes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/image/decode.h"
#include "core/image/encode.h"
#include "core/io/npy.h"
#include "tests/testing/command.h"
#include "tests/testing/test_program.h"

namespace interp::boxes_test {
namespace {

using testing::CommandResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

constexpr size_t kMaxBytes = 1 << 24;

Picture<uint8_t> Paper(int width, int height) {
  Picture<uint8_t> picture{width, height};
  picture.pixels.assign(static_cast<size_t>(width) * height * picture.kChannels, 200);
  return picture;
}

// left, top, right and bottom of what is no longer paper, right and bottom excluded.
std::vector<int> InkedBounds(const Picture<uint8_t>& picture) {
  std::vector<int> bounds = {picture.width, picture.height, 0, 0};
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      if (picture.pixels[(static_cast<size_t>(y) * picture.width + x) * 3] == 200) continue;
      bounds = {std::min(bounds[0], x), std::min(bounds[1], y), std::max(bounds[2], x + 1),
                std::max(bounds[3], y + 1)};
    }
  }
  return bounds;
}

Picture<uint8_t> Read(const std::string& path) {
  const absl::StatusOr<Picture<uint8_t>> picture = ReadPicture(path, kMaxBytes);
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.value_or(Picture<uint8_t>());
}

// The middle 200 x 200 of a picture of 300 x 200 was fed as 100 x 100.
FedPicture Cropped(const std::string& feed) {
  return {feed,
          Paper(300, 200),
          {.left = 50, .top = 0, .width = 200, .height = 200, .fed_width = 100, .fed_height = 100}};
}

Program Detector() {
  return testing::TestProgram().Feed("x", {1, 3, -1, -1}).Call("relu", {"x"}, "found").Build();
}

std::string ErrorOf(const std::string& argument, const std::vector<FedPicture>& pictures) {
  return std::string(ReadBoxesRequest(Detector(), argument, pictures).status().message());
}

TEST(BoxesTest, CoordinatesAreWhatTheOptionSays) {
  const TemporaryFolder folder;
  const std::string file = folder / "boxes.png";
  const auto bounds = [&](const std::string& coordinates, const std::vector<float>& box) {
    const auto request =
        ReadBoxesRequest(Detector(), "found=" + file + coordinates, {Cropped("x")});
    EXPECT_TRUE(request.ok()) << request.status();
    // The tag is inside.
    std::vector<float> row = {0, 0.75F};
    row.insert(row.end(), box.begin(), box.end());
    const auto drawn = DrawBoxes(*request, {{"found", Tensor::Of<float>({1, 6}, row)}}, {});
    EXPECT_TRUE(drawn.ok()) << drawn.status();
    EXPECT_EQ(drawn->num_drawn, 1);
    return InkedBounds(Read(file));
  };
  EXPECT_THAT(bounds("", {60, 10, 260, 190}), ElementsAre(60, 10, 260, 190));
  EXPECT_THAT(bounds(",coordinates=picture", {60, 10, 260, 190}), ElementsAre(60, 10, 260, 190));
  EXPECT_THAT(bounds(",coordinates=fed", {5, 5, 100, 95}), ElementsAre(60, 10, 250, 190));
  EXPECT_THAT(bounds(",coordinates=relative", {0.05F, 0.05F, 1, 0.95F}),
              ElementsAre(60, 10, 250, 190));
}

TEST(BoxesTest, CountsWhatIsDrawn) {
  const TemporaryFolder folder;
  const auto request = ReadBoxesRequest(
      Detector(), "found=" + (folder / "b.png") + ",threshold=0.25", {Cropped("x")});
  ASSERT_TRUE(request.ok()) << request.status();
  const Tensor rows = Tensor::Of<float>({5, 6}, {0,  0.25F, 10,  10, 90,  90,  //
                                                 0,  0.24F, 10,  10, 90,  90,  //
                                                 0,  NAN,   10,  10, 90,  90,  //
                                                 1,  0.9F,  500, 10, 900, 90,  //
                                                 -1, 0.9F,  10,  10, 90,  90});
  const auto drawn = DrawBoxes(*request, {{"found", rows}}, {});
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_EQ(FormatBoxes(*drawn), (folder / "b.png") +
                                     ": 1 of 4 boxes of found, those with a score from 0.25 on; "
                                     "1 more lie outside of the picture");
}

TEST(BoxesTest, SuspectsCoordinatesThatLookRelative) {
  const TemporaryFolder folder;
  const auto problem = [&](const std::string& options, const std::vector<float>& row) {
    const auto request =
        ReadBoxesRequest(Detector(), "found=" + (folder / "b.png") + options, {Cropped("x")});
    return DrawBoxes(*request, {{"found", Tensor::Of<float>({1, 6}, row)}}, {})->problem;
  };
  EXPECT_THAT(problem("", {0, 1, 0.1F, 0.2F, 0.9F, 1.01F}), HasSubstr("coordinates=relative?"));
  EXPECT_EQ(problem(",coordinates=relative", {0, 1, 0.1F, 0.2F, 0.9F, 1}), "");
  EXPECT_EQ(problem("", {0, 1, 0.1F, 0.2F, 9, 9}), "");
  EXPECT_EQ(problem(",threshold=2", {0, 1, 0.1F, 0.2F, 0.9F, 1}), "");
}

TEST(BoxesTest, ErrorsSayWhatWasExpected) {
  const std::vector<FedPicture> one = {Cropped("x")};
  EXPECT_THAT(ErrorOf("found", one), HasSubstr("expected VARIABLE=FILE.png"));
  EXPECT_THAT(ErrorOf("fund=a.png", one), HasSubstr("no variable 'fund'; nearest: 'found'"));
  EXPECT_THAT(ErrorOf("found=a.jpg", one), HasSubstr("'a.jpg' does not end in .png"));
  EXPECT_THAT(ErrorOf("found=a.png,treshold=1", one), HasSubstr("nearest: 'threshold'"));
  EXPECT_THAT(ErrorOf("found=a.png,threshold=nan", one), HasSubstr("'nan' is no number"));
  EXPECT_THAT(ErrorOf("found=a.png,coordinates=pixels", one),
              HasSubstr("coordinates: expected one of picture, fed, relative, got 'pixels'"));
  EXPECT_THAT(ErrorOf("found=a.png", {}), HasSubstr("--feed NAME=image:FILE"));
  EXPECT_THAT(ErrorOf("found=a.png", {Cropped("x"), Cropped("y")}),
              HasSubstr("several pictures are fed, 'x', 'y'; choose one with feed=NAME"));
  EXPECT_THAT(ErrorOf("found=a.png,feed=z", one),
              HasSubstr("no picture is fed to 'z', but to 'x'"));
  EXPECT_EQ(ErrorOf("found=a.png,feed=y", {Cropped("x"), Cropped("y")}), "");
}

// A detector that is only its last op: boxes and scores are fed.
class BoxesCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "nms.txt")
        << "program version=0\nblock 0\n  var image float32[-1,3,-1,-1]\n"
           "  var boxes float32[-1,-1,4]\n  var scores float32[-1,-1,-1]\n"
           "  var found float32[-1,6] lod=1\n"
           "  multiclass_nms(BBoxes=boxes, Scores=scores) -> (Out=found) {score_threshold=0.01, "
           "nms_threshold=0.5, nms_top_k=-1, keep_top_k=-1, background_label=-1}\n";
    std::ofstream(folder_ / "labels.txt") << "cat\ndog\n";
    ASSERT_TRUE(WritePng(folder_ / "paper.png", Paper(320, 240)).ok());
    ASSERT_TRUE(WriteNpy(folder_ / "boxes.npy", Tensor::Of<float>({1, 2, 4}, {20, 40, 150, 200,  //
                                                                              180, 60, 300, 220}))
                    .ok());
    ASSERT_TRUE(
        WriteNpy(folder_ / "scores.npy", Tensor::Of<float>({1, 2, 2}, {0.9F, 0, 0, 0.6F})).ok());
    ASSERT_TRUE(WriteNpy(folder_ / "none.npy", Tensor::Of<float>({1, 2, 2}, {0, 0, 0, 0})).ok());
  }

  CommandResult Run(const std::string& scores, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run",    folder_ / "nms.txt",
                                          "--feed", "image=image:" + (folder_ / "paper.png"),
                                          "--feed", "boxes=" + (folder_ / "boxes.npy"),
                                          "--feed", "scores=" + (folder_ / scores)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return testing::RunInterp(arguments);
  }

  const TemporaryFolder folder_;
};

TEST_F(BoxesCommandTest, DrawsWhatWasFound) {
  const std::string png = folder_ / "found.png";
  const CommandResult result =
      Run("scores.npy", {"--boxes", "found=" + png, "--labels", folder_ / "labels.txt"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(png + ": 2 of 2 boxes of found, those with a score from 0.5"));
  EXPECT_THAT(InkedBounds(Read(png)), ElementsAre(20, 40 - 15, 300, 220));

  const CommandResult fewer = Run(
      "scores.npy", {"--boxes", "found=" + png + ",threshold=0.7", "--fetch", "found", "--json"});
  ASSERT_EQ(fewer.exit_code, 0) << fewer.err;
  EXPECT_THAT(fewer.out, HasSubstr("\"found\":2,\"drawn\":1,\"outside\":0"));
  EXPECT_THAT(InkedBounds(Read(png)), ElementsAre(20, 40 - 15, 150, 200));
}

TEST_F(BoxesCommandTest, WhereNothingWasFoundThePictureIsAsItWas) {
  const std::string png = folder_ / "found.png";
  const CommandResult result = Run("none.npy", {"--boxes", "found=" + png});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("0 of 0 boxes of found"));
  EXPECT_EQ(Read(png).pixels, Paper(320, 240).pixels);
}

TEST_F(BoxesCommandTest, WhatAreNoDetectionsIsSaidAndNothingWritten) {
  const std::string png = folder_ / "found.png";
  const CommandResult result = Run("scores.npy", {"--boxes", "scores=" + png});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--boxes: 'scores' is float32[1,2,2], expected floats [N,6]"));
  EXPECT_FALSE(std::filesystem::exists(png));
}

TEST_F(BoxesCommandTest, WhatCannotBeWrittenIsSaidBeforeTheRun) {
  const CommandResult result =
      Run("scores.npy", {"--boxes", "scores=" + (folder_ / "none/found.png")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--boxes: cannot create"));
  EXPECT_THAT(result.err, Not(HasSubstr("expected floats")));
}

}  // namespace
}  // namespace interp::boxes_test
