// Convolution by a oneDNN primitive on channels-last images of float32 or bfloat16, whose sums are
// taken in float32.
#pragma once

#include <memory>
#include <string>

#include "core/packed_arrays.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/nn/onednn.h"

namespace interp::nn {

// Tells apart the cases for which an instruction prepares something; also filters may change their
// shape from run to run.
inline ShapeCache<int>::Key KeyOf(const ConvProblem& problem, int num_threads) {
  ShapeCache<int>::Key key = {problem.batch, problem.in_channels, problem.out_channels,
                              num_threads};
  for (int i = 0; i < problem.window.rank; ++i) {
    key.push_back(problem.window[i].in);
    key.push_back(problem.window[i].out);
    key.push_back(problem.window[i].kernel);
  }
  return key;
}

// Weights in the format a primitive asked for. Immutable once made.
struct PackedWeights {
  dnnl::memory filter;
  const float* bias = nullptr;                 // null: none
  bool bounded = false;                        // see ClampsBoundedInputs
  std::shared_ptr<const PackedArrays> arrays;  // what both lie in; null: the filter owns its memory
};

// Results of float32 of that size stay in an L2 cache, where a pass of their own costs little.
inline constexpr int64_t kCachedImageBytes = int64_t{1} << 20;

// Whether a clamp of the results, of which oneDNN's post-op makes numbers of NaN, is a post-op all
// the same: where inputs, filter and bias are too small for sums to overflow there is no NaN to
// lose, and to see that takes less than a pass over the results.
bool ClampsBoundedInputs(const ConvProblem& problem, const ConvEpilogue& epilogue, DType dtype);

// One primitive for one ConvProblem, one dtype and one number of threads. Images and filters are
// of that dtype, but for results that are asked for in another.
// Thread-safety: not for concurrent use.
class OnednnConv {
 public:
  // Errors: Unimplemented when oneDNN has nothing but its reference loops for the case, or fails to
  // generate its code.
  static absl::StatusOr<std::unique_ptr<OnednnConv>> Make(const ConvProblem& problem,
                                                          const ConvEpilogue& epilogue,
                                                          DType dtype) {
    return Make(problem, epilogue, dtype, dtype);
  }
  // The same with results, and a residual, of another dtype.
  static absl::StatusOr<std::unique_ptr<OnednnConv>> Make(const ConvProblem& problem,
                                                          const ConvEpilogue& epilogue, DType dtype,
                                                          DType out_dtype);
  DType dtype() const { return dtype_; }

  // Tells weight formats apart, for KernelContext::Shared.
  uint64_t weights_key() const { return FormatHash(packed_desc_); }
  // Filter and, where there is one, bias in the format of Use. `filter` is of float32, whatever the
  // dtype, in dense O,I,kernel order.
  absl::StatusOr<std::shared_ptr<const PackedArrays>> Pack(const float* filter,
                                                           const ChannelFold& fold,
                                                           int num_threads) const;
  // The same for what the instruction is given.
  absl::StatusOr<std::shared_ptr<const PackedArrays>> Pack(const KernelContext& ctx,
                                                           const ConvAttrs& attrs) const;
  // What Pack returned, of this instruction or of another that asks for the same format. DataLoss
  // for arrays of other sizes.
  absl::StatusOr<std::shared_ptr<const PackedWeights>> Use(
      std::shared_ptr<const PackedArrays> arrays) const;

  // The constant weights that the instruction is given, packed once for all that share them.
  absl::StatusOr<std::shared_ptr<const PackedWeights>> SharedWeights(const KernelContext& ctx,
                                                                     const ConvAttrs& attrs) const;

  // The same for a filter of that dtype that changes from run to run, and no bias. The result is
  // written over by the next call.
  absl::StatusOr<std::shared_ptr<const PackedWeights>> Repack(const KernelContext& ctx,
                                                              const void* filter);

  // Computes `out`, which holds the residual before when the epilogue has one. Both are dense
  // channels-last images.
  absl::Status Run(const KernelContext& ctx, const std::shared_ptr<const PackedWeights>& weights,
                   const void* in, void* out);

  // The same on one thread, with scratchpad_bytes() of the caller's memory. For primitives that
  // were made for one thread, on a thread that is to use no other.
  absl::Status Run(const std::shared_ptr<const PackedWeights>& weights, const void* in, void* out,
                   void* scratchpad);
  size_t scratchpad_bytes() const { return primitive_->scratchpad_bytes(); }

  // Name of oneDNN's implementation, for tests and benchmarks.
  const std::string& implementation() const { return implementation_; }

 private:
  // What computes with inputs that are not bounded.
  struct Unbounded {
    ConvProblem problem;
    ConvEpilogue epilogue;
    DType out_dtype;
    std::unique_ptr<OnednnConv> conv = nullptr;  // null until needed
    Tensor scratchpad = {};
  };

  static absl::StatusOr<std::unique_ptr<OnednnConv>> Make(const ConvProblem& problem,
                                                          const ConvEpilogue& epilogue, DType dtype,
                                                          DType out_dtype, bool late);
  void Bind(const dnnl::convolution_forward::primitive_desc& desc, const ConvEpilogue& epilogue,
            bool late);
  bool MayClamp(int num_threads, const PackedWeights& weights, const void* in) const;
  absl::Status RunUnbounded(const PackedWeights& weights, const void* in, void* out);
  void BindArguments(const std::shared_ptr<const PackedWeights>& weights, const void* in,
                     void* out);
  void FinishLate(int num_threads, void* out) const;

  DType dtype_ = DType::kFloat32;
  MemDesc folded_desc_;  // dense, float32
  MemDesc plain_desc_;   // the same of dtype_
  MemDesc packed_desc_;  // what the primitive wants
  bool grouped_ = false;
  std::unique_ptr<Primitive> primitive_;
  std::string implementation_;
  int src_ = 0;
  int dst_ = 0;
  int filter_ = -1;
  int bias_ = -1;
  size_t bias_bytes_ = 0;
  FusedActivation late_activation_;  // one that is no post-op, or would take longer
  ScalarAffine late_affine_;         // behind it
  int64_t in_numel_ = 0;
  int64_t out_numel_ = 0;
  std::unique_ptr<Unbounded> unbounded_;  // null unless ClampsBoundedInputs
  std::unique_ptr<FormatCopy> repack_;
  std::shared_ptr<PackedWeights> repacked_;
  std::shared_ptr<const PackedWeights> bound_;  // what filter_ and bias_ point to
};

}  // namespace interp::nn
