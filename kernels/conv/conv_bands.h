// A convolution with an activation that rows of our own take less time for than a post-op of
// oneDNN, or that keeps NaN in them alone (PaysAsPostOp). The image is made in bands of rows, and
// each is activated while it lies in the L2 cache. Bands of bfloat16 are made as float32 first, so
// that results are rounded once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv/conv_onednn.h"

namespace interp::nn {

// For one ConvProblem, one dtype, constant weights and one number of threads, which take bands of
// their own.
// Thread-safety: not for concurrent use.
class ConvInBands {
 public:
  // Whether bands take less time than OnednnConv with the same arguments does. A small image of
  // float32 stays in the cache as a whole, and threads want rows of their own.
  static bool Pays(const ConvProblem& problem, const ConvEpilogue& epilogue, DType dtype,
                   int num_threads);

  // Errors: as those of OnednnConv::Make, and Unimplemented where bands are too different. Calls
  // UseThreads, and leaves it at `num_threads`.
  static absl::StatusOr<std::unique_ptr<ConvInBands>> Make(const ConvProblem& problem,
                                                           const ConvEpilogue& epilogue,
                                                           DType dtype, int num_threads);

  // Packs the constant weights that the instruction is given, unless that is done.
  absl::Status TakeWeights(const KernelContext& ctx, const ConvAttrs& attrs);

  // Computes `out`, which holds the residual before when the epilogue has one, with the constant
  // weights that the instruction is given. T is the dtype; images are dense and channels-last.
  template <typename T>
  absl::Status Run(const KernelContext& ctx, const ConvAttrs& attrs, const T* in, T* out);

  // For reports.
  const std::string& implementation() const { return implementation_; }

 private:
  // Bands with as many rows, of output and input, and as much padding before them.
  struct Kind {
    int64_t out_rows = 0;
    int64_t in_rows = 0;
    int64_t pad_begin = 0;
    bool operator==(const Kind&) const = default;
  };
  struct Band {
    int64_t out_first = 0;  // row of the image
    int64_t in_first = 0;
    size_t kind = 0;
  };
  // What one thread computes the bands [first, last) of all images with. Null for kinds that it has
  // none of.
  struct Lane {
    int64_t first = 0;
    int64_t last = 0;
    std::vector<std::unique_ptr<OnednnConv>> convs = {};  // by kind
  };

  ConvInBands(const ConvProblem& problem, const ConvEpilogue& epilogue, DType dtype);
  bool Cut(int num_threads);
  absl::Status MakeLane(int64_t first, int64_t last);
  template <typename T>
  absl::Status RunBand(Lane& lane, int64_t number, const T* in, T* out, char* work);

  const ConvProblem problem_;
  const ConvEpilogue epilogue_;
  const DType dtype_;
  const int64_t in_row_;  // elements
  const int64_t out_row_;
  std::vector<Kind> kinds_;
  std::vector<Band> bands_;  // of each image
  std::vector<Lane> lanes_;
  std::vector<std::shared_ptr<const PackedWeights>> weights_;  // by kind; null until the first run
  size_t scratch_bytes_ = 0;
  size_t wide_bytes_ = 0;  // of a band of float32; 0: it is made where it belongs
  std::string implementation_;
};

}  // namespace interp::nn
