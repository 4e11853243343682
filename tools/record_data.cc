#include "tools/record_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/annotate.h"
#include "core/base/near_names.h"
#include "core/io/record_file.h"
#include "core/machine/usable_cpus.h"
#include "tools/image_options.h"
#include "tools/number_flag.h"
#include "tools/option_list.h"
#include "tools/sizes.h"

namespace interp {
namespace {

std::string NamesOf(const std::vector<FeedSpec>& feeds) {
  return absl::StrJoin(feeds, " ", [](std::string* text, const FeedSpec& feed) {
    absl::StrAppend(text, feed.name);
  });
}

absl::StatusOr<size_t> FindFeed(const std::string& flag, const std::string& name,
                                const std::vector<FeedSpec>& feeds) {
  const auto found = std::ranges::find(feeds, name, &FeedSpec::name);
  if (found != feeds.end()) return static_cast<size_t>(found - feeds.begin());
  std::vector<absl::string_view> names;
  for (const FeedSpec& feed : feeds) names.push_back(feed.name);
  return NotFound(flag, ": no feed is named '", name, "'", NearNamesHint(name, names));
}

// The named feed, or the only one with batches of three-dimensional samples.
absl::StatusOr<size_t> ImageFeed(const std::string& name, const std::vector<FeedSpec>& feeds) {
  if (!name.empty()) return FindFeed("--image-feed", name, feeds);
  std::vector<size_t> fitting;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (feeds[i].shape.rank() == 4) fitting.push_back(i);
  }
  if (fitting.size() == 1) return fitting[0];
  return InvalidArgument(fitting.size(), " feeds of ", NamesOf(feeds),
                         " have four dimensions, as pictures do; name one with --image-feed");
}

// The named feed, or the only other one; -1 when there is none.
absl::StatusOr<int64_t> LabelFeed(const std::string& name, size_t image_feed,
                                  const std::vector<FeedSpec>& feeds) {
  if (!name.empty()) {
    INTERP_ASSIGN_OR_RETURN(const size_t found, FindFeed("--label-feed", name, feeds));
    if (found != image_feed) return static_cast<int64_t>(found);
    return InvalidArgument("--label-feed: '", name, "' is the feed of the pictures");
  }
  if (feeds.size() == 1) return -1;
  if (feeds.size() == 2) return static_cast<int64_t>(1 - image_feed);
  return InvalidArgument("which of ", NamesOf(feeds),
                         " are labels is not clear; name it with "
                         "--label-feed");
}

absl::StatusOr<ImagePreparation> Preparation(const std::vector<std::string>& arguments,
                                             const FeedSpec& feed) {
  ImagePreparation preparation =
      PreparationFor(feed.dtype, absl::MakeConstSpan(feed.shape.begin(), feed.shape.end()));
  bool has_aspect = false;
  for (const std::string& argument : arguments) {
    // What stands before the first comma is an option, too.
    const std::string with_head = absl::StrCat(",", argument);
    INTERP_ASSIGN_OR_RETURN(OptionList list,
                            Annotate(SplitOptions(with_head, "size=224"), "--image"));
    for (const auto& [name, value] : list.options) {
      has_aspect = has_aspect || name == "aspect";
      INTERP_RETURN_IF_ERROR(Annotate(SetAugmentOption(name, value, preparation), "--image"));
    }
  }
  INTERP_RETURN_IF_ERROR(Annotate(CheckImageOptions(preparation), "--image"));
  if (has_aspect && !preparation.area.has_value()) {
    return InvalidArgument("--image: aspect has no effect without area");
  }
  if (preparation.area.has_value() && preparation.fit != Fit::kRandom) {
    return InvalidArgument("--image: area has no effect without fit=random");
  }
  if (preparation.area.has_value() && preparation.shorter_side.has_value()) {
    return InvalidArgument("--image: area and resize: expected one of the two");
  }
  if (preparation.shorter_side.has_value() && preparation.fit == Fit::kStretch) {
    return InvalidArgument("--image: resize has no effect without fit=crop or fit=random");
  }
  return preparation;
}

std::string DamageText(const RecordFile& file) {
  const Damage& damage = file.damage();
  return absl::StrCat(file.path(), ": skipped ", Counted(damage.num_bytes, "damaged byte"), " in ",
                      Counted(damage.num_ranges, "place"),
                      "; the first: ", damage.ranges[0].problem);
}

std::string UnindexedText(const RecordFile& file) {
  const std::string ranges =
      absl::StrJoin(file.unindexed(), ", ", [](std::string* text, const ByteRange& bytes) {
        absl::StrAppend(text, bytes.begin, " to ", bytes.end);
      });
  return absl::StrCat(file.path(), ": the index names no record in bytes ", ranges,
                      ", which are left out; remove the index to train on all records");
}

}  // namespace

void AddRecordFlags(CLI::App& command, RecordFlags& flags) {
  command.add_option(
      "--image-feed", flags.image_feed,
      "feed of the pictures in .rec files; default: the only one of four dimensions");
  command.add_option("--label-feed", flags.label_feed,
                     "feed of their labels; default: the only other one");
  command
      .add_option("--image", flags.image,
                  "how pictures become samples, as in "
                  "size=224,fit=random,resize=256,mirror=random,mean=0.485/0.456/0.406; repeatable")
      ->allow_extra_args(false);
  command
      .add_option("--decode-threads", flags.decode_threads,
                  "threads that decode pictures; default: half of the CPUs")
      ->transform(Whole(1, 1024));
  command.add_flag("--skip-damaged", flags.skip_damaged,
                   "leave out what is damaged in .rec files, and count it");
}

bool IsRecordFile(const std::string& argument) { return absl::EndsWith(argument, ".rec"); }

absl::StatusOr<std::shared_ptr<ImageRecords>> OpenRecords(const std::vector<std::string>& paths,
                                                          const std::vector<FeedSpec>& feeds,
                                                          const RecordFlags& flags,
                                                          const RecordUse& use,
                                                          std::vector<std::string>& warnings) {
  ImageRecordOptions options;
  options.random = use.random;
  options.seed = use.seed;
  options.threads = flags.decode_threads > 0 ? flags.decode_threads : std::max(1, UsableCpus() / 2);
  options.skip_damaged = flags.skip_damaged;
  options.max_picture_bytes = std::min(use.max_bytes, options.max_picture_bytes);
  // The names are of the program that is trained; another one may have less to feed.
  const auto named = [&](const std::string& name) {
    const bool there = std::ranges::find(feeds, name, &FeedSpec::name) != feeds.end();
    return use.random || there ? name : "";
  };
  INTERP_ASSIGN_OR_RETURN(options.image_feed, ImageFeed(named(flags.image_feed), feeds));
  INTERP_ASSIGN_OR_RETURN(options.label_feed,
                          LabelFeed(named(flags.label_feed), options.image_feed, feeds));
  INTERP_ASSIGN_OR_RETURN(options.preparation, Preparation(flags.image, feeds[options.image_feed]));
  std::vector<RecordFile> files;
  for (const std::string& path : paths) {
    INTERP_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(path, flags.skip_damaged));
    if (file.damage().num_ranges > 0) warnings.push_back(DamageText(file));
    if (!file.unindexed().empty()) warnings.push_back(UnindexedText(file));
    files.push_back(std::move(file));
  }
  return ImageRecords::Create(std::move(files), feeds, options);
}

}  // namespace interp
