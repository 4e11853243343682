#include "kernels/cuda/binary_grad.h"

#include <string>
#include <vector>

#include "tests/cuda/row_run.h"

namespace interp::cuda_test {
namespace {

struct Operands {
  std::vector<int64_t> x;
  std::vector<int64_t> y;
  std::vector<int64_t> out;
  int32_t axis = -1;
};

const std::vector<std::string>& Types() {
  static const std::vector<std::string> kAll = {
      "elementwise_add_grad",  "elementwise_sub_grad",  "elementwise_mul_grad",
      "elementwise_div_grad",  "elementwise_max_grad",  "elementwise_min_grad",
      "elementwise_fmax_grad", "elementwise_fmin_grad", "elementwise_pow_grad",
  };
  return kAll;
}

// x and y are positive, for powers and quotients.
void ExpectTheHostsGradients(const std::string& type, DType dtype, const Operands& dims) {
  SCOPED_TRACE(absl::StrCat(type, " ", Name(dtype), " of ", ToString(Shape(dims.x)), " and ",
                            ToString(Shape(dims.y))));
  ExpectRowGivesTheSameAnyhow(type, {{"axis", dims.axis}},
                              {{"X", NumbersFrom(0.5f, dtype, dims.x)},
                               {"Y", NumbersFrom(0.5f, dtype, dims.y, 2)},
                               {"Out@GRAD", SomeNumbers(dtype, dims.out, 3)}},
                              dtype == DType::kFloat32 ? 2e-5 : 2e-2);
}

using CudaBinaryGradient = KernelTest;

TEST_F(CudaBinaryGradient, OfEqualShapesIsThatOfTheHost) {
  for (const std::string& type : Types()) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      ExpectTheHostsGradients(type, dtype, {{3, 5, 7}, {3, 5, 7}, {3, 5, 7}});
    }
  }
}

TEST_F(CudaBinaryGradient, SumsOverWhatIsRepeated) {
  const std::vector<Operands> shapes = {
      {{6, 33}, {33}, {6, 33}},                          // a bias
      {{2, 3, 4, 5}, {3}, {2, 3, 4, 5}, 1},              // of channels
      {{2, 3, 4, 5}, {2, 3, 1, 1}, {2, 3, 4, 5}},        //
      {{4, 1, 5}, {3, 1}, {4, 3, 5}},                    // both
      {{1}, {70, 40}, {70, 40}},                         // everything
      {{2, 1, 3, 1, 2}, {2, 3, 2, 1}, {2, 2, 3, 2, 2}},  //
      {{300}, {7, 300}, {7, 300}},                       // more tiles than blocks
      {{5, 2000}, {5, 1}, {5, 2000}},                    // more than a warp's row
      {{2, 1}, {2, 17000}, {2, 17000}},                  // rows in parts
      {{3, 2100, 3}, {3}, {3, 2100, 3}},                 // columns in parts
  };
  for (const std::string& type : Types()) {
    for (const Operands& dims : shapes) ExpectTheHostsGradients(type, DType::kFloat32, dims);
  }
}

TEST_F(CudaBinaryGradient, AddsUpInDouble) {
  std::vector<float> values(3000);
  values[0] = 1e8f;
  values[1024] = 1;
  values[2048] = -1e8f;
  using Dims = std::vector<int64_t>;
  for (const auto& [bias, out] : {std::pair(Dims{1}, Dims{3000, 1}), {Dims{2}, Dims{1500, 2}}}) {
    SCOPED_TRACE(ToString(Shape(out)));
    ExpectRowGivesTheSame("elementwise_add_grad", {},
                          {{"X", SomeNumbers(DType::kFloat32, out)},
                           {"Y", SomeNumbers(DType::kFloat32, bias)},
                           {"Out@GRAD", Numbers(DType::kFloat32, out, values)}});
  }
}

TEST_F(CudaBinaryGradient, OfNoElementsIsZero) {
  ExpectTheHostsGradients("elementwise_add_grad", DType::kFloat32, {{0, 3}, {3}, {0, 3}});
  ExpectTheHostsGradients("elementwise_mul_grad", DType::kFloat32, {{0, 3}, {0, 3}, {0, 3}});
}

TEST_F(CudaBinaryGradient, NeedsNoOperandsOfSums) {
  ExpectRowGivesTheSame("elementwise_add_grad", {},
                        {{"Out@GRAD", SomeNumbers(DType::kFloat32, {4, 5})}});
}

TEST_F(CudaBinaryGradient, RefusesOperandsThatDoNotFit) {
  const std::vector<int64_t> out = {4, 5};
  const std::vector<int64_t> self = {4, 2};
  EXPECT_EQ(cuda::BinaryGradient(
                DType::kFloat32, {.self_dims = self, .other_dims = out, .out_dims = out},
                [](size_t) { return absl::InternalError("no memory"); }, nullptr)
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace interp::cuda_test
