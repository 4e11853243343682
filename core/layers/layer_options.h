// What the layers of ProgramBuilder take beside their inputs. Defaults are those of
// paddle.static.nn and paddle.nn; names, too, where C++ has no shorter ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/layers/initializer.h"

namespace interp {

// A variable of the program that a ProgramBuilder builds. None: an optional input left out, or the
// result of a layer that failed.
struct Value {
  VarId id = -1;
};

// A parameter of a layer (paddle.ParamAttr). One name given twice is one parameter, which the first
// use initialises.
struct ParamOptions {
  std::string name = {};                 // empty: made of the layer's, "fc_0.w_0"
  std::optional<Initializer> init = {};  // absent: the layer's own
  bool trainable = true;
};

// Absent: the layer has no bias.
using BiasOptions = std::optional<ParamOptions>;

// Height and width; one number stands for both.
struct Size2d {
  int64_t height = 0;
  int64_t width = 0;

  Size2d(int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  Size2d(int64_t h, int64_t w) : height(h), width(w) {}
};

// `act` is an activation by its op type ("relu", "softmax", see ProgramBuilder::Activation) or
// empty.
struct FcOptions {
  int num_flatten_dims = 1;  // so many dims stay, the others are one row of the product
  ParamOptions weight = {};
  BiasOptions bias = ParamOptions{};
  absl::string_view act = {};
};

struct Conv2dOptions {
  int64_t filters = 0;  // must be given, as `size`
  Size2d size = 0;
  Size2d stride = 1;
  Size2d padding = 0;
  absl::string_view padding_algorithm = "EXPLICIT";  // or SAME or VALID, without `padding`
  Size2d dilation = 1;
  int64_t groups = 1;
  ParamOptions weight = {};  // Normal(0, sqrt(2 / fan-in)) unless it says otherwise
  BiasOptions bias = ParamOptions{};
  absl::string_view act = {};
};

struct Pool2dOptions {
  Size2d size = 0;                 // must be given unless `global`
  absl::string_view type = "max";  // or "avg"
  Size2d stride = 0;               // 0: as `size`
  Size2d padding = 0;
  absl::string_view padding_algorithm = "EXPLICIT";
  bool ceil_mode = false;
  bool exclusive = true;  // an average does not count the padding
  bool adaptive = false;  // `size` is that of the result
  bool global = false;    // one window over all of it
};

struct BatchNormOptions {
  float momentum = 0.9F;
  float epsilon = 1e-5F;
  bool use_global_stats = false;
  ParamOptions scale = {};
  ParamOptions bias = {};
  std::string moving_mean_name = {};
  std::string moving_variance_name = {};
  absl::string_view act = {};
};

struct LayerNormOptions {
  int begin_norm_axis = 1;
  float epsilon = 1e-5F;
  ParamOptions scale = {};
  ParamOptions bias = {};
  absl::string_view act = {};
};

struct EmbeddingOptions {
  int64_t rows = 0;  // must be given, as `width`
  int64_t width = 0;
  bool is_sparse = false;                   // gradients are selected rows
  std::optional<int64_t> padding_idx = {};  // gives zeros; negative: from the end
  ParamOptions weight = {};
};

struct LstmOptions {
  int64_t hidden = 0;  // must be given
  int num_layers = 1;
  bool bidirectional = false;
  float dropout = 0;           // between layers
  Value sequence_length = {};  // int32 or int64 [batch]
  Value initial_hidden = {};   // [layers * directions, batch, hidden]; none: zeros
  Value initial_cell = {};     // the same; both or none
  bool time_major = false;     // [time, batch, width] in place of [batch, time, width]
};

struct LstmResult {
  Value out;     // [batch, time, hidden * directions]
  Value hidden;  // of the last step: [layers * directions, batch, hidden]
  Value cell;
};

struct AttentionOptions {
  int heads = 1;      // divides the width
  float dropout = 0;  // of the weights
  Value mask = {};  // added to the scores before softmax: broadcasts to [batch, heads, time, time]
};

struct SoftmaxLossOptions {
  bool soft_label = false;  // labels are distributions, of the shape of the logits
  int32_t ignore_index = -100;
  int axis = -1;
};

}  // namespace interp
