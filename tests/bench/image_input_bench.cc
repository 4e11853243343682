// Batches of a record file as fast as they come; driven by compare_image_input.py.
//
//   image_input_bench FILE.rec THREADS BATCH SIZE RESIZE EPOCHS
//
// prints the samples a second of each epoch. Random crops of SIZE x SIZE from pictures whose
// shorter side is RESIZE, mirrored at random, normalised float32.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "interpreter/train/batch_loader.h"
#include "interpreter/train/image_records.h"

namespace {

using namespace interp;  // NOLINT(google-build-using-namespace)

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return EXIT_FAILURE;
}

ImageRecordOptions Options(int threads, int size, int resize) {
  ImageRecordOptions options;
  options.label_feed = 1;
  options.threads = threads;
  ImagePreparation& preparation = options.preparation;
  preparation.width = size;
  preparation.height = size;
  preparation.fit = Fit::kRandom;
  preparation.shorter_side = resize;
  preparation.mirror = Mirror::kRandom;
  preparation.pixels.mean = {123.68, 116.28, 103.53};
  preparation.pixels.deviation = {58.395, 57.12, 57.375};
  return options;
}

absl::Status Measure(BatchLoader& loader, int epochs) {
  int64_t samples = 0;
  auto start = std::chrono::steady_clock::now();
  for (int epoch = 0; epoch < epochs;) {
    INTERP_ASSIGN_OR_RETURN(const Batch batch, loader.Next());
    samples += batch.num_samples;
    if (batch.next.epoch == epoch) continue;
    const auto end = std::chrono::steady_clock::now();
    std::printf("%.1f\n",
                static_cast<double>(std::exchange(samples, 0)) /
                    std::chrono::duration<double>(end - std::exchange(start, end)).count());
    ++epoch;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kArguments = 7;
  int numbers[kArguments] = {};
  bool usable = argc == kArguments;
  for (int i = 2; usable && i < argc; ++i) {
    usable = absl::SimpleAtoi(argv[i], &numbers[i]) && numbers[i] > 0;
  }
  if (!usable) {
    std::fprintf(stderr, "image_input_bench FILE.rec THREADS BATCH SIZE RESIZE EPOCHS\n");
    return EXIT_FAILURE;
  }
  absl::StatusOr<RecordFile> file = RecordFile::Open(argv[1]);
  if (!file.ok()) return Fail(file.status());
  std::vector<RecordFile> files;
  files.push_back(*std::move(file));
  const std::vector<FeedSpec> feeds = {
      {.name = "image", .dtype = DType::kFloat32, .shape = {-1, 3, numbers[4], numbers[4]}},
      {.name = "label", .dtype = DType::kFloat32, .shape = {-1, 1}}};
  auto records =
      ImageRecords::Create(std::move(files), feeds, Options(numbers[2], numbers[4], numbers[5]));
  if (!records.ok()) return Fail(records.status());
  BatchLoader loader(*records, {.batch_size = numbers[3]});
  const absl::Status measured = Measure(loader, numbers[6]);
  return measured.ok() ? EXIT_SUCCESS : Fail(measured);
}
