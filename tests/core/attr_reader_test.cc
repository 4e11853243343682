#include "core/attr_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace interp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Op OpWith(std::vector<Attr> attrs) {
  Op op;
  op.attrs = std::move(attrs);
  return op;
}

TEST(AttrReaderTest, AbsentAttributesGiveTheDefault) {
  const Op op;
  AttrReader reader(op);
  EXPECT_FALSE(reader.Has("a"));
  EXPECT_TRUE(reader.Bool("a", true));
  EXPECT_EQ(reader.Int("a", -3), -3);
  EXPECT_EQ(reader.Long("a", int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(reader.Float("a", 0.5f), 0.5f);
  EXPECT_EQ(reader.Double("a", 0.1), 0.1);
  EXPECT_EQ(reader.String("a", "x"), "x");
  EXPECT_THAT(reader.Ints("a", {1}), ElementsAre(1));
  EXPECT_THAT(reader.Floats("a", {2}), ElementsAre(2));
  EXPECT_THAT(reader.Doubles("a"), IsEmpty());
  EXPECT_THAT(reader.Strings("a"), IsEmpty());
  EXPECT_EQ(reader.Type("a", DType::kInt32), DType::kInt32);
  EXPECT_TRUE(reader.status().ok());
}

TEST(AttrReaderTest, NumbersConvertWhereTheyFit) {
  const Op op = OpWith({{"int", int32_t{7}},
                        {"long", int64_t{8}},
                        {"bool", true},
                        {"float", 0.5f},
                        {"double", 0.25},
                        {"scalar", Scalar{int64_t{9}}},
                        {"real", Scalar{2.5}}});
  AttrReader reader(op);
  EXPECT_EQ(reader.Long("int", 0), 7);
  EXPECT_EQ(reader.Int("long", 0), 8);
  EXPECT_EQ(reader.Int("bool", 0), 1);
  EXPECT_TRUE(reader.Bool("int", false));
  EXPECT_EQ(reader.Float("int", 0), 7.0f);
  EXPECT_EQ(reader.Double("float", 0), 0.5);
  EXPECT_EQ(reader.Float("double", 0), 0.25f);
  EXPECT_EQ(reader.Int("scalar", 0), 9);
  EXPECT_EQ(reader.Double("real", 0), 2.5);
  EXPECT_TRUE(reader.status().ok());
}

TEST(AttrReaderTest, ListsConvertElementByElement) {
  const Op op = OpWith({{"ints", std::vector<int32_t>{1, -2}},
                        {"longs", std::vector<int64_t>{3}},
                        {"bools", std::vector<bool>{true, false}},
                        {"floats", std::vector<float>{0.5f}},
                        {"doubles", std::vector<double>{0.25}},
                        {"scalars", std::vector<Scalar>{{int64_t{4}}, {true}}},
                        {"strings", std::vector<std::string>{"a", "b"}}});
  AttrReader reader(op);
  EXPECT_THAT(reader.Ints("ints"), ElementsAre(1, -2));
  EXPECT_THAT(reader.Ints("longs"), ElementsAre(3));
  EXPECT_THAT(reader.Ints("bools"), ElementsAre(1, 0));
  EXPECT_THAT(reader.Ints("scalars"), ElementsAre(4, 1));
  EXPECT_THAT(reader.Floats("doubles"), ElementsAre(0.25f));
  EXPECT_THAT(reader.Doubles("floats"), ElementsAre(0.5));
  EXPECT_THAT(reader.Doubles("ints"), ElementsAre(1, -2));
  EXPECT_THAT(reader.Strings("strings"), ElementsAre("a", "b"));
  EXPECT_TRUE(reader.status().ok());
}

std::string MessageOf(const Attr& attr, void (*read)(AttrReader&)) {
  const Op op = OpWith({attr});
  AttrReader reader(op);
  read(reader);
  return std::string(reader.status().message());
}

TEST(AttrReaderTest, OtherKindsAreErrors) {
  const Attr text = {"a", std::string("x")};
  EXPECT_EQ(MessageOf(text, [](AttrReader& r) { r.Long("a", 0); }),
            "attribute 'a' is of kind STRING, expected an integer");
  EXPECT_EQ(MessageOf(text, [](AttrReader& r) { r.Double("a", 0); }),
            "attribute 'a' is of kind STRING, expected a number");
  EXPECT_EQ(MessageOf({"a", 0.5f}, [](AttrReader& r) { r.Int("a", 0); }),
            "attribute 'a' is of kind FLOAT, expected an integer");
  EXPECT_EQ(MessageOf({"a", std::vector<float>{1}}, [](AttrReader& r) { r.Ints("a"); }),
            "attribute 'a' is of kind FLOATS, expected a list of integers");
  EXPECT_EQ(MessageOf({"a", int32_t{1}}, [](AttrReader& r) { r.String("a", ""); }),
            "attribute 'a' is of kind INT, expected STRING");
  EXPECT_EQ(MessageOf({"a", int32_t{1}}, [](AttrReader& r) { r.Strings("a"); }),
            "attribute 'a' is of kind INT, expected STRINGS");
}

TEST(AttrReaderTest, ValuesOutOfRangeAreErrors) {
  EXPECT_EQ(MessageOf({"a", int64_t{1} << 31}, [](AttrReader& r) { r.Int("a", 0); }),
            "attribute 'a' is 2147483648, which does not fit into 32 bits");
  EXPECT_EQ(MessageOf({"a", int32_t{7}}, [](AttrReader& r) { r.Type("a", DType::kBool); }),
            "attribute 'a' is 7, no element type");
}

TEST(AttrReaderTest, TheFirstErrorIsKept) {
  const Op op;
  AttrReader reader(op);
  reader.Fail("first");
  reader.Fail("second");
  EXPECT_EQ(reader.status().message(), "first");
}

TEST(AttrReaderTest, DTypesAreStoredAsNumbers) {
  const Op op = OpWith({{"a", int32_t{5}}, {"none", int32_t{-1}}});
  AttrReader reader(op);
  EXPECT_EQ(reader.Type("a", DType::kBool), DType::kFloat32);
  EXPECT_EQ(reader.Type("none", DType::kBool), DType::kBool);
  EXPECT_TRUE(reader.status().ok());
}

// Paddle 2.6 lists some attributes twice; its last one wins.
TEST(AttrReaderTest, TheLastOfTwoCounts) {
  const Op op = OpWith({{"a", int32_t{1}}, {"a", int32_t{2}}});
  AttrReader reader(op);
  EXPECT_EQ(reader.Int("a", 0), 2);
}

TEST(AttrReaderTest, ArgumentsHaveTheNamesThatTheProgramGivesThem) {
  Program program;
  Op op;
  op.inputs.push_back({"X", {program.Intern("a"), program.Intern("b")}});
  EXPECT_THAT(AttrReader(op, &program).InputNames("X"), ElementsAre("a", "b"));
  EXPECT_THAT(AttrReader(op).InputNames("X"), ElementsAre("", ""));
  EXPECT_THAT(AttrReader(op, &program).InputNames("Y"), IsEmpty());
}

}  // namespace
}  // namespace interp
