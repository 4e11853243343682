#include "tools/record_info.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/json_writer.h"
#include "core/image/decode.h"
#include "core/io/file.h"
#include "core/io/record_index.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

constexpr size_t kMostRows = 24;  // of a table that nobody asked for

RecordLine LineOf(const Record& record) {
  RecordLine line{.offset = record.offset, .size_bytes = record.payload.size()};
  const absl::StatusOr<ImageRecord> parsed = ParseImageRecord(record.payload);
  if (!parsed.ok()) return line;
  const absl::StatusOr<PictureSize> size = SizeOfPicture(parsed->picture);
  if (!size.ok()) return line;
  line.is_picture = true;
  line.id = parsed->id;
  line.labels = parsed->labels;
  line.kind = absl::StrCat(size->width, " x ", size->height,
                           absl::StartsWith(parsed->picture, "\x89PNG") ? " png" : " jpg");
  return line;
}

// Compares the index with the records that were found.
void CheckIndex(RecordInfo& info) {
  const std::string path = IndexPathOf(info.path);
  if (!MayBeIndex(path)) return;
  const absl::StatusOr<std::string> text = ReadFile(path);
  const absl::StatusOr<std::vector<RecordPlace>> places =
      text.ok() ? ParseRecordIndex(*text) : text.status();
  info.index_is_wrong = true;
  if (!places.ok()) {
    info.index = absl::StrCat(path, ": ", places.status().message());
    return;
  }
  for (const RecordPlace& place : *places) {
    if (std::ranges::binary_search(info.offsets, place.offset)) continue;
    info.index =
        absl::StrCat(path, ": no record begins at byte ", place.offset, ", of key ", place.key);
    return;
  }
  info.index_is_wrong = places->size() != info.offsets.size();
  info.index =
      absl::StrCat(path, ": ", places->size(), " of ", Counted(std::ssize(info.offsets), "record"));
}

std::string RecordTable(const RecordInfo& info) {
  std::vector<std::vector<std::string>> rows = {{"offset", "bytes", "id", "picture", "labels"}};
  for (const RecordLine& record : info.records) {
    rows.push_back({absl::StrCat(record.offset), absl::StrCat(record.size_bytes),
                    record.is_picture ? absl::StrCat(record.id) : "",
                    record.is_picture ? record.kind : "none", absl::StrJoin(record.labels, " ")});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

std::string LabelTable(const RecordInfo& info) {
  if (info.labels.empty() || info.labels.size() > kMostRows) return "";
  std::vector<std::vector<std::string>> rows = {{"label", "pictures"}};
  for (const auto& [labels, count] : info.labels) {
    rows.push_back({absl::StrJoin(labels, " "), absl::StrCat(count)});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

}  // namespace

absl::StatusOr<RecordInfo> CollectRecordInfo(const std::string& path, bool list) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  RecordInfo info;
  info.path = path;
  info.size_bytes = file->bytes().size();
  RecordReader reader(file->bytes(), {.begin = 0, .end = info.size_bytes}, /*skip_damaged=*/true);
  while (true) {
    INTERP_ASSIGN_OR_RETURN(const std::optional<Record> record, reader.Next());
    if (!record.has_value()) break;
    info.offsets.push_back(record->offset);
    RecordLine line = LineOf(*record);
    if (line.is_picture) {
      ++info.num_pictures;
      ++info.labels[line.labels];
    }
    if (list) info.records.push_back(std::move(line));
  }
  info.damage = reader.damage();
  CheckIndex(info);
  return info;
}

std::string ToText(const RecordInfo& info, bool list) {
  std::string text =
      absl::StrCat(info.path, ": ", Counted(std::ssize(info.offsets), "record"), ", ",
                   info.num_pictures, " of them pictures, ", FormatBytes(info.size_bytes),
                   "\nindex    ", info.index.empty() ? "none" : info.index, "\nlabels   ",
                   info.labels.size(), " different\ndamaged  ");
  const Damage& damage = info.damage;
  if (damage.num_ranges == 0) {
    absl::StrAppend(&text, "nothing\n");
  } else {
    absl::StrAppend(&text, Counted(damage.num_bytes, "byte"), " in ",
                    Counted(damage.num_ranges, "place"), "\n");
  }
  for (size_t i = 0; i < damage.ranges.size() && (list || i < kMostRows); ++i) {
    const ByteRange& bytes = damage.ranges[i].bytes;
    absl::StrAppend(&text, "  bytes ", bytes.begin, " to ", bytes.end, ": ",
                    damage.ranges[i].problem, "\n");
  }
  return absl::StrCat(text, LabelTable(info), list ? RecordTable(info) : "");
}

std::string ToJson(const RecordInfo& info, bool list) {
  JsonWriter json;
  json.BeginObject();
  json.Field("file", info.path);
  json.Field("bytes", info.size_bytes);
  json.Field("num_records", info.offsets.size());
  json.Field("pictures", info.num_pictures);
  json.Field("index", info.index);
  json.Field("index_is_wrong", info.index_is_wrong);
  json.Objects("labels", info.labels, [&](const auto& labels_and_count) {
    json.Values("values", labels_and_count.first);
    json.Field("count", labels_and_count.second);
  });
  json.Field("damaged_places", info.damage.num_ranges);
  json.Field("damaged_bytes", info.damage.num_bytes);
  json.Objects("damaged", info.damage.ranges, [&](const DamagedRange& range) {
    json.Field("begin", range.bytes.begin);
    json.Field("end", range.bytes.end);
    json.Field("problem", range.problem);
  });
  if (list) {
    json.ObjectLines("records", info.records, [&](const RecordLine& record) {
      json.Field("offset", record.offset);
      json.Field("bytes", record.size_bytes);
      if (record.is_picture) {
        json.Field("id", record.id);
        json.Field("picture", record.kind);
      }
    });
  }
  json.EndObject();
  return std::move(json).Take() + "\n";
}

}  // namespace interp
