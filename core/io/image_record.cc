#include "core/io/image_record.h"

#include <algorithm>
#include <compare>

#include "core/io/little_endian.h"

namespace interp {
namespace {

constexpr size_t kHeaderBytes = 24;

}  // namespace

bool LabelsLess::operator()(const std::vector<float>& a, const std::vector<float>& b) const {
  return std::ranges::lexicographical_compare(
      a, b, [](float x, float y) { return std::strong_order(x, y) < 0; });
}

absl::StatusOr<ImageRecord> ParseImageRecord(absl::string_view payload) {
  if (payload.size() < kHeaderBytes) {
    return DataLoss("a record of ", payload.size(), " bytes, expected a header of ", kHeaderBytes,
                    " before the picture");
  }
  const uint64_t num_labels = LoadLittle<uint32_t>(payload, 0);
  if (num_labels > (payload.size() - kHeaderBytes) / sizeof(float)) {
    return DataLoss("the header says ", num_labels, " labels, but ", payload.size() - kHeaderBytes,
                    " bytes follow it");
  }
  ImageRecord record{.labels = {},
                     .id = LoadLittle<uint64_t>(payload, 8),
                     .id2 = LoadLittle<uint64_t>(payload, 16),
                     .picture = payload.substr(kHeaderBytes + num_labels * sizeof(float))};
  if (num_labels == 0) record.labels.push_back(LoadLittleFloat(payload, 4));
  for (uint64_t i = 0; i < num_labels; ++i) {
    record.labels.push_back(LoadLittleFloat(payload, kHeaderBytes + i * sizeof(float)));
  }
  return record;
}

std::string FormatImageRecord(const ImageRecord& record) {
  const bool one = record.labels.size() == 1;
  std::string payload;
  payload.reserve(kHeaderBytes + record.labels.size() * sizeof(float) + record.picture.size());
  AppendLittle(one ? uint32_t{0} : static_cast<uint32_t>(record.labels.size()), payload);
  AppendLittleFloat(one ? record.labels[0] : 0, payload);
  AppendLittle(record.id, payload);
  AppendLittle(record.id2, payload);
  for (const float label : record.labels) {
    if (!one) AppendLittleFloat(label, payload);
  }
  payload.append(record.picture.data(), record.picture.size());
  return payload;
}

}  // namespace interp
