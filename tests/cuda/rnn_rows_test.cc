// Rows of rnn and rnn_grad: dense recurrent layers.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using RnnRows = RowTest;

struct RnnCase {
  std::string mode;
  int64_t layers = 1;
  bool both_ways = false;
  bool lengths = false;
  DType lengths_dtype = DType::kInt32;
};

constexpr int64_t kTime = 4;
constexpr int64_t kRnnBatch = 3;
constexpr int64_t kFeatures = 5;
constexpr int64_t kHidden = 6;

int64_t GatesOf(const RnnCase& c) {
  return (c.mode == "LSTM" ? 4 : c.mode == "GRU" ? 3 : 1) * kHidden;
}
int64_t DirectionsOf(const RnnCase& c) { return c.both_ways ? 2 : 1; }

std::vector<Attr> RnnAttrs(const RnnCase& c, bool test) {
  return {{"mode", c.mode},
          {"hidden_size", static_cast<int32_t>(kHidden)},
          {"num_layers", static_cast<int32_t>(c.layers)},
          {"is_bidirec", c.both_ways},
          {"is_test", test}};
}

std::vector<int64_t> StateDims(const RnnCase& c) {
  return {c.layers * DirectionsOf(c), kRnnBatch, kHidden};
}

// Gradients through many steps of large values are ill-conditioned.
template <typename T>
Tensor SmallTensor(const std::vector<int64_t>& dims, uint32_t seed = 1) {
  Tensor tensor = SomeTensor<T>(dims, seed);
  T* const values = tensor.mutable_data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) values[i] *= T{0.125};
  return tensor;
}

template <typename T>
std::vector<RowCase::Input> InputsOf(const RnnCase& c) {
  std::vector<RowCase::Input> inputs = {{"Input", SmallTensor<T>({kTime, kRnnBatch, kFeatures})}};
  const uint32_t states = c.mode == "LSTM" ? 2 : 1;
  for (uint32_t i = 0; i < states; ++i) {
    inputs.push_back({"PreState", SmallTensor<T>(StateDims(c), 2 + i)});
  }
  const auto pairs = static_cast<uint32_t>(2 * c.layers * DirectionsOf(c));
  for (uint32_t i = 0; i < pairs; ++i) {
    const bool first_layer = i < 2 * DirectionsOf(c);
    const int64_t features = first_layer ? kFeatures : DirectionsOf(c) * kHidden;
    const int64_t columns = i % 2 == 0 ? features : kHidden;
    inputs.push_back({"WeightList", SmallTensor<T>({GatesOf(c), columns}, 10 + i)});
  }
  for (uint32_t i = 0; i < pairs; ++i) {
    inputs.push_back({"WeightList", SmallTensor<T>({GatesOf(c)}, 30 + i)});
  }
  if (!c.lengths) return inputs;
  const Shape batch({kRnnBatch});
  inputs.push_back({"SequenceLength", c.lengths_dtype == DType::kInt32
                                          ? Tensor::Of<int32_t>(batch, {4, 1, 3})
                                          : Tensor::Of<int64_t>(batch, {2, 0, 4})});
  return inputs;
}

template <typename T>
RowCase GradientOf(const RnnCase& c) {
  RowCase grad = {"rnn_grad", RnnAttrs(c, /*test=*/false), InputsOf<T>(c)};
  const std::vector<int64_t> out = {kTime, kRnnBatch, DirectionsOf(c) * kHidden};
  const int64_t kept = c.mode == "LSTM" || c.mode == "GRU" ? kHidden : 0;
  const int64_t rows = kTime * kRnnBatch;
  const int64_t reserve = c.layers * DirectionsOf(c) * rows * (GatesOf(c) + kept) +
                          (c.layers - 1) * rows * DirectionsOf(c) * kHidden;
  grad.inputs.push_back({"Out", SmallTensor<T>(out, 50)});
  grad.inputs.push_back({"Reserve", SmallTensor<T>({reserve}, 51)});
  grad.inputs.push_back({"Out@GRAD", SmallTensor<T>(out, 52)});
  const int states = c.mode == "LSTM" ? 2 : 1;
  for (int i = 0; i < states; ++i) {
    grad.inputs.push_back({"State@GRAD", SmallTensor<T>(StateDims(c), 53)});
  }
  const auto weights = static_cast<int>(4 * c.layers * DirectionsOf(c));
  grad.output_counts = {states, weights};
  return grad;
}

template <typename T>
RowCase ForwardOf(const RnnCase& c, bool test) {
  return {"rnn", RnnAttrs(c, test), InputsOf<T>(c), {c.mode == "LSTM" ? 2 : 1}};
}

TEST_F(RnnRows, EveryModeGivesWhatTheHostGivesBothWays) {
  for (const char* const mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}) {
    for (const bool both_ways : {false, true}) {
      SCOPED_TRACE(absl::StrCat(mode, both_ways ? ", both ways" : ""));
      const RnnCase c = {mode, /*layers=*/2, both_ways};
      ExpectSameAsHost(ForwardOf<float>(c, /*test=*/false));
      ExpectSameAsHost(ForwardOf<float>(c, /*test=*/true));
      ExpectSameAsHost(GradientOf<float>(c));
    }
  }
}

TEST_F(RnnRows, SequencesOfABatchEndWhereTheirLengthsSay) {
  for (const char* const mode : {"LSTM", "GRU", "RNN_TANH"}) {
    for (const DType dtype : {DType::kInt32, DType::kInt64}) {
      SCOPED_TRACE(absl::StrCat(mode, ", ", Name(dtype)));
      const RnnCase c = {mode, /*layers=*/1, /*both_ways=*/true, /*lengths=*/true, dtype};
      ExpectSameAsHost(ForwardOf<float>(c, /*test=*/false));
      ExpectSameAsHost(GradientOf<float>(c));
    }
  }
}

TEST_F(RnnRows, StepsOfAnEmptyBatchAreNotTaken) {
  const RowCase c = {"rnn",
                     {{"mode", std::string("RNN_TANH")}, {"hidden_size", 1}, {"num_layers", 1}},
                     {{"Input", Tensor::Of<float>({int64_t{1} << 40, 0, 1}, {})},
                      {"PreState", Tensor::Of<float>({1, 0, 1}, {})},
                      {"WeightList", Tensor::Of<float>({1, 1}, {1})},
                      {"WeightList", Tensor::Of<float>({1, 1}, {1})},
                      {"WeightList", Tensor::Of<float>({1}, {0})},
                      {"WeightList", Tensor::Of<float>({1}, {0})}},
                     {1}};
  ExpectSameAsHost(c);
}

TEST_F(RnnRows, DoublesHaveRows) {
  const RnnCase c = {"LSTM", /*layers=*/3};
  ExpectSameAsHost(ForwardOf<double>(c, /*test=*/true));
  ExpectSameAsHost(ForwardOf<double>(c, /*test=*/false));
  ExpectSameAsHost(GradientOf<double>(c));
}

TEST_F(RnnRows, DropoutBetweenLayersIsLeftToTheHost) {
  RowCase c = ForwardOf<float>({"LSTM", /*layers=*/2}, /*test=*/false);
  EXPECT_TRUE(HasRow(c));
  c.attrs.push_back({"dropout_prob", 0.5f});
  EXPECT_FALSE(HasRow(c));
}

}  // namespace
}  // namespace interp::cuda_test
