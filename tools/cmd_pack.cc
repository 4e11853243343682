// interp pack: pictures into record files.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/annotate.h"
#include "core/io/file.h"
#include "core/io/image_record.h"
#include "core/io/record_index.h"
#include "core/machine/usable_cpus.h"
#include "interpreter/train/sample_order.h"
#include "tools/commands.h"
#include "tools/flag_effects.h"
#include "tools/interruption.h"
#include "tools/number_flag.h"
#include "tools/outputs.h"
#include "tools/pack_pictures.h"
#include "tools/progress.h"
#include "tools/ranks.h"
#include "tools/sizes.h"
#include "tools/table.h"

namespace interp {
namespace {

struct PackFlags {
  std::string source;
  std::string output;
  std::string encoding = "keep";
  std::string list;
  std::string labels;
  bool shuffle = false;
  uint64_t seed = 0;
  PackOptions options;
};

absl::Status CheckFlags(const PackFlags& flags, const CLI::App& command) {
  if (!absl::EndsWith(flags.output, ".rec")) {
    return InvalidArgument("--output ", flags.output, ": expected a name that ends in .rec");
  }
  const PackOptions& options = flags.options;
  INTERP_RETURN_IF_ERROR(CheckEffect(command, {"--seed"}, flags.shuffle, "without --shuffle"));
  INTERP_RETURN_IF_ERROR(CheckEffect(command,
                                     {"--resize", "--center-crop", "--encoding", "--quality"},
                                     !options.pass_through, "with --pass-through"));
  const bool changes = options.shorter_side > 0 || options.centre_crop;
  return CheckEffect(command, {"--quality"},
                     flags.encoding == "jpg" || (flags.encoding == "keep" && changes),
                     "where no picture becomes a JPEG; --encoding jpg does that");
}

// No result takes the place of what is read. Files are compared by what they are and not by name,
// as lists are long.
absl::Status CheckKept(const std::vector<NamedFile>& outputs, const PackFlags& flags,
                       const PictureList& list) {
  using Identity = std::pair<dev_t, ino_t>;
  const auto identity = [](const std::string& path) -> std::optional<Identity> {
    struct stat file {};
    if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
    return Identity(file.st_dev, file.st_ino);
  };
  std::map<Identity, std::string> replaced;
  for (const NamedFile& output : outputs) {
    if (const auto there = identity(output.path)) replaced.emplace(*there, output.path);
  }
  if (replaced.empty()) return absl::OkStatus();
  const auto check = [&](const std::string& read) -> absl::Status {
    const auto there = identity(read);
    const auto found = there.has_value() ? replaced.find(*there) : replaced.end();
    if (found == replaced.end()) return absl::OkStatus();
    return InvalidArgument("'", found->second, "' is to be written, and '", read,
                           "', which is read, is the same file");
  };
  INTERP_RETURN_IF_ERROR(check(flags.source));
  for (const ListedPicture& picture : list.pictures) {
    INTERP_RETURN_IF_ERROR(check(std::filesystem::path(flags.options.root) / picture.path));
  }
  return absl::OkStatus();
}

// What cannot be written is told before the work.
absl::Status CheckOutputs(const PackFlags& flags, const PictureList& list) {
  std::vector<NamedFile> outputs;
  for (const std::string& path : PartPaths(flags.output, flags.options.parts)) {
    outputs.push_back({"the records", path});
    outputs.push_back({"their index", IndexPathOf(path)});
  }
  if (!flags.list.empty()) outputs.push_back({"--write-list", flags.list});
  if (!flags.labels.empty()) outputs.push_back({"--write-labels", flags.labels});
  INTERP_RETURN_IF_ERROR(CheckDistinct(outputs));
  for (const NamedFile& output : outputs) INTERP_RETURN_IF_ERROR(CheckWritable(output.path));
  return CheckKept(outputs, flags, list);
}

absl::Status CheckNames(const PackFlags& flags, const PictureList& list) {
  if (!flags.labels.empty() && list.label_names.empty()) {
    return InvalidArgument("--write-labels has no effect with a list: its labels have no names");
  }
  const bool named = !flags.list.empty() || !flags.labels.empty();
  return named ? CheckListable(list) : absl::OkStatus();
}

// The list, in the order in which its pictures are packed.
absl::StatusOr<PictureList> ReadList(PackFlags& flags) {
  PictureList list;
  std::error_code ignored;
  if (std::filesystem::is_directory(flags.source, ignored)) {
    if (flags.options.root.empty()) flags.options.root = flags.source;
    INTERP_ASSIGN_OR_RETURN(list, ListFolder(flags.source));
  } else {
    if (flags.options.root.empty()) {
      flags.options.root = std::filesystem::path(flags.source).parent_path().string();
      if (flags.options.root.empty()) flags.options.root = ".";
    }
    INTERP_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.source));
    INTERP_ASSIGN_OR_RETURN(list, Annotate(ParsePictureList(text), flags.source));
  }
  if (list.pictures.empty()) return InvalidArgument(flags.source, ": there are no pictures");
  if (!flags.shuffle) return list;
  std::vector<ListedPicture> shuffled;
  const BatchOptions order{.seed = flags.seed};
  for (const int64_t i : SampleOrder(std::ssize(list.pictures), order, /*epoch=*/0)) {
    shuffled.push_back(std::move(list.pictures[i]));
  }
  list.pictures = std::move(shuffled);
  return list;
}

// What was packed of a list.
PictureList Selected(const PictureList& list, const std::vector<size_t>& positions) {
  PictureList selected{.pictures = {}, .label_names = list.label_names};
  for (const size_t i : positions) selected.pictures.push_back(list.pictures[i]);
  return selected;
}

// The files of --write-list and --write-labels, not yet committed.
absl::StatusOr<std::vector<FileWriter>> WriteLists(const PackFlags& flags,
                                                   const PictureList& packed) {
  std::string names;
  for (const std::string& name : packed.label_names) absl::StrAppend(&names, name, "\n");
  std::vector<FileWriter> files;
  for (const auto& [path, text] :
       {std::pair(&flags.list, FormatPictureList(packed)), {&flags.labels, names}}) {
    if (path->empty()) continue;
    INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(*path));
    INTERP_RETURN_IF_ERROR(file.Append(text));
    files.push_back(std::move(file));
  }
  return files;
}

// How often each label occurs, where there are few.
std::string LabelTable(const PictureList& list) {
  constexpr size_t kMostRows = 24;
  std::map<std::vector<float>, int64_t, LabelsLess> counts;
  for (const ListedPicture& picture : list.pictures) {
    ++counts[picture.labels];
    if (counts.size() > kMostRows) return "";
  }
  std::vector<std::vector<std::string>> rows = {{"label", "pictures", ""}};
  for (const auto& [labels, count] : counts) {
    const bool named = labels.size() == 1 && labels[0] >= 0 &&
                       labels[0] < static_cast<float>(list.label_names.size());
    rows.push_back({absl::StrJoin(labels, " "), absl::StrCat(count),
                    named ? list.label_names[static_cast<size_t>(labels[0])] : ""});
  }
  return absl::StrCat("\n", FormatTable(rows));
}

std::string ToText(const PackReport& report, const PictureList& list) {
  std::string text = absl::StrCat(absl::StrJoin(report.files, " "), ": ", report.num_records,
                                  " records, ", FormatBytes(report.size_bytes), "\n");
  if (!report.skipped.empty()) {
    absl::StrAppend(&text, "skipped ", report.skipped.size(), " damaged pictures\n");
  }
  return absl::StrCat(text, LabelTable(list));
}

ExitCode CodeOf(const absl::Status& status) {
  if (absl::IsCancelled(status)) return ExitCode::kInterrupted;
  const bool written = absl::StartsWith(status.message(), "cannot write") ||
                       absl::StartsWith(status.message(), "cannot create") ||
                       absl::StartsWith(status.message(), "cannot replace");
  return written ? ExitCode::kRunFailed : ExitCode::kUsage;
}

absl::StatusOr<ExitCode> Pack(PackFlags& flags, const CLI::App& command, ExitCode& blame) {
  INTERP_RETURN_IF_ERROR(CheckStartedAlone("pack"));
  INTERP_RETURN_IF_ERROR(CheckFlags(flags, command));
  const std::vector<std::string> encodings = {"keep", "jpg", "png"};
  flags.options.encoding =
      static_cast<Encoding>(std::ranges::find(encodings, flags.encoding) - encodings.begin());
  if (flags.options.threads == 0) flags.options.threads = UsableCpus();
  INTERP_ASSIGN_OR_RETURN(const PictureList list, ReadList(flags));
  INTERP_RETURN_IF_ERROR(CheckNames(flags, list));
  if (flags.options.parts > std::ssize(list.pictures)) {
    return InvalidArgument("--parts ", flags.options.parts, ": expected at most ",
                           list.pictures.size(), ", a picture or more for each part");
  }
  const absl::Status writable = CheckOutputs(flags, list);
  if (!absl::IsInvalidArgument(writable)) blame = ExitCode::kRunFailed;
  INTERP_RETURN_IF_ERROR(writable);
  std::atomic<bool> stop{false};
  absl::StatusOr<PackReport> report;
  {
    const Interruption interruption([&] { stop = true; });
    ProgressLine progress;
    const auto show = [&, total = list.pictures.size()](size_t done) {
      if (!progress.IsDue(/*is_last=*/done >= total)) return;
      progress.Show(absl::StrFormat("%s %d/%d pictures, %.0f/s", ProgressBar(done, total), done,
                                    total, done / progress.seconds()));
    };
    const auto lists = [&](const PackReport& packed) {
      return WriteLists(flags, Selected(list, packed.packed));
    };
    report = PackPictures(list, flags.output, flags.options, show, stop, lists);
  }
  blame = CodeOf(report.status());
  INTERP_RETURN_IF_ERROR(report.status());
  for (const std::string& problem : report->skipped) {
    Warn(problem);
  }
  return Show(ToText(*report, Selected(list, report->packed)));
}

// What becomes of each picture.
void AddPictureFlags(CLI::App& command, PackOptions& options, std::string& encoding) {
  command
      .add_option("--resize", options.shorter_side,
                  "shrink pictures until the shorter side has so many pixels")
      ->transform(Whole(1, 1 << 15));
  command.add_flag("--center-crop", options.centre_crop, "keep the middle square");
  command
      .add_option("--encoding", encoding,
                  "how pictures are stored; keep: as they are, and as JPEG where they change")
      ->check(CLI::IsMember({"keep", "jpg", "png"}))
      ->capture_default_str();
  command.add_option("--quality", options.quality, "of what is encoded as JPEG")
      ->transform(Whole(1, 100))
      ->capture_default_str();
  command.add_flag("--pass-through", options.pass_through, "store the files without decoding them");
  command.add_flag("--skip-damaged", options.skip_damaged,
                   "leave out pictures that cannot be read, and tell them");
}

}  // namespace

void AddPackCommand(CLI::App& app, ExitCode& exit_code) {
  auto flags = std::make_shared<PackFlags>();
  CLI::App& command = *app.add_subcommand("pack", "pack pictures into a record file");
  command
      .add_option("SOURCE", flags->source,
                  "folder of JPEG and PNG files, labelled by the folders in it, or a list of "
                  "MXNet's im2rec (number, labels, path)")
      ->required();
  command.add_option("-o,--output", flags->output, "file.rec to write, with file.idx beside it")
      ->required();
  command.add_option("--root", flags->options.root,
                     "folder that the paths are in; default: that of SOURCE");
  AddPictureFlags(command, flags->options, flags->encoding);
  command.add_flag("--shuffle", flags->shuffle, "pack in a random order");
  command.add_option("--seed", flags->seed, "seed of --shuffle")
      ->transform(Whole(0, kMaxSeed))
      ->capture_default_str();
  command
      .add_option("--parts", flags->options.parts,
                  "spread over so many files: file_0.rec, file_1.rec, ...")
      ->transform(Whole(1, 1024))
      ->capture_default_str();
  command
      .add_option("--threads", flags->options.threads,
                  "threads that read and encode; default: all CPUs")
      ->transform(Whole(1, 1024));
  command.add_option("--write-list", flags->list, "write what is packed, as im2rec's file.lst");
  command.add_option("--write-labels", flags->labels,
                     "write the names of the folders, one a line, for `interp run --labels`");
  command.callback([flags, &command, &exit_code] {
    exit_code = RunCommand([&](ExitCode& blame) { return Pack(*flags, command, blame); });
  });
}

}  // namespace interp
