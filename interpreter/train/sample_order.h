// In which order training takes the samples of its data.
#pragma once

#include <cstdint>
#include <vector>

namespace interp {

struct BatchOptions {
  int64_t batch_size = 64;
  // A new order in each epoch, which `seed` and the epoch decide.
  bool shuffle = true;
  uint64_t seed = 0;
  // For data that is read faster in its order than at random places. `shuffle_block`: blocks of so
  // many neighbours are shuffled, and samples stay in their order in them. `shuffle_buffer`: a
  // sample is drawn from so many that come next. With both the blocks come first, with none all
  // samples are shuffled.
  int64_t shuffle_block = 0;
  int64_t shuffle_buffer = 0;
  // Leaves out the last batch of an epoch when it is not full.
  bool drop_last = false;
  // Part `part_index` of `num_parts` is taken: neighbours, as many as in the other parts or one
  // more.
  int64_t num_parts = 1;
  int64_t part_index = 0;
  int ahead = 4;  // batches made before they are wanted
};

// How many samples the part has.
int64_t SamplesInPart(int64_t num_samples, const BatchOptions& options);

// How many batches an epoch has.
int64_t BatchesPerEpoch(int64_t num_samples, const BatchOptions& options);

// The order of the part's samples in an epoch: their numbers among all `num_samples`. A
// permutation, so training can go on anywhere in it.
std::vector<int64_t> SampleOrder(int64_t num_samples, const BatchOptions& options, int64_t epoch);

}  // namespace interp
