// Rows of recurrences over the sequences of a LoD.
#include <algorithm>
#include <limits>

#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using RecurrentRows = RowTest;

// Gradients through many steps of large values are ill-conditioned.
template <typename T>
Tensor SmallValues(const std::vector<int64_t>& dims, uint32_t seed) {
  Tensor tensor = SomeTensor<T>(dims, seed);
  T* const values = tensor.mutable_data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) values[i] *= T{0.125};
  return tensor;
}

// Sequences of 3, 0, 5, 1 and 3 rows.
template <typename T>
Tensor Sequences(int64_t width, uint32_t seed) {
  Tensor tensor = SmallValues<T>({12, width}, seed);
  tensor.lod = {{0, 3, 3, 8, 9, 12}};
  return tensor;
}
constexpr int64_t kSequences = 5;
constexpr int64_t kSize = 6;

template <typename T>
std::vector<RowCase::Input> LstmInputs(bool peepholes, bool states) {
  std::vector<RowCase::Input> inputs = {{"Input", Sequences<T>(4 * kSize, 1)}};
  if (states) {
    inputs.push_back({"H0", SmallValues<T>({kSequences, kSize}, 2)});
    inputs.push_back({"C0", SmallValues<T>({kSequences, kSize}, 3)});
  }
  inputs.push_back({"Weight", SmallValues<T>({kSize, 4 * kSize}, 4)});
  inputs.push_back({"Bias", SmallValues<T>({1, (peepholes ? 7 : 4) * kSize}, 5)});
  return inputs;
}

template <typename T>
std::vector<RowCase::Input> LstmGradInputs(bool peepholes, bool states) {
  std::vector<RowCase::Input> inputs = LstmInputs<T>(peepholes, states);
  inputs.push_back({"Hidden", SmallValues<T>({12, kSize}, 6)});
  inputs.push_back({"Cell", SmallValues<T>({12, kSize}, 7)});
  inputs.push_back({"BatchGate", SmallValues<T>({12, 4 * kSize}, 8)});
  inputs.push_back({"BatchCellPreAct", SmallValues<T>({12, kSize}, 9)});
  inputs.push_back({"Hidden@GRAD", SmallValues<T>({12, kSize}, 10)});
  return inputs;
}

TEST_F(RecurrentRows, LstmGivesWhatTheHostGivesBothWays) {
  for (const bool peepholes : {false, true}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(absl::StrCat("peepholes ", peepholes, ", reverse ", reverse));
      const std::vector<Attr> attrs = {{"use_peepholes", peepholes}, {"is_reverse", reverse}};
      ExpectSameAsHost({"lstm", attrs, LstmInputs<float>(peepholes, /*states=*/reverse)});
      // Without first states there are no gradients of them.
      if (reverse) {
        ExpectSameAsHost({"lstm_grad", attrs, LstmGradInputs<float>(peepholes, /*states=*/true)});
      }
    }
  }
}

TEST_F(RecurrentRows, LstmHasEveryActivation) {
  for (const char* const name : {"identity", "sigmoid", "tanh", "relu"}) {
    SCOPED_TRACE(name);
    const std::vector<Attr> attrs = {
        {"gate_activation", name}, {"cell_activation", name}, {"candidate_activation", name}};
    ExpectSameAsHost({"lstm", attrs, LstmInputs<double>(/*peepholes=*/true, /*states=*/true)});
    ExpectSameAsHost(
        {"lstm_grad", attrs, LstmGradInputs<double>(/*peepholes=*/true, /*states=*/true)});
  }
}

TEST_F(RecurrentRows, LstmKeepsNothingInTests) {
  ExpectSameAsHost(
      {"lstm", {{"is_test", true}}, LstmInputs<float>(/*peepholes=*/true, /*states=*/false)});
}

TEST_F(RecurrentRows, LstmOfNoRowsGivesGradientsOfZero) {
  std::vector<RowCase::Input> inputs = LstmGradInputs<float>(/*peepholes=*/true, /*states=*/true);
  for (RowCase::Input& input : inputs) {
    if (input.tensor.shape[0] == 12) input.tensor = SomeTensor<float>({0, input.tensor.shape[1]});
  }
  inputs[0].tensor.lod = {{0, 0, 0, 0, 0, 0}};
  ExpectSameAsHost({"lstm_grad", {}, inputs});
}

constexpr int64_t kWidth = 4;  // of the projection

template <typename T>
std::vector<RowCase::Input> LstmpInputs(bool peepholes, bool states) {
  std::vector<RowCase::Input> inputs = LstmInputs<T>(peepholes, states);
  for (RowCase::Input& input : inputs) {
    if (input.slot == "H0") input.tensor = SmallValues<T>({kSequences, kWidth}, 2);
    if (input.slot == "Weight") input.tensor = SmallValues<T>({kWidth, 4 * kSize}, 4);
  }
  inputs.push_back({"ProjWeight", SmallValues<T>({kSize, kWidth}, 11)});
  return inputs;
}

template <typename T>
std::vector<RowCase::Input> LstmpGradInputs(bool peepholes) {
  std::vector<RowCase::Input> inputs = LstmpInputs<T>(peepholes, /*states=*/true);
  inputs.push_back({"Projection", SmallValues<T>({12, kWidth}, 6)});
  inputs.push_back({"Cell", SmallValues<T>({12, kSize}, 7)});
  inputs.push_back({"BatchGate", SmallValues<T>({12, 4 * kSize}, 8)});
  inputs.push_back({"BatchCellPreAct", SmallValues<T>({12, kSize}, 9)});
  inputs.push_back({"BatchHidden", SmallValues<T>({12, kSize}, 12)});
  inputs.push_back({"Projection@GRAD", SmallValues<T>({12, kWidth}, 10)});
  return inputs;
}

TEST_F(RecurrentRows, ProjectedLstmGivesWhatTheHostGivesBothWays) {
  for (const bool peepholes : {false, true}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(absl::StrCat("peepholes ", peepholes, ", reverse ", reverse));
      const std::vector<Attr> attrs = {{"use_peepholes", peepholes}, {"is_reverse", reverse}};
      ExpectSameAsHost({"lstmp", attrs, LstmpInputs<float>(peepholes, /*states=*/false)});
      ExpectSameAsHost({.type = "lstmp",
                        .attrs = attrs,
                        .inputs = LstmpInputs<float>(peepholes, /*states=*/true),
                        .absent = {"OrderedP0"}});
      ExpectSameAsHost({"lstmp_grad", attrs, LstmpGradInputs<float>(peepholes)});
    }
  }
}

TEST_F(RecurrentRows, ProjectedLstmClipsCellsAndProjections) {
  for (const char* const name : {"identity", "sigmoid", "tanh", "relu"}) {
    SCOPED_TRACE(name);
    const std::vector<Attr> attrs = {{"cell_activation", name},
                                     {"proj_activation", name},
                                     {"cell_clip", 0.125f},
                                     {"proj_clip", 0.0625f}};
    ExpectSameAsHost({"lstmp", attrs, LstmpInputs<double>(/*peepholes=*/true, /*states=*/false)});
    ExpectSameAsHost({"lstmp_grad", attrs, LstmpGradInputs<double>(/*peepholes=*/true)});
  }
}

TEST_F(RecurrentRows, ProjectedLstmKeepsNothingInTests) {
  ExpectSameAsHost(
      {"lstmp", {{"is_test", true}}, LstmpInputs<float>(/*peepholes=*/true, /*states=*/false)});
}

TEST_F(RecurrentRows, ProjectedLstmOfNoRowsGivesGradientsOfZero) {
  std::vector<RowCase::Input> inputs = LstmpGradInputs<float>(/*peepholes=*/true);
  for (RowCase::Input& input : inputs) {
    if (input.tensor.shape[0] == 12) input.tensor = SomeTensor<float>({0, input.tensor.shape[1]});
  }
  inputs[0].tensor.lod = {{0, 0, 0, 0, 0, 0}};
  ExpectSameAsHost({"lstmp_grad", {}, inputs});
}

template <typename T>
std::vector<RowCase::Input> GruInputs(bool bias, bool state) {
  std::vector<RowCase::Input> inputs = {{"Input", Sequences<T>(3 * kSize, 1)}};
  if (state) inputs.push_back({"H0", SmallValues<T>({kSequences, kSize}, 2)});
  inputs.push_back({"Weight", SmallValues<T>({kSize, 3 * kSize}, 3)});
  if (bias) inputs.push_back({"Bias", SmallValues<T>({1, 3 * kSize}, 4)});
  return inputs;
}

template <typename T>
std::vector<RowCase::Input> GruGradInputs() {
  std::vector<RowCase::Input> inputs = GruInputs<T>(/*bias=*/true, /*state=*/true);
  inputs.push_back({"BatchGate", SmallValues<T>({12, 3 * kSize}, 5)});
  inputs.push_back({"BatchResetHiddenPrev", SmallValues<T>({12, kSize}, 6)});
  inputs.push_back({"Hidden", SmallValues<T>({12, kSize}, 7)});
  inputs.push_back({"Hidden@GRAD", SmallValues<T>({12, kSize}, 8)});
  return inputs;
}

// `inputs` without `states`, and with an infinite gradient of the first row, which is the first
// step of its sequence.
std::vector<RowCase::Input> WithInfiniteGradient(std::vector<RowCase::Input> inputs,
                                                 const std::vector<std::string>& states) {
  std::erase_if(inputs, [&](const RowCase::Input& input) {
    return std::find(states.begin(), states.end(), input.slot) != states.end();
  });
  inputs.back().tensor.mutable_data<double>()[1] = std::numeric_limits<double>::infinity();
  return inputs;
}

TEST_F(RecurrentRows, WhereNoStateIsBeforeAStepInfiniteGradientsGetNothingFromIt) {
  const std::vector<Attr> peepholes = {{"use_peepholes", true}};
  ExpectSameAsHost({.type = "lstm_grad",
                    .attrs = peepholes,
                    .inputs = WithInfiniteGradient(
                        LstmGradInputs<double>(/*peepholes=*/true, /*states=*/true), {"H0", "C0"}),
                    .absent = {"H0@GRAD", "C0@GRAD"}});
  ExpectSameAsHost(
      {.type = "lstmp_grad",
       .attrs = peepholes,
       .inputs = WithInfiniteGradient(LstmpGradInputs<double>(/*peepholes=*/true), {"H0", "C0"}),
       .absent = {"H0@GRAD", "C0@GRAD"}});
  ExpectSameAsHost({.type = "gru_grad",
                    .attrs = {},
                    .inputs = WithInfiniteGradient(GruGradInputs<double>(), {"H0"}),
                    .absent = {"H0@GRAD"}});
}

TEST_F(RecurrentRows, GruGivesWhatTheHostGivesBothWays) {
  for (const bool origin : {false, true}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(absl::StrCat("origin mode ", origin, ", reverse ", reverse));
      const std::vector<Attr> attrs = {{"origin_mode", origin}, {"is_reverse", reverse}};
      ExpectSameAsHost({"gru", attrs, GruInputs<float>(/*bias=*/origin, /*state=*/reverse)});
      ExpectSameAsHost({"gru_grad", attrs, GruGradInputs<float>()});
    }
  }
}

TEST_F(RecurrentRows, GruHasEveryActivation) {
  for (const char* const name : {"identity", "sigmoid", "tanh", "relu"}) {
    SCOPED_TRACE(name);
    const std::vector<Attr> attrs = {{"gate_activation", name}, {"activation", name}};
    ExpectSameAsHost({"gru", attrs, GruInputs<double>(/*bias=*/true, /*state=*/true)});
    ExpectSameAsHost({"gru_grad", attrs, GruGradInputs<double>()});
  }
}

template <typename T>
std::vector<RowCase::Input> GruUnitInputs(int64_t batch, bool bias) {
  std::vector<RowCase::Input> inputs = {{"Input", SmallValues<T>({batch, 3 * kSize}, 1)},
                                        {"HiddenPrev", SmallValues<T>({batch, kSize}, 2)},
                                        {"Weight", SmallValues<T>({kSize, 3 * kSize}, 3)}};
  if (bias) inputs.push_back({"Bias", SmallValues<T>({1, 3 * kSize}, 4)});
  return inputs;
}

template <typename T>
std::vector<RowCase::Input> GruUnitGradInputs(int64_t batch) {
  std::vector<RowCase::Input> inputs = GruUnitInputs<T>(batch, /*bias=*/true);
  inputs.push_back({"Gate", SmallValues<T>({batch, 3 * kSize}, 5)});
  inputs.push_back({"ResetHiddenPrev", SmallValues<T>({batch, kSize}, 6)});
  inputs.push_back({"Hidden@GRAD", SmallValues<T>({batch, kSize}, 7)});
  return inputs;
}

TEST_F(RecurrentRows, StepsOfGruGiveWhatTheHostGivesBothWays) {
  for (const bool origin : {false, true}) {
    SCOPED_TRACE(absl::StrCat("origin mode ", origin));
    const std::vector<Attr> attrs = {{"origin_mode", origin}};
    ExpectSameAsHost({"gru_unit", attrs, GruUnitInputs<float>(/*batch=*/130, /*bias=*/origin)});
    ExpectSameAsHost({"gru_unit_grad", attrs, GruUnitGradInputs<float>(/*batch=*/130)});
  }
}

TEST_F(RecurrentRows, StepsOfGruHaveEveryActivation) {
  for (const int32_t number : {0, 1, 2, 3}) {
    SCOPED_TRACE(number);
    const std::vector<Attr> attrs = {{"gate_activation", number}, {"activation", number}};
    ExpectSameAsHost({"gru_unit", attrs, GruUnitInputs<double>(/*batch=*/5, /*bias=*/true)});
    ExpectSameAsHost({"gru_unit_grad", attrs, GruUnitGradInputs<double>(/*batch=*/5)});
  }
}

TEST_F(RecurrentRows, StepsOfGruWithoutStatesGiveGradientsOfZero) {
  ExpectSameAsHost({"gru_unit", {}, GruUnitInputs<float>(/*batch=*/0, /*bias=*/true)});
  ExpectSameAsHost({"gru_unit_grad", {}, GruUnitGradInputs<float>(/*batch=*/0)});
}

TEST_F(RecurrentRows, GruKeepsNothingInTests) {
  ExpectSameAsHost({"gru", {{"is_test", true}}, GruInputs<float>(/*bias=*/true, /*state=*/false)});
}

}  // namespace
}  // namespace interp::cuda_test
