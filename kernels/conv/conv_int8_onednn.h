// Convolution of int8 images by a oneDNN primitive, with sums in int32. Images are dense
// channels-last ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv/conv_problem.h"
#include "kernels/nn/onednn.h"
#include "kernels/product/int8_weights.h"

namespace interp::nn {

// What happens to the sums before they are stored.
struct Int8Epilogue {
  std::vector<float> scales;  // by output channel; empty: the sums are stored, and nothing else
                              // here counts
  std::vector<float> bias;    // added to the scaled sums; empty: none
  bool residual = false;      // the output's values before are added, of float32 only
  FusedActivation activation;
  bool to_int8 = false;  // results go onto `out_grid` of `out_scale`; else they are float32
  float out_scale = 0;   // may be anything that a file can say
  QuantGrid out_grid;
};

// One primitive for one ConvProblem, one epilogue and one number of threads.
// Thread-safety: not for concurrent use.
class OnednnInt8Conv {
 public:
  // Errors: Unimplemented when oneDNN has nothing but its reference loops for the case or fails to
  // generate its code, when the processor would saturate sums of two products, and for activations
  // that are no post-ops.
  static absl::StatusOr<std::unique_ptr<OnednnInt8Conv>> Make(const ConvProblem& problem,
                                                              const Int8Epilogue& epilogue);

  // Tells weight formats apart, for KernelContext::Shared.
  uint64_t weights_key() const { return FormatHash(packed_desc_); }
  // `filter` is in dense O,I,kernel order.
  absl::StatusOr<std::shared_ptr<const dnnl::memory>> Pack(const int8_t* filter) const;

  // `out` has elements of int32, float or int8, as the epilogue says.
  absl::Status Run(const KernelContext& ctx, const std::shared_ptr<const dnnl::memory>& filter,
                   const int8_t* in, void* out);

  // Name of oneDNN's implementation.
  const std::string& implementation() const { return implementation_; }

 private:
  MemDesc plain_desc_;   // of `filter` above
  MemDesc packed_desc_;  // what the primitive wants
  std::unique_ptr<Primitive> primitive_;
  std::string implementation_;
  int src_ = 0;
  int dst_ = 0;
  int filter_ = -1;
  std::vector<float> bias_;                    // in units of the sums, as oneDNN wants it
  std::shared_ptr<const dnnl::memory> bound_;  // what filter_ points to
};

}  // namespace interp::nn
