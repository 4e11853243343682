// tests/core/io/pickles holds files of Paddle and NumPy (make_pickles.py there): every array counts
// 0, 1, 2, ...
#include "core/io/pickle_params.h"

#include <gtest/gtest.h>

#include <complex>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "core/io/file.h"
#include "core/io/pickle.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temp_folder.h"

namespace interp {
namespace {

using testing::FailsWith;
using testing::IsOk;
using testing::TempFolder;
using Code = absl::StatusCode;

std::string PathOf(const std::string& name) {
  return absl::StrCat(INTERP_SOURCE_DIR, "/tests/core/io/pickles/", name);
}

absl::StatusOr<std::vector<NamedTensor>> Parse(std::string& bytes) {
  return ParsePickledParams(BorrowBuffer(bytes.data(), bytes.size(), /*writable=*/false));
}

template <typename T>
bool Counts(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (tensor.data<T>()[i] != static_cast<T>(static_cast<float>(i))) return false;
  }
  return true;
}

bool Counts(const Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::kInt8:
      return Counts<int8_t>(tensor);
    case DType::kUInt8:
      return Counts<uint8_t>(tensor);
    case DType::kInt16:
      return Counts<int16_t>(tensor);
    case DType::kInt32:
      return Counts<int32_t>(tensor);
    case DType::kInt64:
      return Counts<int64_t>(tensor);
    case DType::kFloat16:
      return Counts<float16>(tensor);
    case DType::kFloat32:
      return Counts<float>(tensor);
    case DType::kFloat64:
      return Counts<double>(tensor);
    case DType::kComplex64:
      return Counts<std::complex<float>>(tensor);
    case DType::kBool:
      return tensor.numel() < 2 || (!tensor.data<bool>()[0] && tensor.data<bool>()[1]);
    default:  // uint16 counts in bits of bfloat16
      return tensor.numel() < 2 || static_cast<const uint16_t*>(tensor.raw_data())[1] == 1;
  }
}

// "w float32[3,2], b ..."; a name with an exclamation mark does not count.
std::string Describe(const std::vector<NamedTensor>& tensors) {
  return absl::StrJoin(tensors, " ", [](std::string* out, const NamedTensor& named) {
    const auto& [name, tensor] = named;
    absl::StrAppend(out, name, Counts(tensor) ? "" : "!", ":", Name(tensor.dtype),
                    ToString(tensor.shape));
  });
}

std::string DescribeFile(const std::string& name) {
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ListPickledParams(PathOf(name));
  return tensors.ok() ? Describe(*tensors) : tensors.status().ToString();
}

TEST(PickleParamsTest, ReadsFilesOfStaticSave) {
  for (const char* protocol : {"2", "3", "4"}) {
    EXPECT_EQ(DescribeFile(absl::StrCat("static", protocol, ".pdparams")),
              "fc_0.w_0:float32[4,3] fc_0.b_0:float32[3]");
    EXPECT_EQ(DescribeFile(absl::StrCat("static", protocol, ".pdopt")),
              "learning_rate_0:float32[] fc_0.b_0_moment1_0:float32[3] "
              "fc_0.b_0_moment2_0:float32[3] fc_0.b_0_beta1_pow_acc_0:float32[1] "
              "fc_0.b_0_beta2_pow_acc_0:float32[1] fc_0.w_0_moment1_0:float32[4,3] "
              "fc_0.w_0_moment2_0:float32[4,3] fc_0.w_0_beta1_pow_acc_0:float32[1] "
              "fc_0.w_0_beta2_pow_acc_0:float32[1]");
  }
}

TEST(PickleParamsTest, LayersGiveTheNamesOfTheirVariables) {
  for (const char* protocol : {"2", "4"}) {
    EXPECT_EQ(DescribeFile(absl::StrCat("layers", protocol, ".pdparams")),
              "linear_0.w_0:float32[4,3] linear_0.b_0:float32[3]");
    // The learning-rate schedule, a dict of numbers, is left out.
    EXPECT_EQ(DescribeFile(absl::StrCat("layers", protocol, ".pdopt")),
              "linear_0.w_0_moment1_0:float32[4,3] linear_0.b_0_moment1_0:float32[3] "
              "linear_0.w_0_moment2_0:float32[4,3] linear_0.b_0_moment2_0:float32[3] "
              "linear_0.w_0_beta1_pow_acc_0:float32[1] linear_0.b_0_beta1_pow_acc_0:float32[1] "
              "linear_0.w_0_beta2_pow_acc_0:float32[1] linear_0.b_0_beta2_pow_acc_0:float32[1]");
  }
  EXPECT_EQ(DescribeFile("tensor.pdtensor"), "linear_0.w_0:float32[4,3]");
}

TEST(PickleParamsTest, ReadsAllTypesAndOrdersOfElements) {
  for (const char* name : {"numpy2", "numpy3", "numpy4", "numpy5", "numpy_2"}) {
    EXPECT_EQ(DescribeFile(absl::StrCat(name, ".pickle")),
              "bool:bool[2,3] int8:int8[2,3] uint8:uint8[2,3] int16:int16[2,3] int32:int32[2,3] "
              "int64:int64[2,3] float16:float16[2,3] float32:float32[2,3] float64:float64[2,3] "
              "complex64:complex64[2,3] uint16:bfloat16[2,3] big_endian:float32[2,3] "
              "fortran:float32[2,3,4] number:float32[] scalar:float64[] empty:float32[0,3]")
        << name;
  }
}

TEST(PickleParamsTest, JoinsSplitArrays) {
  EXPECT_EQ(DescribeFile("split.pdparams"), "b:float32[3] w:float32[4,3]");
}

// --- for a program ---

const ParamDecl kWeight{"fc_0.w_0", DType::kFloat32, {4, 3}};
const ParamDecl kMoment{"fc_0.w_0_moment1_0", DType::kFloat32, {4, 3}};
const ParamDecl kRate{"learning_rate_0", DType::kFloat32, {1}};

TEST(PickleParamsTest, OptimizerStateIsReadFromTheFileBeside) {
  const absl::StatusOr<std::vector<NamedTensor>> tensors =
      ReadAnyParams(PathOf("static4.pdparams"), {{kWeight, kMoment, kRate}});
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ(Describe(*tensors),
            "fc_0.w_0:float32[4,3] fc_0.w_0_moment1_0:float32[4,3] "
            "learning_rate_0:float32[1]");
}

TEST(PickleParamsTest, AMissingParameterIsAnError) {
  const TempFolder folder;
  std::filesystem::copy(PathOf("static4.pdparams"), folder / "a.pdparams");
  EXPECT_THAT(ReadAnyParams(folder / "a.pdparams", {{kWeight, kMoment}}),
              FailsWith(Code::kNotFound,
                        "there is no parameter 'fc_0.w_0_moment1_0'; nearest: "
                        "'fc_0.w_0'"));
}

TEST(PickleParamsTest, DeclarationsAreChecked) {
  const ParamDecl other{"fc_0.w_0", DType::kFloat32, {3, 4}};
  EXPECT_THAT(ReadAnyParams(PathOf("static4.pdparams"), {{other}}),
              FailsWith(Code::kInvalidArgument,
                        "parameter 'fc_0.w_0': the file has "
                        "float32[4,3], the program declares float32[3,4]"));
}

TEST(PickleParamsTest, ValuesTakeTheDeclaredForm) {
  const ParamDecl half{"fc_0.w_0", DType::kFloat16, {4, 3, 1}};
  const auto tensors = ReadAnyParams(PathOf("static4.pdparams"), {{half}});
  ASSERT_THAT(tensors, IsOk());
  EXPECT_EQ(Describe(*tensors), "fc_0.w_0:float16[4,3,1]");
}

TEST(PickleParamsTest, OtherFilesAreReadAsBefore) {
  const TempFolder folder;
  std::vector<NamedTensor> tensors = *ListPickledParams(PathOf("static4.pdparams"));
  ASSERT_THAT(WriteCombinedParams(folder / "p", tensors), IsOk());
  const absl::StatusOr<std::vector<NamedTensor>> read =
      ReadAnyParams(folder / "p", {{{"fc_0.b_0", DType::kFloat32, {3}}, kWeight}});
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(Describe(*read), "fc_0.b_0:float32[3] fc_0.w_0:float32[4,3]");
}

// --- errors ---

struct WrongFile {
  const char* name;
  std::string bytes;
  const char* message;
};

class WrongPickleTest : public ::testing::TestWithParam<WrongFile> {};

TEST_P(WrongPickleTest, IsAnError) {
  std::string bytes = GetParam().bytes;
  EXPECT_EQ(std::string(Parse(bytes).status().message()), GetParam().message);
}

using namespace std::string_literals;  // NOLINT(google-build-using-namespace): bytes with zeros

INSTANTIATE_TEST_SUITE_P(
    Files, WrongPickleTest,
    ::testing::Values(
        WrongFile{"NoPickle", "hello", "byte 0: no pickle of protocol 2 to 5"},
        WrongFile{"Protocol0", "(dp0\n.", "byte 0: no pickle of protocol 2 to 5"},
        WrongFile{
            "CallsTheSystem",
            "\x80\x02"
            "cos\nsystem\nX\x02\0\0\0ls\x85R."s,
            "byte 2: it wants to call 'os.system', and only arrays, dicts, lists, strings and "
            "numbers are read"},
        WrongFile{"CallsEval",
                  "\x80\x04\x8c\x08"
                  "builtins\x8c\x04"
                  "eval\x93)R."s,
                  "byte 18: it wants to call 'builtins.eval', and only arrays, dicts, lists, "
                  "strings and numbers are read"},
        WrongFile{"OtherArguments",
                  "\x80\x02"
                  "cnumpy\ndtype\nX\x02\0\0\0O8\x85R."s,
                  "byte 23: arrays of type 'O8' are not supported"},
        WrongFile{"EndsWithinText",
                  "\x80\x02X\xff\xff\xff\x7f"
                  "ab"s,
                  "byte 2: 2147483647 bytes of content, but only 2 are left"},
        WrongFile{"HugeBytes", "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff"s,
                  "byte 2: 18446744073709551615 bytes of content, but only 0 are left"},
        WrongFile{"HugeFrame", "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}."s,
                  "byte 2: a frame reaches over the end of the file"},
        WrongFile{"NoEnd", "\x80\x02}"s, "byte 3: the file ends within the pickle"},
        WrongFile{"EmptyStack", "\x80\x02."s, "byte 2: the stack is empty"},
        WrongFile{"ItemsOfNoDict", "\x80\x02](K\x01K\x02u."s, "byte 8: no dict to put items in"},
        WrongFile{"KeyWithoutValue", "\x80\x02}(K\x01u."s, "byte 6: a key without its value"},
        WrongFile{"NoMark", "\x80\x02}u."s, "byte 3: there is no mark on the stack"},
        WrongFile{"NothingRemembered", "\x80\x02h\x05."s, "byte 2: no value 5 was remembered"},
        WrongFile{"UnknownOpcode", "\x80\x02Q."s, "byte 2: opcode 0x51"},
        WrongFile{"BytesBehind", "\x80\x02}.}"s, "byte 3: 1 bytes follow the end of the pickle"},
        WrongFile{"NoDict", "\x80\x02K\x01."s, "byte 2: no dict of parameters"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(PickleTest, ADictMayHoldItself) {
  std::string bytes = "\x80\x02}q\x01X\x01\0\0\0ah\x01s."s;
  const absl::StatusOr<std::vector<NamedTensor>> tensors = Parse(bytes);
  ASSERT_THAT(tensors, IsOk());
  EXPECT_TRUE(tensors->empty());
}

TEST(PickleTest, DepthTakesNoStack) {
  std::string bytes =
      "\x80\x02"s + std::string(1 << 20, ']') + std::string((1 << 20) - 1, 'a') + ".";
  EXPECT_THAT(Parse(bytes), FailsWith(Code::kInvalidArgument, "no dict of parameters"));
}

// --- damage ---

class DamagedPickleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DamagedPickleTest, CutOffFilesAreErrors) {
  const std::string whole = *ReadFile(PathOf(GetParam()));
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string cut = whole.substr(0, size);
    EXPECT_FALSE(Parse(cut).ok()) << size;
  }
}

TEST_P(DamagedPickleTest, ChangedBytesAreSurvived) {
  const std::string whole = *ReadFile(PathOf(GetParam()));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const absl::StatusOr<std::vector<NamedTensor>> tensors = Parse(changed);
      if (tensors.ok()) Describe(*tensors);  // touches all elements
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DamagedPickleTest,
                         ::testing::Values("static2.pdopt", "static4.pdopt", "layers2.pdopt",
                                           "numpy3.pickle", "numpy5.pickle", "split.pdparams",
                                           "tensor.pdtensor"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

}  // namespace
}  // namespace interp
