#include "passes/fuse/symbolic_shapes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "core/attr_reader.h"
#include "passes/feed_fetch.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

// Ops whose Out (Y of batch_norm) has the shape of X.
constexpr absl::string_view kShapeKeepers[] = {
    "assign",     "batch_norm", "cast", "clip", "dropout",       "gelu",  "hard_sigmoid",
    "hard_swish", "leaky_relu", "mish", "pow",  "quantize_int8", "relu",  "relu6",
    "scale",      "sigmoid",    "silu", "sqrt", "softmax",       "swish", "tanh"};

constexpr absl::string_view kConvolutions[] = {"conv2d", "depthwise_conv2d", "int8_conv2d"};

constexpr absl::string_view kElementwise[] = {"elementwise_add", "elementwise_sub",
                                              "elementwise_mul", "elementwise_div"};

// One dim of a window op: out = (in + offset) / stride + 1, rounded down.
struct WindowDim {
  int64_t offset = 0;
  int64_t stride = 1;
};

class Deriver {
 public:
  Deriver(const Program& program, const std::vector<VarUse>& uses)
      : program_(program), uses_(uses), shapes_(uses.size()) {}

  std::vector<std::optional<SymbolicShape>> Run() {
    for (size_t v = 0; v < uses_.size(); ++v) {
      const VarUse& use = uses_[v];
      if (!use.persistable || use.writes > 0 || use.var == nullptr) continue;
      // No dims may be left out ones (core/io/param_decl.h).
      if (!use.var->dims.empty()) shapes_[v] = use.var->dims;
    }
    for (const Op& op : program_.blocks[0].ops) {
      for (const Slot& slot : op.outputs) {
        for (const VarId id : slot.args) {
          if (uses_[id].writes != 1) continue;
          shapes_[id] = Derive(op, slot);
          if (!shapes_[id].has_value()) shapes_[id] = NewShape(uses_[id].var);
        }
      }
    }
    return std::move(shapes_);
  }

 private:
  SymbolicDim NewDim() { return next_--; }

  std::optional<SymbolicShape> Input(const Op& op, absl::string_view name) const {
    const Slot* slot = op.FindInput(name);
    if (slot == nullptr || slot->args.size() != 1) return std::nullopt;
    const std::optional<SymbolicShape>& shape = shapes_[slot->args[0]];
    // A declared -1 of a parameter is no name of a dim.
    const bool named = shape.has_value() && !absl::c_linear_search(*shape, -1);
    return named ? shape : std::nullopt;
  }

  std::optional<SymbolicShape> Derive(const Op& op, const Slot& out) {
    const bool main = out.name == "Out" || out.name == "Y" || out.name == "Output";
    if (!main || out.args.size() != 1) return std::nullopt;
    if (IsFeed(op)) return Fed(uses_[out.args[0]].var);
    if (absl::c_linear_search(kShapeKeepers, op.type)) return Input(op, "X");
    if (absl::c_linear_search(kElementwise, op.type)) return Elementwise(op);
    if (absl::c_linear_search(kConvolutions, op.type)) return Conv(op);
    if (op.type == "pool2d") return Pool(op);
    if (op.type == "mul") return Mul(op);
    if (op.type == "reshape2" || op.type == "reshape") return Reshape(op);
    if (op.type == "unsqueeze2" || op.type == "unsqueeze") return Unsqueeze(op);
    if (op.type == "squeeze2" || op.type == "squeeze") return Squeeze(op);
    if (op.type == "turn_row") return Turned(op);
    if (op.type == "concat") return Concat(op);
    if (op.type == "conv2d_transpose") return TransposedConv(op);
    return std::nullopt;
  }

  // Dims with names of their own, as many as declared.
  std::optional<SymbolicShape> NewShape(const Var* var) {
    if (var == nullptr) return std::nullopt;
    SymbolicShape shape(var->dims.size());
    for (SymbolicDim& dim : shape) dim = NewDim();
    return shape;
  }

  std::optional<SymbolicShape> Fed(const Var* var) {
    std::optional<SymbolicShape> shape = NewShape(var);
    for (size_t i = 0; shape.has_value() && var->need_check_feed && i < shape->size(); ++i) {
      if (var->dims[i] >= 0) (*shape)[i] = var->dims[i];
    }
    return shape;
  }

  std::optional<SymbolicShape> Reshape(const Op& op) {
    const std::optional<SymbolicShape> x = Input(op, "X");
    AttrReader attrs(op);
    SymbolicShape shape = attrs.Ints("shape");
    if (shape.empty() || !ReadsOnly(op, {"X"})) return std::nullopt;
    for (size_t i = 0; i < shape.size(); ++i) {
      const bool copied = shape[i] == 0 && x.has_value() && i < x->size();
      if (shape[i] <= 0) shape[i] = copied ? (*x)[i] : NewDim();
    }
    return shape;
  }

  // The `axes` of an op that no tensor gives them.
  static std::vector<int64_t> AxesOf(const Op& op) {
    AttrReader attrs(op);
    std::vector<int64_t> axes = attrs.Ints("axes");
    const bool known = attrs.status().ok() && OnlyInput(op).has_value();
    return known ? axes : std::vector<int64_t>();
  }

  std::optional<SymbolicShape> Unsqueeze(const Op& op) {
    std::optional<SymbolicShape> shape = Input(op, "X");
    const std::vector<int64_t> axes = AxesOf(op);
    if (!shape.has_value() || axes.empty() || axes.size() > kMaxRank) return std::nullopt;
    for (int64_t axis : axes) {
      if (axis < 0) axis += std::ssize(*shape) + 1;
      if (axis < 0 || axis > std::ssize(*shape)) return std::nullopt;
      shape->insert(shape->begin() + axis, 1);
    }
    return shape;
  }

  // Dims other than 1 stay.
  std::optional<SymbolicShape> Squeeze(const Op& op) {
    std::optional<SymbolicShape> shape = Input(op, "X");
    const std::vector<int64_t> axes = AxesOf(op);
    if (!shape.has_value() || axes.size() != 1) return std::nullopt;
    const int64_t axis = axes[0] < 0 ? axes[0] + std::ssize(*shape) : axes[0];
    if (axis < 0 || axis >= std::ssize(*shape) || (*shape)[axis] != 1) return std::nullopt;
    shape->erase(shape->begin() + axis);
    return shape;
  }

  std::optional<SymbolicShape> Turned(const Op& op) {
    std::optional<SymbolicShape> shape = Input(op, "X");
    if (!shape.has_value() || shape->size() != 4) return std::nullopt;
    std::swap((*shape)[2], (*shape)[3]);
    return shape;
  }

  std::optional<SymbolicShape> Elementwise(const Op& op) {
    std::optional<SymbolicShape> x = Input(op, "X");
    std::optional<SymbolicShape> y = Input(op, "Y");
    AttrReader attrs(op);
    const int64_t axis = attrs.Int("axis", -1);
    if (axis == -1 && x.has_value() && y.has_value() && y->size() > x->size()) std::swap(x, y);
    if (!x.has_value() || !y.has_value() || y->size() > x->size()) return std::nullopt;
    const int64_t slack = static_cast<int64_t>(x->size() - y->size());
    const int64_t begin = axis < 0 ? slack : axis;
    if (begin > slack) return std::nullopt;
    for (size_t i = 0; i < y->size(); ++i) {
      SymbolicDim& dim = (*x)[begin + i];
      dim = Broadcast(dim, (*y)[i]);
    }
    return x;
  }

  SymbolicDim Broadcast(SymbolicDim a, SymbolicDim b) {
    if (a == b || b == 1) return a;
    if (a == 1 || b > 1) return b;
    return a > 1 ? a : NewDim();
  }

  std::optional<SymbolicShape> Conv(const Op& op) {
    const std::optional<SymbolicShape> in = Input(op, "Input");
    const std::optional<SymbolicShape> filter = Input(op, "Filter");
    AttrReader attrs(op);
    const std::vector<int64_t> dilations = attrs.Ints("dilations", {1, 1});
    if (!in.has_value() || !filter.has_value() || in->size() != 4 || filter->size() != 4 ||
        dilations.size() != 2) {
      return std::nullopt;
    }
    if ((*filter)[2] < 1 || (*filter)[3] < 1) return std::nullopt;
    const std::vector<int64_t> kernel = {dilations[0] * ((*filter)[2] - 1) + 1,
                                         dilations[1] * ((*filter)[3] - 1) + 1};
    std::optional<SymbolicShape> out = Window(op, *in, kernel);
    if (out.has_value()) (*out)[ChannelAxisOf(op)] = (*filter)[0];
    return out;
  }

  // Dims of unknown size become unknown ones. Of a known one: (in - 1) * stride + the window, which
  // the paddings make smaller.
  std::optional<SymbolicShape> TransposedConv(const Op& op) {
    std::optional<SymbolicShape> shape = Input(op, "Input");
    const std::optional<SymbolicShape> filter = Input(op, "Filter");
    AttrReader attrs(op);
    const std::vector<int64_t> strides = attrs.Ints("strides", {1, 1});
    const std::vector<int64_t> pads = attrs.Ints("paddings", {0, 0});
    const std::vector<int64_t> dilations = attrs.Ints("dilations", {1, 1});
    const bool plain = attrs.Ints("output_size").empty() && attrs.Ints("output_padding").empty() &&
                       attrs.String("padding_algorithm", "EXPLICIT") == "EXPLICIT" &&
                       attrs.Int("groups", 1) == 1 && ReadsOnly(op, {"Input", "Filter"});
    if (!shape.has_value() || !filter.has_value() || shape->size() != 4 || filter->size() != 4 ||
        strides.size() != 2 || pads.size() != 2 || dilations.size() != 2 || !plain ||
        !attrs.status().ok()) {
      return std::nullopt;
    }
    const size_t first = ChannelAxisOf(op) == 1 ? 2 : 1;
    for (int i = 0; i < 2; ++i) {
      SymbolicDim& dim = (*shape)[first + i];
      const int64_t kernel = (*filter)[2 + i];
      const bool small = dim >= 1 && kernel >= 1 &&
                         IsSmall({dim, strides[i], pads[i], dilations[i]}) &&
                         IsSmall({kernel, 0, 0, 0});
      const int64_t size =
          small ? (dim - 1) * strides[i] + dilations[i] * (kernel - 1) + 1 - 2 * pads[i] : 0;
      dim = size > 0 ? size : NewDim();
    }
    (*shape)[ChannelAxisOf(op)] = (*filter)[1];
    return shape;
  }

  std::optional<SymbolicShape> Concat(const Op& op) {
    const Slot* const x = op.FindInput("X");
    AttrReader attrs(op);
    int64_t axis = attrs.Long("axis", 0);
    const bool reads_x = x != nullptr && !x->args.empty() && ReadsOnly(op, {"X"});
    if (!reads_x || !attrs.status().ok()) return std::nullopt;
    std::optional<SymbolicShape> whole;
    for (const VarId id : x->args) {
      const std::optional<SymbolicShape>& part = shapes_[id];
      if (!part.has_value()) return std::nullopt;
      if (!whole.has_value()) {
        whole = part;
        if (axis < 0) axis += std::ssize(*whole);
        if (axis < 0 || axis >= std::ssize(*whole)) return std::nullopt;
        continue;
      }
      if (part->size() != whole->size()) return std::nullopt;
      SymbolicDim& along = (*whole)[axis];
      const bool known = along >= 0 && (*part)[axis] >= 0;
      along =
          known && along + (*part)[axis] < (int64_t{1} << 31) ? along + (*part)[axis] : NewDim();
    }
    return whole;
  }

  std::optional<SymbolicShape> Pool(const Op& op) {
    std::optional<SymbolicShape> in = Input(op, "X");
    AttrReader attrs(op);
    std::vector<int64_t> kernel = attrs.Ints("ksize");
    // Tensors that override the attribute are only known in a run.
    if (op.inputs.size() > 1) return std::nullopt;
    if (!in.has_value() || in->size() != 4 || kernel.size() != 2) return std::nullopt;
    if (attrs.Bool("global_pooling", false)) kernel = {1, 1};
    if (!attrs.Bool("global_pooling", false) && !attrs.Bool("adaptive", false)) {
      return Window(op, *in, kernel);
    }
    const size_t first = ChannelAxisOf(op) == 1 ? 2 : 1;
    (*in)[first] = kernel[0];
    (*in)[first + 1] = kernel[1];
    return in;
  }

  // The spatial dims of a window op applied to `shape`; kernel sizes include dilation.
  std::optional<SymbolicShape> Window(const Op& op, SymbolicShape shape,
                                      const std::vector<int64_t>& kernel) {
    AttrReader attrs(op);
    const std::vector<int64_t> strides = attrs.Ints("strides", {1, 1});
    std::vector<int64_t> pads = attrs.Ints("paddings", {0, 0});
    const std::string algorithm = attrs.String("padding_algorithm", "EXPLICIT");
    if (pads.size() == 2) pads = {pads[0], pads[0], pads[1], pads[1]};
    const bool ceil = attrs.Bool("ceil_mode", false);
    if (strides.size() != 2 || pads.size() != 4 || !attrs.status().ok()) return std::nullopt;
    if (ceil && algorithm == "SAME") return std::nullopt;  // rounds in its own way
    const size_t first = ChannelAxisOf(op) == 1 ? 2 : 1;
    for (int i = 0; i < 2; ++i) {
      if (!IsSmall({strides[i], kernel[i], pads[2 * i], pads[2 * i + 1]}) || strides[i] < 1) {
        return std::nullopt;
      }
      const int64_t pad = algorithm == "VALID" ? 0 : pads[2 * i] + pads[2 * i + 1];
      WindowDim window{.offset = pad - kernel[i], .stride = strides[i]};
      if (ceil) window.offset += strides[i] - 1;
      if (algorithm == "SAME") window.offset = -1;  // the quotient rounded up
      shape[first + i] = Apply(window, shape[first + i]);
    }
    return shape;
  }

  // Keeps sums and products of attributes far from overflow.
  static bool IsSmall(const std::array<int64_t, 4>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](int64_t v) { return v >= 0 && v < (int64_t{1} << 31); });
  }

  SymbolicDim Apply(WindowDim window, SymbolicDim in) {
    if (window.stride == 1 && window.offset == -1) return in;
    if (in >= 0) {
      const int64_t reach = in + window.offset;
      return reach < 0 ? NewDim() : reach / window.stride + 1;
    }
    const auto [it, added] = applied_.try_emplace({in, window.offset, window.stride}, 0);
    if (added) it->second = NewDim();
    return it->second;
  }

  std::optional<SymbolicShape> Mul(const Op& op) {
    std::optional<SymbolicShape> x = Input(op, "X");
    const std::optional<SymbolicShape> y = Input(op, "Y");
    AttrReader attrs(op);
    const int64_t rows = attrs.Int("x_num_col_dims", 1);
    const bool matrix = y.has_value() && y->size() == 2 && attrs.Int("y_num_col_dims", 1) == 1;
    if (!x.has_value() || !matrix || rows < 1 || rows >= std::ssize(*x)) return std::nullopt;
    x->resize(rows);
    x->push_back((*y)[1]);
    return x;
  }

  const Program& program_;
  const std::vector<VarUse>& uses_;
  std::vector<std::optional<SymbolicShape>> shapes_;  // by VarId
  // The result of a window op on an unknown dim, by (dim, offset, stride).
  absl::flat_hash_map<std::array<int64_t, 3>, SymbolicDim> applied_;
  SymbolicDim next_ = -2;  // -1 is what declarations call an unknown dim
};

}  // namespace

std::vector<std::optional<SymbolicShape>> FindSymbolicShapes(const Program& program,
                                                             const std::vector<VarUse>& uses) {
  return Deriver(program, uses).Run();
}

}  // namespace interp
