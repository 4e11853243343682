// Rows of ops that move data: views, copies, fills, and what picks rows by index.
#include "tests/cuda/row_test.h"

namespace interp::cuda_test {
namespace {

using Ints = std::vector<int32_t>;
using MoveRows = RowTest;

TEST_F(MoveRows, ViewsThatShareNoMemoryAreCopied) {
  const Tensor x = SomeTensor<float>({2, 1, 6});
  ExpectSameAsHost({"reshape2", {{"shape", Ints{0, -1}}}, {{"X", x}}});
  ExpectSameAsHost({"squeeze2", {{"axes", Ints{1}}}, {{"X", x}}});
  ExpectSameAsHost({"unsqueeze2", {{"axes", Ints{0}}}, {{"X", x}}});
  ExpectSameAsHost({"flatten_contiguous_range",
                    {{"start_axis", int32_t{0}}, {"stop_axis", int32_t{1}}},
                    {{"X", x}}});
  Tensor shape = SomeTensor<float>({0, 2, 6});
  ExpectSameAsHost(
      {"reshape2_grad", {}, {{"Out@GRAD", SomeTensor<float>({12})}, {"XShape", shape}}});
  ExpectSameAsHost({"assign", {}, {{"X", SomeTensor<int64_t>({5})}}});
}

TEST_F(MoveRows, LayoutsAreTransferredBothWays) {
  Tensor x = SomeTensor<float>({2, 3, 4, 5});
  ExpectSameAsHost({"transfer_layout", {{"dst_layout", int32_t{1}}}, {{"X", x}}});
  x.layout = Layout::kChannelsLast;
  ExpectSameAsHost({"transfer_layout", {{"dst_layout", int32_t{0}}}, {{"X", x}}});
}

TEST_F(MoveRows, FillsOfEveryElementSize) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kInt32,
                            DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    ExpectSameAsHost(
        {"fill_constant",
         {{"shape", Ints{3, 5}}, {"value", 1.0f}, {"dtype", static_cast<int32_t>(dtype)}},
         {}});
  }
  ExpectSameAsHost({"fill_constant",
                    {{"shape", Ints{7}}, {"dtype", static_cast<int32_t>(DType::kFloat32)}},
                    {{"ValueTensor", Tensor::Of<double>(Shape({1}), {2.5})}}});
  ExpectSameAsHost({"fill_any_like", {{"value", 3.0f}}, {{"X", SomeTensor<int64_t>({4})}}});
  ExpectSameAsHost({"fill_zeros_like", {}, {{"X", SomeTensor<float>({4})}}});
}

TEST_F(MoveRows, AssignedValuesThatAreAllAlikeAreFilled) {
  const auto assigned = [](const std::vector<float>& values) {
    return RowCase{"assign_value",
                   {{"shape", Ints{static_cast<int32_t>(values.size())}},
                    {"dtype", static_cast<int32_t>(DType::kFloat32)},
                    {"fp32_values", values}},
                   {}};
  };
  ExpectSameAsHost(assigned({2.5f}));
  ExpectSameAsHost(assigned({-1.5f, -1.5f, -1.5f}));
  EXPECT_FALSE(HasRow(assigned({1.0f, 2.0f})));
}

// A part of `x` set to `value`, which the attributes list where it is null.
RowCase PartSet(const Tensor& x, const Tensor* value, const std::vector<Attr>& attrs) {
  RowCase c = {"set_value",
               {{"axes", std::vector<int64_t>{0, 2}},
                {"starts", std::vector<int64_t>{3, 1}},
                {"ends", std::vector<int64_t>{0, 9}},
                {"steps", std::vector<int64_t>{-2, 2}},
                {"dtype", static_cast<int32_t>(x.dtype)}},
               {{"Input", x}}};
  c.attrs.insert(c.attrs.end(), attrs.begin(), attrs.end());
  if (value != nullptr) c.inputs.push_back({"ValueTensor", *value});
  return c;
}

TEST_F(MoveRows, PartsAreSetToTensorsAndToListedNumbers) {
  const Tensor x = SomeTensor<float>({4, 3, 7});
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{1}, {3}, {3, 1}, {2, 3, 3}}) {
    const Tensor value = SomeTensor<float>(dims, 2);
    ExpectSameAsHost(PartSet(x, &value, {}));
  }
  const auto listed = [&](const std::vector<float>& values) {
    return PartSet(x, nullptr,
                   {{"shape", std::vector<int64_t>{static_cast<int64_t>(values.size())}},
                    {"fp32_values", values}});
  };
  ExpectSameAsHost(listed({2.5f}));
  ExpectSameAsHost(listed({1.0f, 2.0f, 3.0f}));
  ExpectSameAsHost(PartSet(SomeTensor<int64_t>({4, 3, 7}), nullptr,
                           {{"shape", std::vector<int64_t>{1}},
                            {"int64_values", std::vector<int64_t>{int64_t{1} << 40}}}));
  ExpectSameAsHost(
      PartSet(SomeTensor<float>({0, 3, 7}), nullptr,
              {{"shape", std::vector<int64_t>{1}}, {"fp32_values", std::vector<float>{1}}}));
}

// Tiles of more elements than a launch copies.
TEST_F(MoveRows, LongTensorsAreTransposed) {
  ExpectSameAsHost({"transpose2", {{"axis", Ints{1, 0}}}, {{"X", SomeTensor<int8_t>({601, 703})}}});
}

TEST_F(MoveRows, PartsAreJoinedAndTakenApart) {
  const Tensor a = SomeTensor<float>({2, 3, 4});
  const Tensor b = SomeTensor<float>({2, 5, 4}, 2);
  ExpectSameAsHost({"concat", {{"axis", int32_t{1}}}, {{"X", a}, {"X", b}}});
  ExpectSameAsHost({"concat_grad",
                    {{"axis", int32_t{1}}},
                    {{"Out@GRAD", SomeTensor<float>({2, 8, 4})}, {"X", a}, {"X", b}},
                    {2}});
  ExpectSameAsHost({"split", {{"axis", int32_t{1}}, {"sections", Ints{1, 2}}}, {{"X", a}}, {2}});
  ExpectSameAsHost({"stack", {{"axis", int32_t{1}}}, {{"X", a}, {"X", a}}});
  ExpectSameAsHost({"unstack", {{"axis", int32_t{1}}, {"num", int32_t{3}}}, {{"X", a}}, {3}});
  ExpectSameAsHost(
      {"meshgrid", {}, {{"X", SomeTensor<float>({3})}, {"X", SomeTensor<float>({4})}}, {2}});
}

TEST_F(MoveRows, SlicesAndTheirGradients) {
  const Tensor x = SomeTensor<float>({5, 6, 7});
  const std::vector<Attr> attrs = {
      {"axes", Ints{0, 2}}, {"starts", Ints{1, -4}}, {"ends", Ints{4, 7}}};
  ExpectSameAsHost({"slice", attrs, {{"Input", x}}});
  ExpectSameAsHost(
      {"slice_grad", attrs, {{"Input", x}, {"Out@GRAD", SomeTensor<float>({3, 6, 4})}}});
  const std::vector<Attr> strided = {
      {"axes", Ints{0, 2}}, {"starts", Ints{4, 0}}, {"ends", Ints{0, 7}}, {"strides", Ints{-2, 3}}};
  ExpectSameAsHost({"strided_slice", strided, {{"Input", x}}});
  ExpectSameAsHost(
      {"strided_slice_grad", strided, {{"Input", x}, {"Out@GRAD", SomeTensor<float>({2, 6, 3})}}});
}

TEST_F(MoveRows, TensorsAreTurnedRepeatedAndPadded) {
  const Tensor x = SomeTensor<float>({2, 3, 4, 5});
  ExpectSameAsHost({"transpose2", {{"axis", Ints{0, 2, 3, 1}}}, {{"X", x}}});
  ExpectSameAsHost({"transpose2_grad", {{"axis", Ints{0, 2, 3, 1}}}, {{"Out@GRAD", x}}});
  ExpectSameAsHost({"flip", {{"axis", Ints{1, 3}}}, {{"X", x}}});
  ExpectSameAsHost({"roll",
                    {{"shifts", std::vector<int64_t>{1, -2}}, {"axis", std::vector<int64_t>{1, 3}}},
                    {{"X", x}}});
  ExpectSameAsHost({"expand_v2", {{"shape", Ints{2, 3, 4}}}, {{"X", SomeTensor<float>({3, 1})}}});
  ExpectSameAsHost(
      {"tile", {{"repeat_times", Ints{2, 1, 3}}}, {{"X", SomeTensor<int32_t>({3, 2})}}});
  ExpectSameAsHost({"pad",
                    {{"paddings", Ints{1, 0, 2, 3}}, {"pad_value", 1.5f}},
                    {{"X", SomeTensor<float>({3, 2})}}});
  for (const char* mode : {"constant", "reflect", "edge"}) {
    ExpectSameAsHost({"pad2d",
                      {{"paddings", Ints{1, 2, 2, 1}}, {"mode", mode}, {"pad_value", 0.5f}},
                      {{"X", x}}});
  }
  ExpectSameAsHost({"pixel_shuffle",
                    {{"upscale_factor", int32_t{2}}},
                    {{"X", SomeTensor<float>({2, 8, 3, 4})}}});
}

TEST_F(MoveRows, GradientsOfRepeatsAreSums) {
  ExpectSameAsHost(
      {"expand_v2_grad",
       {{"shape", Ints{2, 3, 4}}},
       {{"Out@GRAD", SomeTensor<float>({2, 3, 4})}, {"X", SomeTensor<float>({3, 1})}}});
  ExpectSameAsHost(
      {"tile_grad",
       {{"repeat_times", Ints{2, 1, 3}}},
       {{"Out@GRAD", SomeTensor<double>({2, 3, 6})}, {"X", SomeTensor<double>({3, 2})}}});
}

TEST_F(MoveRows, RowsArePickedByIndex) {
  const Tensor x = SomeTensor<float>({2, 5, 3});
  const Tensor index = Tensor::Of<int64_t>(Shape({4}), {4, 0, 0, 3});
  const Tensor grad = SomeTensor<float>({2, 4, 3}, 2);
  ExpectSameAsHost({"gather", {{"axis", int32_t{1}}}, {{"X", x}, {"Index", index}}});
  ExpectSameAsHost({"index_select", {{"dim", int32_t{-2}}}, {{"X", x}, {"Index", index}}});
  for (const auto& [type, axis] :
       {std::pair("gather_grad", "axis"), {"index_select_grad", "dim"}}) {
    ExpectSameAsHost(
        {type, {{axis, int32_t{1}}}, {{"Out@GRAD", grad}, {"X", x}, {"Index", index}}});
  }
  const Tensor tuples = Tensor::Of<int32_t>(Shape({3, 2}), {1, 4, 0, 0, 1, 4});
  ExpectSameAsHost({"gather_nd", {}, {{"X", x}, {"Index", tuples}}});
  ExpectSameAsHost({"gather_nd_grad",
                    {},
                    {{"Out@GRAD", SomeTensor<float>({3, 3})}, {"Index", tuples}, {"X", x}}});
}

TEST_F(MoveRows, EmbeddingsAndTheirGradients) {
  const Tensor w = SomeTensor<float>({6, 40});
  const Tensor ids = Tensor::Of<int64_t>(Shape({2, 3}), {5, 1, 0, 1, 1, 2});
  for (const int64_t padding : {-1, 1}) {
    const std::vector<Attr> attrs = {{"padding_idx", padding}};
    ExpectSameAsHost({"lookup_table_v2", attrs, {{"W", w}, {"Ids", ids}}});
    ExpectSameAsHost({"lookup_table_v2_grad",
                      attrs,
                      {{"W", w}, {"Ids", ids}, {"Out@GRAD", SomeTensor<float>({2, 3, 40})}}});
  }
}

TEST_F(MoveRows, ScattersKeepTheOrderOfTheList) {
  const Tensor x = SomeTensor<float>({5, 3});
  const Tensor ids = Tensor::Of<int64_t>(Shape({4}), {1, 3, 1, 0});
  const Tensor updates = SomeTensor<float>({4, 3}, 2);
  for (const bool overwrite : {true, false}) {
    ExpectSameAsHost(
        {"scatter", {{"overwrite", overwrite}}, {{"X", x}, {"Ids", ids}, {"Updates", updates}}});
  }
  ExpectSameAsHost({"scatter_grad", {}, {{"Out@GRAD", x}, {"Ids", ids}, {"Updates", updates}}});
  const Tensor tuples = Tensor::Of<int32_t>(Shape({3, 1}), {4, 0, 4});
  const Tensor added = SomeTensor<float>({3, 3});
  ExpectSameAsHost({"scatter_nd_add", {}, {{"X", x}, {"Index", tuples}, {"Updates", added}}});
  ExpectSameAsHost({"scatter_nd_add_grad", {}, {{"Out@GRAD", x}, {"Index", tuples}}});
}

// So long that they are sorted first.
TEST_F(MoveRows, LongListsKeepTheirOrderToo) {
  constexpr int64_t kCount = 1500;  // more than a block sorts at once
  std::vector<int64_t> rows(kCount);
  for (int64_t i = 0; i < kCount; ++i) rows[i] = i * i * 7 % 43;
  const Tensor ids = Tensor::Of<int64_t>(Shape({kCount}), rows);
  const Tensor x = SomeTensor<float>({60, 3});
  const Tensor updates = SomeTensor<float>({kCount, 3}, 2);
  for (const bool overwrite : {true, false}) {
    ExpectSameAsHost(
        {"scatter", {{"overwrite", overwrite}}, {{"X", x}, {"Ids", ids}, {"Updates", updates}}});
  }
  const Tensor narrow =
      Tensor::Of<int32_t>(Shape({kCount, 1}), std::vector<int32_t>(rows.begin(), rows.end()));
  ExpectSameAsHost({"scatter_nd_add", {}, {{"X", x}, {"Index", narrow}, {"Updates", updates}}});
  ExpectSameAsHost({"index_select_grad",
                    {{"dim", 1}},
                    {{"Out@GRAD", SomeTensor<float>({2, kCount, 3})},
                     {"X", SomeTensor<float>({2, 60, 3})},
                     {"Index", ids}}});
  for (const int64_t padding : {int64_t{-1}, int64_t{7}}) {
    ExpectSameAsHost({"lookup_table_v2_grad",
                      {{"padding_idx", padding}},
                      {{"W", SomeTensor<float>({60, 3})}, {"Ids", ids}, {"Out@GRAD", updates}}});
  }
}

TEST_F(MoveRows, ElementsAreChosen) {
  const Tensor condition = Tensor::Of<bool>(Shape({4}), {true, false, false, true});
  const Tensor x = SomeTensor<float>({4});
  ExpectSameAsHost(
      {"where", {}, {{"Condition", condition}, {"X", x}, {"Y", SomeTensor<float>({4}, 2)}}});
  ExpectSameAsHost({"where_grad", {}, {{"Out@GRAD", x}, {"Condition", condition}}});
  for (const bool lower : {true, false}) {
    for (const int32_t diagonal : {-1, 0, 2}) {
      ExpectSameAsHost({"tril_triu",
                        {{"diagonal", diagonal}, {"lower", lower}},
                        {{"X", SomeTensor<float>({2, 4, 5})}}});
    }
  }
  ExpectSameAsHost({"one_hot_v2",
                    {{"depth", int32_t{4}}, {"allow_out_of_range", true}},
                    {{"X", Tensor::Of<int64_t>(Shape({3}), {3, 7, 0})}}});
}

}  // namespace
}  // namespace interp::cuda_test
