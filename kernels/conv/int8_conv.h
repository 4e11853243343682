// Int8Conv: a convolution of int8 images in the fastest way there is for a case. Products of
// matrices are convolutions of one pixel.
#pragma once

#include <memory>
#include <string>

#include "kernels/conv/conv_int8_onednn.h"
#include "kernels/conv/conv_onednn.h"

namespace interp::nn {

// Fills in all but residual and activation. `out_scale` may be null: results of float32.
void FillEpilogue(const Int8Weights& weights, const Tensor& input_scale, const Tensor* out_scale,
                  const Int8Attrs& attrs, Int8Epilogue& epilogue);

// What an instruction keeps between runs.
// Thread-safety: not for concurrent use; packed weights are shared by clones.
class Int8Conv {
 public:
  struct Case {
    const ConvProblem& problem;
    const Int8Weights& weights;
    const Int8Epilogue& epilogue;  // with scales
    bool weights_stay;             // constant, as input_is_constant says
    bool scales_stay;              // those of the epilogue
  };

  // `in` and `out` are dense channels-last images; with a residual, `out` holds it before. Out is
  // float or, with epilogue.to_int8, int8_t.
  template <typename Out>
  absl::Status Run(const KernelContext& ctx, const Case& c, const int8_t* in, Out* out);

  // As KernelState::algorithm.
  std::string algorithm() const;

 private:
  // The first of these that is there; none: plain loops.
  struct Prepared {
    std::unique_ptr<OnednnInt8Conv> fused;  // with everything that follows the sums
    std::unique_ptr<OnednnInt8Conv> sums;   // the sums alone
    std::unique_ptr<OnednnConv> wide;       // the sums in float32
    std::shared_ptr<const dnnl::memory> filter;
    std::shared_ptr<const PackedWeights> wide_filter;

    bool sums_in_float() const { return fused == nullptr && sums == nullptr; }
  };

  absl::StatusOr<Prepared*> Prepare(const KernelContext& ctx, const Case& c);
  static absl::StatusOr<std::shared_ptr<const dnnl::memory>> Filter(const KernelContext& ctx,
                                                                    const Case& c,
                                                                    const OnednnInt8Conv& conv,
                                                                    Prepared& prepared);
  static absl::Status SumWide(const KernelContext& ctx, const Case& c, Prepared& prepared,
                              const float* in, float* sums);
  template <typename Out>
  static absl::Status RunInTwo(const KernelContext& ctx, const Case& c, Prepared& prepared,
                               const int8_t* in, Out* out);

  ShapeCache<Prepared> prepared_;
  const Prepared* last_ = nullptr;
};

// What int8_conv2d and int8_fc keep between runs.
struct Int8State : KernelState {
  Int8Conv conv;
  std::shared_ptr<const Int8Weights> weights;  // constant ones, null until made
  Int8Epilogue epilogue;                       // of the last run

  std::string algorithm() const override { return conv.algorithm(); }
};

// The weights that `make`, a function of no arguments, returns as StatusOr of a shared pointer. It
// is called once for all clones where `stay` says that what it reads is constant, else every time.
template <typename Make>
absl::StatusOr<std::shared_ptr<const Int8Weights>> WeightsOf(const KernelContext& ctx, bool stay,
                                                             const Make& make) {
  if (!stay) return make();
  auto& state = ctx.state<Int8State>();
  if (state.weights == nullptr) {
    constexpr uint64_t kKey = 1;  // one form for all sizes of inputs
    INTERP_ASSIGN_OR_RETURN(state.weights, ctx.Shared<Int8Weights>(kKey, make));
  }
  return state.weights;
}

// Whether the optional input is absent or constant.
inline bool AbsentOrConstant(const KernelContext& ctx, int input) {
  return !ctx.has_input(input) || ctx.input_is_constant(input);
}

}  // namespace interp::nn
