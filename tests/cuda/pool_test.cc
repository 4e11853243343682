#include "kernels/cuda/pool.h"

#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

using Ints = std::vector<int32_t>;

struct PoolCase {
  std::vector<int64_t> x;
  Ints ksize;
  Ints strides = {1, 1};
  Ints paddings = {0, 0};
  std::vector<Attr> others = {};
};

const std::vector<PoolCase>& PoolCases() {
  static const std::vector<PoolCase> kAll = {
      {{2, 3, 6, 8}, {2, 2}, {2, 2}},
      {{2, 3, 7, 9}, {3, 3}, {2, 2}, {1, 1}},
      {{1, 2, 7, 9}, {3, 2}, {1, 2}, {1, 0}, {{"exclusive", false}}},
      {{2, 2, 7, 8}, {3, 3}, {2, 2}, {1, 1}, {{"ceil_mode", true}}},
      {{2, 2, 7, 8}, {3, 3}, {2, 2}, {1, 1}, {{"ceil_mode", true}, {"exclusive", false}}},
      {{2, 3, 5, 7}, {1, 1}, {1, 1}, {0, 0}, {{"global_pooling", true}}},
      {{2, 3, 7, 5}, {3, 2}, {1, 1}, {0, 0}, {{"adaptive", true}}},
      {{2, 3, 5, 7}, {1, 1}, {1, 1}, {0, 0}, {{"adaptive", true}}},
      {{2, 6, 5, 3}, {2, 2}, {2, 1}, {0, 0}, {{"data_format", "NHWC"}}},
      {{1, 1, 9, 9}, {5, 5}, {1, 1}, {2, 2}},
      {{0, 3, 6, 8}, {2, 2}, {2, 2}},
  };
  return kAll;
}

std::vector<Attr> PoolAttrs(const PoolCase& one, const std::string& kind) {
  std::vector<Attr> attrs = one.others;
  attrs.push_back({"pooling_type", kind});
  attrs.push_back({"ksize", one.ksize});
  attrs.push_back({"strides", one.strides});
  attrs.push_back({"paddings", one.paddings});
  return attrs;
}

// Few different values: maxima that several elements have.
Tensor Steps(DType dtype, const std::vector<int64_t>& dims) {
  std::vector<float> values = SomeValues<float>(static_cast<size_t>(NumelOf(dims)));
  for (float& value : values) value = std::floor(value * 2);
  return Numbers(dtype, dims, values);
}

void ExpectTheHostsPooling(const std::string& type, const PoolCase& one, const std::string& kind,
                           const Tensor& x) {
  SCOPED_TRACE(absl::StrCat(type, " ", kind, " of ", ToString(x.shape), " ", Name(x.dtype)));
  const std::vector<Attr> attrs = PoolAttrs(one, kind);
  ExpectRowGivesTheSameAnyhow(type, attrs, {{"X", x}});
  testing::OneOp forward(type, attrs, {{"X", x}});
  ASSERT_TRUE(forward.Run().ok());
  const Tensor& out = forward.output(0);
  const std::vector<int64_t> dims(out.shape.begin(), out.shape.end());
  ExpectRowGivesTheSameAnyhow(
      type + "_grad", attrs, {{"X", x}, {"Out", out}, {"Out@GRAD", SomeNumbers(x.dtype, dims, 2)}});
}

using CudaPool = KernelTest;

TEST_F(CudaPool, AndItsGradientAreThoseOfTheHost) {
  for (const PoolCase& one : PoolCases()) {
    for (const std::string kind : {"max", "avg"}) {
      ExpectTheHostsPooling("pool2d", one, kind, SomeNumbers(DType::kFloat32, one.x));
    }
  }
}

TEST_F(CudaPool, OfBFloat16IsThatOfTheHost) {
  for (size_t i = 0; i < 3; ++i) {
    for (const std::string kind : {"max", "avg"}) {
      ExpectTheHostsPooling("pool2d", PoolCases()[i], kind,
                            SomeNumbers(DType::kBFloat16, PoolCases()[i].x));
    }
  }
}

TEST_F(CudaPool, GivesTheGradientToTheFirstOfEqualMaxima) {
  for (const PoolCase& one : PoolCases()) {
    ExpectTheHostsPooling("pool2d", one, "max", Steps(DType::kFloat32, one.x));
  }
}

TEST_F(CudaPool, TakesVolumes) {
  const PoolCase volume = {{2, 2, 4, 5, 6}, {2, 3, 2}, {2, 1, 2}, {0, 1, 1}};
  for (const std::string kind : {"max", "avg"}) {
    ExpectTheHostsPooling("pool3d", volume, kind, SomeNumbers(DType::kFloat32, volume.x));
  }
}

TEST_F(CudaPool, TakesTheSizeOfItsKernelFromATensor) {
  const PoolCase one = {{2, 3, 6, 8}, {1, 1}};
  ExpectRowGivesTheSame("pool2d", PoolAttrs(one, "avg"),
                        {{"X", SomeNumbers(DType::kFloat32, one.x)},
                         {"KernelSizeTensor", Numbers(DType::kInt32, {2}, {2, 3})}});
}

}  // namespace
}  // namespace interp::cuda_test
