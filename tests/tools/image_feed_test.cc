#include "tools/image_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <fstream>

#include "core/io/file.h"
#include "tests/testing/command.h"
#include "tests/testing/matchers.h"

namespace interp {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::Values;

constexpr size_t kMaxBytes = 1 << 20;

void WritePng(const std::string& path, int width, int height, const std::vector<uint8_t>& rgb) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  ASSERT_EQ(png_image_write_to_file(&image, path.c_str(), 0, rgb.data(), 0, nullptr), 1);
}

void WriteJpeg(const std::string& path, int width, int height, const std::vector<uint8_t>& rgb) {
  unsigned char* file = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg-turbo's type
  const tjhandle encoder = tjInitCompress();
  ASSERT_EQ(tjCompress2(encoder, rgb.data(), width, 0, height, TJPF_RGB, &file, &size, TJSAMP_444,
                        100, 0),
            0);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(file), size);
  tjFree(file);
  tjDestroy(encoder);
}

// 2 x 2: red, green / blue, white.
const std::vector<uint8_t> kFour = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};

Var Declared(DType dtype, const std::vector<int64_t>& dims) {
  Var var;
  var.dtype = dtype;
  var.dims = dims;
  return var;
}

std::string ErrorOf(const FeedTarget& target, const std::string& description,
                    size_t max_bytes = kMaxBytes) {
  return std::string(ReadImageFeed(target, description, max_bytes).status().message());
}

TEST(ImageFeedTest, LiesAsTheProgramDeclares) {
  const TemporaryFolder folder;
  WritePng(folder / "four.png", 2, 2, kFour);
  const Var first = Declared(DType::kFloat32, {-1, 3, 2, 2});
  const auto planes = ReadImageFeed({"x", &first}, folder / "four.png", kMaxBytes);
  ASSERT_TRUE(planes.ok()) << planes.status();
  EXPECT_EQ(DescribeType(*planes), "float32[1,3,2,2]");
  EXPECT_EQ(Values<float>(*planes), (std::vector<float>{1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1}));

  const Var last = Declared(DType::kUInt8, {-1, -1, -1, 3});
  const auto pixels = ReadImageFeed({"x", &last}, folder / "four.png", kMaxBytes);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_EQ(DescribeType(*pixels), "uint8[1,2,2,3]");
  EXPECT_EQ(std::vector<uint8_t>(pixels->data<uint8_t>(), pixels->data<uint8_t>() + 12), kFour);

  const Var gray = Declared(DType::kFloat32, {-1, 1, 2, 2});
  const auto shades = ReadImageFeed({"x", &gray}, folder / "four.png", kMaxBytes);
  ASSERT_TRUE(shades.ok()) << shades.status();
  EXPECT_THAT(Values<float>(*shades),
              ::testing::Pointwise(::testing::FloatNear(1e-6), {0.299F, 0.587F, 0.114F, 1.F}));
}

TEST(ImageFeedTest, OptionsAreWhatPreparationsOfModelsSay) {
  const TemporaryFolder folder;
  WritePng(folder / "four.png", 2, 2, kFour);
  const auto feed = ReadImageFeed(
      {"x", nullptr},
      (folder / "four.png") + ",color=bgr,scale=2/255,mean=1/0.5/0,std=0.5,layout=nhwc", kMaxBytes);
  ASSERT_TRUE(feed.ok()) << feed.status();
  EXPECT_EQ(DescribeType(*feed), "float32[1,2,2,3]");
  EXPECT_THAT(Values<float>(*feed),
              ::testing::Pointwise(::testing::FloatNear(1e-6), {-2.F, -1.F, 4.F, -2.F, 3.F, 0.F,
                                                                2.F, -1.F, 0.F, 2.F, 3.F, 4.F}));
}

TEST(ImageFeedTest, CropTakesTheMiddle) {
  const TemporaryFolder folder;
  std::vector<uint8_t> rgb;
  for (int i = 0; i < 6; ++i) rgb.insert(rgb.end(), 3, static_cast<uint8_t>(i * 51));
  WritePng(folder / "wide.png", 6, 1, rgb);
  const auto feed = ReadImageFeed(
      {"x", nullptr}, (folder / "wide.png") + ",size=1x2,fit=crop,color=gray", kMaxBytes);
  ASSERT_TRUE(feed.ok()) << feed.status();
  EXPECT_EQ(DescribeType(*feed), "float32[1,1,1,2]");
  EXPECT_THAT(Values<float>(*feed), ::testing::Pointwise(::testing::FloatNear(1e-6), {0.4F, 0.6F}));
}

TEST(ImageFeedTest, ReadsJpegFiles) {
  const TemporaryFolder folder;
  WriteJpeg(folder / "grey.jpg", 16, 8, std::vector<uint8_t>(16 * 8 * 3, 102));
  const Var var = Declared(DType::kFloat32, {-1, 3, 4, 4});
  const auto feed = ReadImageFeed({"x", &var}, folder / "grey.jpg", kMaxBytes);
  ASSERT_TRUE(feed.ok()) << feed.status();
  EXPECT_EQ(DescribeType(*feed), "float32[1,3,4,4]");
  for (const float value : Values<float>(*feed)) EXPECT_NEAR(value, 0.4, 0.01);
}

TEST(ImageFeedTest, ErrorsSayWhatWasExpected) {
  const TemporaryFolder folder;
  const std::string four = folder / "four.png";
  WritePng(four, 2, 2, kFour);
  const FeedTarget any = {"x", nullptr};
  EXPECT_THAT(ErrorOf(any, four + ",sizes=2"),
              HasSubstr("no option is named 'sizes'; nearest: 'size'"));
  EXPECT_THAT(ErrorOf(any, four + ",size"), HasSubstr("expected OPTION=VALUE"));
  EXPECT_THAT(ErrorOf(any, four + ",size=0"), HasSubstr("size: expected size=224"));
  EXPECT_THAT(ErrorOf(any, four + ",size=99999999"), HasSubstr("each up to 32768"));
  EXPECT_THAT(ErrorOf(any, four + ",mean=1/2"), HasSubstr("expected one number or three"));
  EXPECT_THAT(ErrorOf(any, four + ",color=gray,std=1/2/3"),
              HasSubstr("expected one number for color=gray, got three"));
  EXPECT_THAT(ErrorOf(any, four + ",std=0"), HasSubstr("cannot be divided by"));
  EXPECT_THAT(ErrorOf(any, four + ",scale=1/0"), HasSubstr("'1/0' is no number"));
  EXPECT_THAT(ErrorOf(any, four + ",fit=pad"), HasSubstr("expected one of stretch, crop"));
  EXPECT_THAT(ErrorOf(any, folder / "none.png"), HasSubstr("none.png"));
  const Var integers = Declared(DType::kInt64, {-1, 3, 2, 2});
  EXPECT_THAT(ErrorOf({"x", &integers}, four), HasSubstr("no picture can be fed as int64"));
}

TEST(ImageFeedTest, DamagedAndHugePicturesAreErrors) {
  const TemporaryFolder folder;
  const FeedTarget any = {"x", nullptr};
  WritePng(folder / "four.png", 2, 2, kFour);
  WriteJpeg(folder / "four.jpg", 2, 2, kFour);
  for (const std::string name : {"four.png", "four.jpg"}) {
    const std::string file = *ReadFile(folder / name);
    for (const size_t size : {size_t{3}, size_t{20}, file.size() / 2}) {
      std::ofstream(folder / "cut", std::ios::binary).write(file.data(), size);
      EXPECT_NE(ErrorOf(any, folder / "cut"), "") << name << " cut to " << size;
    }
  }
  std::ofstream(folder / "text") << "no picture";
  EXPECT_THAT(ErrorOf(any, folder / "text"), HasSubstr("expected a JPEG or PNG file"));
  WritePng(folder / "large.png", 400, 400, std::vector<uint8_t>(400 * 400 * 3));
  EXPECT_THAT(ErrorOf(any, folder / "large.png", 100'000),
              HasSubstr("takes more than 100000 bytes"));
  EXPECT_THAT(ErrorOf(any, (folder / "four.png") + ",size=30000"), HasSubstr("resizing 2 x 2"));
}

}  // namespace
}  // namespace interp
