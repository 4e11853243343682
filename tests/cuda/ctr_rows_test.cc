// Rows of cvm and data_norm, and of their gradients.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

template <typename T>
class CtrRows : public RowTest {
 protected:
  // Above 0, as counts and sums of squares are.
  static Tensor Counts(const std::vector<int64_t>& dims, uint32_t seed) {
    Tensor tensor = SomeTensor<T>(dims, seed);
    T* const values = tensor.mutable_data<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) values[i] = values[i] * values[i] + T(0.5);
    return tensor;
  }
};
using Scores = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CtrRows, Scores);

TYPED_TEST(CtrRows, CountsGoAsOnTheHost) {
  for (const bool use_cvm : {true, false}) {
    for (const int64_t width : {2, 3, 300}) {
      SCOPED_TRACE(width);
      const Tensor x = this->Counts({9, width}, 1);
      const Tensor counts = this->Counts({9, 2}, 2);
      const std::vector<Attr> attrs = {{"use_cvm", use_cvm}};
      this->ExpectSameAsHost({"cvm", attrs, {{"X", x}, {"CVM", counts}}});
      std::vector<RowCase::Input> inputs = {
          {"Y@GRAD", SomeTensor<TypeParam>({9, use_cvm ? width : width - 2}, 3)},
          {"X", x},
          {"CVM", counts}};
      this->ExpectSameAsHost({"cvm_grad", attrs, inputs});
      inputs[1].tensor.lod = {{0, 2, 2, 3, 8, 9}};  // a row of counts for each
      this->ExpectSameAsHost({"cvm_grad", attrs, inputs});
    }
  }
}

// Fewer and more columns than tiles have, and slots that show nothing.
TYPED_TEST(CtrRows, DataIsNormedAsOnTheHost) {
  for (const int64_t width : {6, 300}) {
    for (const bool shifts : {false, true}) {
      for (const int64_t slot_dim : {-1, 3}) {
        SCOPED_TRACE(absl::StrCat(width, " columns, slots of ", slot_dim, ", shifts ", shifts));
        Tensor x = SomeTensor<TypeParam>({21, width}, 1);
        for (int i = 0; i < 9; ++i) x.mutable_data<TypeParam>()[i * width + 3] = 0;
        const std::vector<Attr> attrs = {{"slot_dim", static_cast<int32_t>(slot_dim)},
                                         {"enable_scale_and_shift", shifts}};
        std::vector<RowCase::Input> inputs = {{"X", x},
                                              {"BatchSize", this->Counts({width}, 2)},
                                              {"BatchSum", SomeTensor<TypeParam>({width}, 3)},
                                              {"BatchSquareSum", this->Counts({width}, 4)}};
        const std::vector<RowCase::Input> shift = {{"scale_w", SomeTensor<TypeParam>({width}, 5)},
                                                   {"bias", SomeTensor<TypeParam>({width}, 6)}};
        if (shifts) inputs.insert(inputs.end(), shift.begin(), shift.end());
        this->ExpectSameAsHost({"data_norm", attrs, inputs});
        inputs = {{"X", x},
                  {"Scales", this->Counts({width}, 7)},
                  {"Means", SomeTensor<TypeParam>({width}, 8)},
                  {"Y@GRAD", SomeTensor<TypeParam>({21, width}, 9)}};
        if (shifts) inputs.insert(inputs.end(), shift.begin(), shift.end());
        this->ExpectSameAsHost({.type = "data_norm_grad",
                                .attrs = attrs,
                                .inputs = inputs,
                                .absent = {"BatchSize", "BatchSum", "BatchSquareSum"}});
      }
    }
  }
}

}  // namespace
}  // namespace interp::cuda_test
