// What `interp run` feeds.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

struct FedPicture;  // image_feed.h

// What reading and drawing data needs, for feeds and for training.
struct DataLimits {
  std::string max_file_memory = {};  // as "2G", for the arrays of one file; empty: kMaxArrayBytes
  uint64_t seed = 0;                 // of what is random; feeds also depend on the variable's name
};

// The bytes of `max_file_memory`.
absl::StatusOr<size_t> MaxFileBytes(const DataLimits& limits);

struct FeedFlags {
  // x.npy | name=x.npy | name=random | name=random:1x3x224x224 | file.npz
  std::vector<std::string> feeds;
  // name=0,2,5 or name=0,1,2/0,2,5: levels of the LoD separated by '/'
  std::vector<std::string> lods;
  // x=1x3x224x224, the same as the feed x=random:1x3x224x224; not among the flags of AddFeedFlags
  std::vector<std::string> shapes = {};
  DataLimits limits = {};
};

void AddFeedFlags(CLI::App& command, FeedFlags& flags);

// Reads and makes all feeds, in the order given, those of `shapes` last. Errors name the argument:
// NotFound for files and for variables the program does not have, InvalidArgument for what cannot
// be understood or is fed twice. With `pictures`, those that were fed are added to them.
absl::StatusOr<std::vector<NamedTensor>> ReadFeeds(const Program& program, const FeedFlags& flags,
                                                   std::vector<FedPicture>* pictures = nullptr);

// Whether a --feed argument says what is fed, as x.npy and x=random do, rather than that x is, as
// in x,y.
bool GivesFeed(const Program& program, const std::string& argument);

// The files that ReadFeeds reads.
std::vector<std::string> FilesOfFeeds(const Program& program, const FeedFlags& flags);

// Adds random feeds for those of the program's own that `feeds` lacks, as name=random does; a first
// dim that is unknown is 1. InvalidArgument where other dims are unknown and where they take more
// than kMaxArrayBytes in all.
absl::Status AddRandomFeeds(const Program& program, uint64_t seed, std::vector<NamedTensor>& feeds);
// The same for the variables `wanted` in place of the program's own feeds.
absl::Status AddRandomFeeds(const Program& program, const std::vector<std::string>& wanted,
                            uint64_t seed, std::vector<NamedTensor>& feeds);

// Makes one sequence of each feed that the program declares with a LoD and that has none.
void AddDefaultLods(const Program& program, std::vector<NamedTensor>& feeds);

// The items of a feed: its sequences where it has a LoD, else its first dim; 1 for rank 0.
int64_t CountItems(const Tensor& feed);

// The feed `times` times behind itself. InvalidArgument for rank 0 and for more elements than there
// can be.
absl::StatusOr<Tensor> RepeatFeed(const Tensor& feed, int64_t times);

// InvalidArgument that lists the program's own feeds which `feeds` lacks although `fetches` depend
// on them. With `all` every feed is wanted, whatever is fetched.
absl::Status CheckNoFeedMissing(const Program& program, const std::vector<NamedTensor>& feeds,
                                const std::vector<std::string>& fetches, bool all);

}  // namespace interp
