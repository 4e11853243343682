// Filters written into formats of oneDNN, against oneDNN's own reorder.
#include "kernels/conv/pack_filter.h"

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/matchers.h"

namespace interp::nn::pack_filter_test {
namespace {

using Tag = dnnl::memory::format_tag;
using interp::testing::IsOk;

struct Case {
  dnnl::memory::dims dims;  // [G,]O,I,kernel
  Tag tag;
  bool grouped = false;
};

MemDesc DescOf(const Case& c, dnnl::memory::data_type type = dnnl::memory::data_type::f32) {
  return MemDesc(c.dims, type, c.tag);
}

std::vector<float> FilterOf(const Case& c) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  int64_t size = 1;
  for (const int64_t dim : c.dims) size *= dim;
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(rng);
  return values;
}

// Memory that was written to before, as that of an allocator is.
dnnl::memory Used(const MemDesc& desc) {
  dnnl::memory memory(desc, Engine());
  std::memset(memory.get_data_handle(), 0x5A, desc.get_size());
  return memory;
}

std::vector<char> BytesOf(const dnnl::memory& memory) {
  const auto* data = static_cast<const char*>(memory.get_data_handle());
  return std::vector<char>(data, data + memory.get_desc().get_size());
}

std::vector<char> Reordered(const Case& c, const std::vector<float>& filter) {
  const dnnl::memory memory = Used(DescOf(c));
  EXPECT_THAT(Reorder(StridedDesc(c.dims, {}), filter.data(), memory), IsOk());
  return BytesOf(memory);
}

std::vector<char> Packed(const Case& c, const std::vector<float>& filter,
                         const std::vector<double>& factors, int num_threads) {
  const dnnl::memory memory = Used(DescOf(c));
  const std::optional<FilterFormat> format = FilterFormat::Of(DescOf(c), c.grouped);
  EXPECT_TRUE(format.has_value());
  if (!format.has_value()) return {};
  format->Pack(filter.data(), factors, num_threads, static_cast<float*>(memory.get_data_handle()));
  return BytesOf(memory);
}

const Case kCases[] = {
    {{32, 3, 3, 3}, Tag::Acdb16a},
    {{24, 96, 1, 1}, Tag::Acdb32a},  // with channels that are padding
    {{100, 70, 1, 1}, Tag::Acdb48a},
    {{130, 65, 1, 1}, Tag::Acdb64a},
    {{1, 1, 1, 1}, Tag::Acdb16a},
    {{20, 48, 3, 3}, Tag::ABcd16b16a},
    {{20, 16, 3, 3}, Tag::ABcd8b8a},
    {{17, 5, 3, 3}, Tag::Abcd16a},
    {{33, 7, 2, 3, 2}, Tag::Acdeb16a},  // of volumes
    {{40, 1, 1, 3, 3}, Tag::Goihw16g, true},
    {{3, 20, 5, 3, 3}, Tag::gOhwi16o, true},
    {{2, 20, 32, 1, 2}, Tag::gOIhw16i16o, true},
};

TEST(FilterFormatTest, WritesWhatReorderWrites) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(static_cast<int>(c.tag));
    const std::vector<float> filter = FilterOf(c);
    const std::vector<char> expected = Reordered(c, filter);
    EXPECT_EQ(Packed(c, filter, {}, 1), expected);
    EXPECT_EQ(Packed(c, filter, {}, 3), expected);
  }
}

TEST(FilterFormatTest, MultipliesChannelsByTheirFactors) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(static_cast<int>(c.tag));
    std::vector<float> filter = FilterOf(c);
    const int64_t channels = c.grouped ? c.dims[0] * c.dims[1] : c.dims[0];
    std::vector<double> factors;
    for (int64_t i = 0; i < channels; ++i) factors.push_back(1.0 / static_cast<double>(i + 3));
    const std::vector<char> packed = Packed(c, filter, factors, 2);
    const size_t each = filter.size() / factors.size();
    for (size_t i = 0; i < filter.size(); ++i) {
      filter[i] = static_cast<float>(filter[i] * factors[i / each]);
    }
    EXPECT_EQ(packed, Reordered(c, filter));
  }
}

TEST(FilterFormatTest, LeavesOtherFormatsAlone) {
  const Case others[] = {
      {{32, 32, 3, 3}, Tag::abcd},              // without blocks
      {{32, 32, 3, 3}, Tag::ABcd16a16b},        // of input channels
      {{32, 20, 3, 3}, Tag::ABcd16b16a},        // with input channels that are padding
      {{32, 32, 3, 3}, Tag::ABcd4b16a4b},       // in three
      {{16, 2, 1, 3, 3}, Tag::Goihw16g, true},  // of several channels of one group
  };
  for (const Case& c : others) {
    EXPECT_FALSE(FilterFormat::Of(DescOf(c), c.grouped).has_value()) << static_cast<int>(c.tag);
  }
  const MemDesc narrow = DescOf({{32, 3, 3, 3}, Tag::Acdb16a}, dnnl::memory::data_type::bf16);
  EXPECT_FALSE(FilterFormat::Of(narrow, false).has_value());
}

}  // namespace
}  // namespace interp::nn::pack_filter_test
