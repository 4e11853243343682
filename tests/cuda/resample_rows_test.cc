// Rows of interpolation.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using ResampleRows = RowTest;

struct Sizes {
  std::vector<int64_t> in;
  int32_t height;
  int32_t width;
};
const Sizes kSizes[] = {
    {{2, 3, 5, 7}, 10, 14}, {{1, 2, 9, 8}, 4, 3}, {{1, 2, 4, 6}, 1, 17},
    {{1, 1, 1, 1}, 3, 5},   {{2, 1, 5, 5}, 5, 5},
};

std::vector<Attr> ResampleAttrs(const Sizes& sizes, bool align_corners, int32_t align_mode) {
  return {{"out_h", sizes.height},
          {"out_w", sizes.width},
          {"align_corners", align_corners},
          {"align_mode", align_mode}};
}

TEST_F(ResampleRows, ImagesOfAnySizeGiveWhatTheHostGives) {
  for (const Sizes& sizes : kSizes) {
    for (const bool align_corners : {false, true}) {
      for (const int32_t align_mode : {0, 1}) {
        const std::vector<Attr> attrs = ResampleAttrs(sizes, align_corners, align_mode);
        for (const char* type : {"nearest_interp_v2", "bilinear_interp_v2"}) {
          ExpectSameAsHost({type, attrs, {{"X", SomeTensor<float>(sizes.in)}}});
        }
        ExpectSameAsHost({"bilinear_interp", attrs, {{"X", SomeTensor<double>(sizes.in)}}});
      }
    }
  }
}

TEST_F(ResampleRows, GradientsOfAnySizeGiveWhatTheHostGives) {
  for (const Sizes& sizes : kSizes) {
    const std::vector<int64_t> out = {sizes.in[0], sizes.in[1], sizes.height, sizes.width};
    for (const bool align_corners : {false, true}) {
      for (const int32_t align_mode : {0, 1}) {
        const std::vector<Attr> attrs = ResampleAttrs(sizes, align_corners, align_mode);
        for (const char* type : {"nearest_interp_v2_grad", "bilinear_interp_v2_grad"}) {
          ExpectSameAsHost(
              {type,
               attrs,
               {{"X", SomeTensor<float>(sizes.in)}, {"Out@GRAD", SomeTensor<float>(out, 2)}}});
        }
        ExpectSameAsHost(
            {"bilinear_interp_grad",
             attrs,
             {{"X", SomeTensor<double>(sizes.in)}, {"Out@GRAD", SomeTensor<double>(out, 2)}}});
      }
    }
  }
}

TEST_F(ResampleRows, ScalesSetSizesAndRatios) {
  const Tensor x = SomeTensor<float>({1, 2, 6, 7});
  const Tensor scale = Tensor::Of<float>(Shape({2}), {1.7f, 0.6f});
  for (const char* type : {"nearest_interp_v2", "bilinear_interp_v2"}) {
    ExpectSameAsHost({type,
                      {{"align_corners", false}, {"align_mode", int32_t{0}}},
                      {{"X", x}, {"Scale", scale}}});
  }
}

TEST_F(ResampleRows, OneAndThreeDimensionsAndChannelsLast) {
  ExpectSameAsHost({"linear_interp_v2",
                    {{"out_w", int32_t{11}}, {"align_corners", false}},
                    {{"X", SomeTensor<float16>({2, 3, 7})}}});
  const std::vector<Attr> size = {
      {"out_d", int32_t{5}}, {"out_h", int32_t{3}}, {"out_w", int32_t{9}}};
  for (const char* type : {"trilinear_interp_v2", "nearest_interp_v2"}) {
    ExpectSameAsHost({type, size, {{"X", SomeTensor<float>({1, 2, 3, 4, 5})}}});
  }
  for (const char* type : {"bilinear_interp_v2", "nearest_interp_v2"}) {
    ExpectSameAsHost({type,
                      {{"out_h", int32_t{7}}, {"out_w", int32_t{4}}, {"data_layout", "NHWC"}},
                      {{"X", SomeTensor<float>({2, 5, 6, 3})}}});
  }
}

TEST_F(ResampleRows, NearestElementsAreCopiedWhateverTheyAre) {
  const std::vector<Attr> size = {{"out_h", int32_t{7}}, {"out_w", int32_t{4}}};
  ExpectSameAsHost({"nearest_interp", size, {{"X", SomeTensor<uint8_t>({1, 2, 5, 6})}}});
  ExpectSameAsHost({"nearest_interp", size, {{"X", SomeTensor<int16_t>({1, 2, 5, 6})}}});
  ExpectSameAsHost({"nearest_interp", size, {{"X", SomeTensor<int64_t>({1, 2, 5, 6})}}});
}

}  // namespace
}  // namespace interp::cuda_test
