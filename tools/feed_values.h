// Feeds that the command line describes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/status.h"
#include "core/tensor.h"

namespace interp {

struct FedPicture;  // image_feed.h

// What a feed is for.
struct FeedTarget {
  std::string name;
  const Var* var = nullptr;  // its declaration; null when there is none
};

// A tensor of undefined values. InvalidArgument for more dims or elements than a feed may have:
// memory is taken before anything else checks them.
absl::StatusOr<Tensor> MakeFeed(DType dtype, const std::vector<int64_t>& dims);

// What `description` says; DIMS are as in 1x3x224x224 and may be left out where the program
// declares all of them:
//   random[:DIMS]           standard normal or, of integers, 0 and 1, which index anything; from
//                           `seed` and the name
//   fill:VALUE[:DIMS]       one value
//   raw:FILE[:DTYPE:DIMS]   the bytes of a file, in the machine's order
//   image:FILE[,OPTION...]  a picture (image_feed.h)
//   anything else           the path of an .npy file
// `max_bytes` bounds what is read from a file. With `pictures`, a picture is added to them. Errors
// say what was expected.
absl::StatusOr<Tensor> ReadFeedValue(const FeedTarget& target, const std::string& description,
                                     uint64_t seed, size_t max_bytes,
                                     std::vector<FedPicture>* pictures = nullptr);

// The file that such a description reads; empty where there is none.
std::string FileOfFeed(const std::string& description);

}  // namespace interp
