#include "core/constant_elements.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/io/params.h"
#include "tests/testing/temp_folder.h"

namespace interp::testing::constant_elements_test {
namespace {

constexpr int64_t kCount = int64_t{1} << 20;

float ValueAt(int64_t i) { return static_cast<float>(i % 1000) / 8; }

// A file of floats behind `offset` bytes, mapped as parameters that stay there are.
Tensor InFile(const std::string& path, size_t offset) {
  std::vector<float> values(kCount);
  for (int64_t i = 0; i < kCount; ++i) values[i] = ValueAt(i);
  std::ofstream file(path, std::ios::binary);
  file << std::string(offset, '\0');
  file.write(reinterpret_cast<const char*>(values.data()), kCount * sizeof(float));
  file.close();
  const BufferRef buffer = *MapAsBuffer(path);
  buffer->in_file = true;
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {kCount};
  tensor.SetMemory(buffer, static_cast<char*>(buffer->data) + offset);
  return tensor;
}

bool HasItsValues(const Tensor& tensor) {
  for (int64_t i = 0; i < kCount; ++i) {
    if (tensor.data<float>()[i] != ValueAt(i)) return false;
  }
  return true;
}

// Whole pages of the tensor that this process has in its memory.
int64_t PagesPresent(const Tensor& tensor) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(tensor.raw_data());
  const uintptr_t first = (begin + page - 1) / page;
  const uintptr_t last = (begin + tensor.size_bytes()) / page;
  std::vector<uint64_t> entries(last - first);
  const int map = open("/proc/self/pagemap", O_RDONLY);
  const auto bytes = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
  EXPECT_EQ(pread(map, entries.data(), bytes, static_cast<off_t>(first * sizeof(uint64_t))), bytes);
  close(map);
  return std::count_if(entries.begin(), entries.end(), [](uint64_t entry) { return entry >> 63; });
}

TEST(ConstantElements, OfAnAlignedTensorAreItsOwn) {
  const Tensor tensor = Tensor::Of<float>({3}, {1, 2, 3});
  const auto elements = ConstantElements::Of(tensor);
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_EQ((*elements)->raw_data(), tensor.raw_data());
}

TEST(ConstantElements, OfAnUnalignedTensorAreACopy) {
  const TempFolder folder;
  const Tensor tensor = InFile(folder / "p", 3);
  ASSERT_FALSE(IsAligned(tensor));
  auto elements = ConstantElements::Of(tensor);
  ASSERT_TRUE(elements.ok()) << elements.status();
  const ConstantElements moved = *std::move(elements);
  EXPECT_TRUE(IsAligned(*moved));
  EXPECT_TRUE(HasItsValues(*moved));
}

TEST(ConstantElements, GivePagesOfAFileBack) {
  const TempFolder folder;
  for (const size_t offset : {4, 6}) {
    const Tensor tensor = InFile(folder / "p", offset);
    for (int reading = 0; reading < 2; ++reading) {
      const auto elements = ConstantElements::Of(tensor);
      ASSERT_TRUE(elements.ok()) << elements.status();
      EXPECT_TRUE(HasItsValues(**elements));
      EXPECT_GT(PagesPresent(tensor), 0);
    }
    EXPECT_EQ(PagesPresent(tensor), 0) << "offset " << offset;
  }
}

// Memory that is no file's is not given back: it has nowhere to come from again.
TEST(ConstantElements, LeaveOtherMemoryAlone) {
  Tensor tensor;
  tensor.dtype = DType::kFloat32;
  tensor.shape = {kCount};
  ASSERT_TRUE(tensor.Allocate(SystemAllocator()).ok());
  for (int64_t i = 0; i < kCount; ++i) tensor.mutable_data<float>()[i] = ValueAt(i);
  ASSERT_TRUE(ConstantElements::Of(tensor).ok());
  GiveBackPages(tensor);
  EXPECT_TRUE(HasItsValues(tensor));
}

TEST(ConstantElements, TakenFromAFileLast) {
  const TempFolder folder;
  const Tensor tensor = InFile(folder / "p", 5);
  const absl::StatusOr<Tensor> taken = TakeFromFile(tensor);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->buffer()->in_file);
  EXPECT_TRUE(HasItsValues(*taken));
  EXPECT_EQ(PagesPresent(tensor), 0);
}

// Vectors, what is small, and what is to be converted are copied from a file where the others stay.
TEST(ConstantElements, LargeMatricesMayStayInTheFile) {
  const TempFolder folder;
  Tensor matrix = InFile(folder / "values", 0);
  matrix.shape = {512, kCount / 512};
  const Tensor vector = Tensor::Of<float>({512}, std::vector<float>(512));
  // What is before the second one leaves it unaligned.
  ASSERT_TRUE(WriteCombinedParams(folder / "p",
                                  {{"a", vector}, {"b", matrix}, {"c", vector}, {"d", matrix}})
                  .ok());
  const std::vector<ParamDecl> params = {{"a", DType::kFloat32, {512}},
                                         {"b", DType::kFloat32, {512, kCount / 512}},
                                         {"c", DType::kFloat32, {512}},
                                         {"d", DType::kBFloat16, {512, kCount / 512}}};
  const auto tensors = ReadParams(folder / "p", params, ParamMemory::kFile);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  for (const auto& [name, tensor] : *tensors) EXPECT_EQ(IsAligned(tensor), name != "b") << name;
  const Tensor& left = (*tensors)[1].second;
  EXPECT_TRUE(left.buffer()->in_file);
  for (int reading = 0; reading < 2; ++reading) {  // its pages come back
    const auto elements = ConstantElements::Of(left);
    ASSERT_TRUE(elements.ok()) << elements.status();
    EXPECT_TRUE(HasItsValues(**elements));
  }
  const auto copied = ReadParams(folder / "p", params);
  ASSERT_TRUE(copied.ok()) << copied.status();
  for (const auto& [name, tensor] : *copied) EXPECT_TRUE(IsAligned(tensor)) << name;
}

}  // namespace
}  // namespace interp::testing::constant_elements_test
