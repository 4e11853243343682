#include "tools/pack_pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/base/annotate.h"
#include "core/base/catching.h"
#include "core/image/decode.h"
#include "core/image/encode.h"
#include "core/image/resample.h"
#include "core/io/file.h"
#include "core/io/image_record.h"
#include "core/io/record_file.h"
#include "interpreter/train/thread_team.h"

namespace interp {
namespace {

// Pictures that a thread encodes before they are written in their order.
constexpr size_t kPicturesAThread = 16;
// What they take together, but for the last one of each thread.
constexpr size_t kMaxPendingBytes = size_t{1} << 28;

// The middle square, or all of the picture.
PictureWindow WindowOf(const Picture<uint8_t>& picture, const PackOptions& options) {
  PictureWindow window{.width = static_cast<double>(picture.width),
                       .height = static_cast<double>(picture.height)};
  if (!options.centre_crop) return window;
  const int side = std::min(picture.width, picture.height);
  return {.left = static_cast<double>((picture.width - side) / 2),
          .top = static_cast<double>((picture.height - side) / 2),
          .width = static_cast<double>(side),
          .height = static_cast<double>(side)};
}

absl::StatusOr<Picture<uint8_t>> Fit(const Picture<uint8_t>& picture, const PackOptions& options) {
  const PictureWindow window = WindowOf(picture, options);
  const double shorter = std::min(window.width, window.height);
  const double ratio = options.shorter_side > 0 ? std::min(1.0, options.shorter_side / shorter) : 1;
  const auto side = [&](double length) {
    return std::max(1, static_cast<int>(std::lround(length * ratio)));
  };
  const int width = side(window.width);
  const int height = side(window.height);
  // Of the new pixels there are floats, then bytes beside them; the old ones are still there.
  const size_t new_pixel_bytes = Picture<float>::kChannels * (sizeof(float) + 1);
  const size_t bytes =
      picture.pixels.size() + new_pixel_bytes * static_cast<size_t>(width) * height;
  if (bytes > options.max_bytes) {
    return ResourceExhausted("resizing ", picture.height, " x ", picture.width, " pixels to ",
                             height, " x ", width, " takes more than ", options.max_bytes,
                             " bytes");
  }
  return ToBytes(Resample(ViewOf(picture), window, width, height));
}

bool HasEncoding(absl::string_view file, Encoding encoding) {
  if (encoding == Encoding::kKeep) return true;
  return absl::StartsWith(file, "\x89PNG") == (encoding == Encoding::kPng);
}

// The file as it is where nothing about it changes.
absl::StatusOr<std::string> Encode(std::string file, const PackOptions& options) {
  if (options.pass_through) return file;
  INTERP_ASSIGN_OR_RETURN(Picture<uint8_t> picture, DecodePicture(file, options.max_bytes));
  const int shorter = std::min(picture.width, picture.height);
  const bool shrinks = options.shorter_side > 0 && shorter > options.shorter_side;
  const bool crops = options.centre_crop && picture.width != picture.height;
  if (!shrinks && !crops && HasEncoding(file, options.encoding)) return file;
  if (shrinks || crops) {
    INTERP_ASSIGN_OR_RETURN(picture, Fit(picture, options));
  }
  return options.encoding == Encoding::kPng ? EncodePng(picture)
                                            : EncodeJpeg(picture, options.quality);
}

absl::StatusOr<std::string> MakePayload(const ListedPicture& picture, const PackOptions& options) {
  const std::string path = (std::filesystem::path(options.root) / picture.path).string();
  INTERP_ASSIGN_OR_RETURN(std::string file, ReadPictureFile(path, options.max_bytes));
  INTERP_ASSIGN_OR_RETURN(std::string encoded, Annotate(Encode(std::move(file), options), path));
  std::string payload =
      FormatImageRecord({.labels = picture.labels, .id = picture.id, .id2 = 0, .picture = encoded});
  if (payload.size() < kMaxRecordBytes) return payload;
  return InvalidArgument(path, ": makes a record of ", payload.size(),
                         " bytes, expected fewer than ", kMaxRecordBytes);
}

// One file after another, each with its share of the pictures.
class PartWriter {
 public:
  static absl::StatusOr<PartWriter> Create(const std::vector<std::string>& paths,
                                           size_t num_pictures) {
    PartWriter parts(num_pictures);
    for (const std::string& path : paths) {
      INTERP_ASSIGN_OR_RETURN(RecordWriter writer, RecordWriter::Create(path));
      parts.writers_.push_back(std::move(writer));
    }
    return parts;
  }

  // `position` of the picture in the list.
  absl::Status Append(size_t position, uint64_t key, absl::string_view payload) {
    return writers_[position * writers_.size() / num_pictures_].Append(key, payload);
  }
  absl::Status Commit(PackReport& report) {
    for (RecordWriter& writer : writers_) INTERP_RETURN_IF_ERROR(writer.Flush());
    for (RecordWriter& writer : writers_) {
      INTERP_RETURN_IF_ERROR(writer.Commit());
      report.num_records += writer.num_records();
      report.size_bytes += writer.size_bytes();
    }
    return absl::OkStatus();
  }

 private:
  explicit PartWriter(size_t num_pictures) : num_pictures_(num_pictures) {}

  size_t num_pictures_;
  std::vector<RecordWriter> writers_;
};

// Payloads of the pictures from `begin` on, made on all threads: up to `size`, fewer where they
// become large or where `stop` says so.
std::vector<absl::StatusOr<std::string>> MakePayloads(const PictureList& list, size_t begin,
                                                      size_t size, const PackOptions& options,
                                                      ThreadTeam& team,
                                                      const std::atomic<bool>& stop) {
  std::vector<absl::StatusOr<std::string>> payloads(size, std::string());
  std::atomic<size_t> next{0};
  std::atomic<size_t> bytes{0};
  team.Run([&](int /*thread*/) {
    while (!stop && bytes < kMaxPendingBytes) {
      const size_t i = next++;
      if (i >= size) break;
      payloads[i] = Catching([&] { return MakePayload(list.pictures[begin + i], options); });
      if (payloads[i].ok()) bytes += payloads[i]->size();
    }
  });
  // Threads take pictures in their order, and end with what they took.
  payloads.resize(std::min<size_t>(next, size), std::string());
  return payloads;
}

}  // namespace

std::vector<std::string> PartPaths(const std::string& path, int parts) {
  if (parts == 1) return {path};
  std::vector<std::string> paths;
  for (int i = 0; i < parts; ++i) {
    paths.push_back(absl::StrCat(absl::StripSuffix(path, ".rec"), "_", i, ".rec"));
  }
  return paths;
}

absl::StatusOr<PackReport> PackPictures(const PictureList& list, const std::string& path,
                                        const PackOptions& options,
                                        const std::function<void(size_t)>& progress,
                                        const std::atomic<bool>& stop,
                                        const FilesOfReport& beside) {
  PackReport report{.files = PartPaths(path, options.parts)};
  const size_t count = list.pictures.size();
  INTERP_ASSIGN_OR_RETURN(PartWriter writer, PartWriter::Create(report.files, count));
  INTERP_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team,
                          ThreadTeam::Create(options.threads));
  for (size_t begin = 0; begin < count;) {
    progress(begin);
    const size_t size = std::min(kPicturesAThread * options.threads, count - begin);
    const auto payloads = MakePayloads(list, begin, size, options, *team, stop);
    if (stop) return absl::CancelledError("interrupted; nothing was written");
    for (size_t i = 0; i < payloads.size(); ++i) {
      if (payloads[i].ok()) {
        const uint64_t id = list.pictures[begin + i].id;
        INTERP_RETURN_IF_ERROR(writer.Append(begin + i, id, *payloads[i]));
        report.packed.push_back(begin + i);
      } else if (options.skip_damaged) {
        report.skipped.emplace_back(payloads[i].status().message());
      } else {
        return payloads[i].status();
      }
    }
    begin += payloads.size();
  }
  progress(count);
  std::vector<FileWriter> others;
  if (beside != nullptr) {
    INTERP_ASSIGN_OR_RETURN(others, beside(report));
  }
  for (FileWriter& file : others) INTERP_RETURN_IF_ERROR(file.Flush());
  INTERP_RETURN_IF_ERROR(writer.Commit(report));
  for (FileWriter& file : others) INTERP_RETURN_IF_ERROR(file.Commit());
  return report;
}

}  // namespace interp
