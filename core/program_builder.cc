#include "core/program_builder.h"

#include <algorithm>

#include "core/each_argument.h"
#include "core/layers/layer_helper.h"
#include "core/op_role.h"
#include "core/shape.h"

namespace interp {
namespace {

constexpr int64_t kPaddleVersion = 2006002;  // whose conventions these are

Program EmptyProgram() {
  Program program;
  program.version = kPaddleVersion;
  program.blocks.emplace_back();
  return program;
}

// Known dims are positive and few enough to count the elements.
absl::Status CheckDims(const Dims& dims, bool unknown_allowed) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("shape ", DimsText(dims), " has more than ", kMaxRank, " dims");
  }
  Shape known;
  for (const int64_t dim : dims) {
    if (dim < (unknown_allowed ? -1 : 1) || dim == 0) {
      return InvalidArgument("shape ", DimsText(dims), " has a dim that is not positive");
    }
    if (dim > 0) known.push_back(dim);
  }
  if (known.CheckedNumel().has_value()) return absl::OkStatus();
  return InvalidArgument("shape ", DimsText(dims), " is too large");
}

}  // namespace

// --- ProgramBuilder: variables and ops ---

ProgramBuilder::ProgramBuilder(BuilderOptions options)
    : options_(options), main_(EmptyProgram()), startup_(EmptyProgram()) {}

std::string ProgramBuilder::UniqueName(absl::string_view key) {
  std::string name;
  do {
    name = absl::StrCat(key, "_", name_counts_[key]++);
  } while (main_.Find(name) != -1);
  return name;
}

Value ProgramBuilder::Declare(const std::string& name, Dims dims, DType dtype) {
  if (!status_.ok()) return {};
  if (name.empty()) {
    Fail("a variable has no name");
  } else if (main_.Find(name) != -1) {
    Fail(absl::StrCat("there are two variables named '", name, "'"));
  } else if (SizeOf(dtype) == 0) {
    Fail(absl::StrCat("'", name, "' has no element type"));
  }
  if (!status_.ok()) return {};
  const VarId id = main_.Intern(name);
  main_.blocks[0].vars.push_back({.id = id, .dtype = dtype, .dims = std::move(dims)});
  return {id};
}

Value ProgramBuilder::Data(const std::string& name, Dims dims, DType dtype, int lod_level) {
  if (const absl::Status status = CheckDims(dims, /*unknown_allowed=*/true); !status.ok()) {
    Fail(absl::StrCat("'", name, "': ", status.message()));
  }
  if (lod_level < 0) Fail(absl::StrCat("'", name, "': lod_level is ", lod_level));
  const Value value = Declare(name, std::move(dims), dtype);
  if (value.id == -1) return value;
  Var& var = main_.blocks[0].vars.back();
  var.lod_level = lod_level;
  var.need_check_feed = true;
  var.stop_gradient = true;
  return value;
}

Value ProgramBuilder::Parameter(Dims dims, const ParamOptions& options, DType dtype) {
  LayerHelper layer(*this, "create_parameter", {});
  return layer.Parameter("w", std::move(dims), dtype, options, Initializer::XavierUniform());
}

Value ProgramBuilder::DeclareParameter(const std::string& name, Dims dims, DType dtype,
                                       const Initializer& init, bool trainable) {
  if (!status_.ok()) return {};
  if (const absl::Status status = CheckDims(dims, /*unknown_allowed=*/false); !status.ok()) {
    Fail(absl::StrCat("parameter '", name, "': ", status.message()));
  } else if (!IsFloating(dtype)) {
    Fail(absl::StrCat("parameter '", name, "' cannot be of ", Name(dtype)));
  } else if (const VarId known = main_.Find(name); known != -1) {
    const Var& var = main_.blocks[0].vars[known];
    if (var.is_parameter && var.dtype == dtype && var.dims == dims) return {known};
    Fail(absl::StrCat("'", name, "' is ", Name(var.dtype), DimsText(var.dims), " already, and not ",
                      Name(dtype), DimsText(dims)));
  }
  const Value value = Declare(name, std::move(dims), dtype);
  if (value.id == -1) return value;
  Var& var = main_.blocks[0].vars.back();
  var.persistable = true;
  var.is_parameter = true;
  var.stop_gradient = !trainable;
  Var initialised = var;
  initialised.id = startup_.Intern(name);
  startup_.blocks[0].ops.push_back(InitializerOp(init, initialised.id, dtype, var.dims));
  startup_.blocks[0].vars.push_back(std::move(initialised));
  return value;
}

Value ProgramBuilder::Temporary(absl::string_view layer, Dims dims, DType dtype) {
  if (!status_.ok()) return {};
  if (const absl::Status status = CheckDims(dims, /*unknown_allowed=*/true); !status.ok()) {
    Fail(absl::StrCat(layer, ": the result: ", status.message()));
  }
  return Declare(UniqueName(absl::StrCat(layer, ".tmp")), std::move(dims), dtype);
}

std::vector<Slot> ProgramBuilder::SlotsOf(const Arguments& arguments) {
  std::vector<Slot> slots;
  for (const auto& [name, values] : arguments) {
    if (!Usable(values)) return {};
    if (values.empty()) continue;
    Slot& slot = slots.emplace_back(Slot{.name = name, .args = {}});
    for (const Value value : values) slot.args.push_back(value.id);
  }
  return slots;
}

void ProgramBuilder::AddOp(absl::string_view type, const Arguments& inputs,
                           const Arguments& outputs, std::vector<Attr> attrs) {
  if (type.empty()) Fail("an op has no type");
  Op op;
  op.type = std::string(type);
  op.inputs = SlotsOf(inputs);
  op.outputs = SlotsOf(outputs);
  if (!status_.ok()) return;
  op.attrs = std::move(attrs);
  SetRole(op, kForwardRole);
  std::vector<Var>& vars = main_.blocks[0].vars;
  const bool constant = std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Slot& slot) {
    return std::all_of(slot.args.begin(), slot.args.end(),
                       [&](VarId id) { return vars[id].stop_gradient; });
  });
  for (const VarId id : EachArgument(op.outputs)) {
    vars[id].stop_gradient |= constant && !vars[id].is_parameter;
  }
  main_.blocks[0].ops.push_back(std::move(op));
}

bool ProgramBuilder::Usable(const std::vector<Value>& values) {
  if (!status_.ok()) return false;
  for (const Value value : values) {
    if (value.id >= 0 && value.id < std::ssize(main_.names)) continue;
    Fail("an argument is no value of this builder");
    return false;
  }
  return true;
}

const Var& ProgramBuilder::Get(Value value) const {
  static const Var kNone;
  const bool known = value.id >= 0 && value.id < std::ssize(main_.names);
  return known ? main_.blocks[0].vars[value.id] : kNone;
}

const std::string& ProgramBuilder::NameOf(Value value) const {
  static const std::string kNone;
  const bool known = value.id >= 0 && value.id < std::ssize(main_.names);
  return known ? main_.NameOf(value.id) : kNone;
}

void ProgramBuilder::Fail(absl::string_view message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

absl::StatusOr<BuiltProgram> ProgramBuilder::Finish() {
  INTERP_RETURN_IF_ERROR(status_);
  status_ = absl::FailedPreconditionError("the program is finished");
  return BuiltProgram{.main = std::move(main_), .startup = std::move(startup_)};
}

// --- LayerHelper ---

LayerHelper::LayerHelper(ProgramBuilder& net, absl::string_view kind,
                         const std::vector<Value>& inputs)
    : net_(net), name_(net.UniqueName(kind)) {
  if (ok() && !net_.Usable(inputs)) {
    net_.status_ = Annotate(net_.status_, name_);
  }
}

Value LayerHelper::Parameter(absl::string_view suffix, Dims dims, DType dtype,
                             const ParamOptions& options, const Initializer& otherwise) {
  if (!ok()) return {};
  const std::string name =
      options.name.empty() ? net_.UniqueName(absl::StrCat(name_, ".", suffix)) : options.name;
  const Value value = net_.DeclareParameter(name, std::move(dims), dtype,
                                            options.init.value_or(otherwise), options.trainable);
  if (!ok()) net_.status_ = Annotate(net_.status_, name_);
  return value;
}

Value LayerHelper::Constant(Dims dims, DType dtype) {
  const Value value = Temporary(std::move(dims), dtype);
  if (value.id != -1) net_.main_.blocks[0].vars[value.id].stop_gradient = true;
  return value;
}

Value LayerHelper::ShapeRecord(const Var& input) {
  if (!Check(input.dims.size() < kMaxRank, "the input has too many dims")) return {};
  Dims dims = {0};
  dims.insert(dims.end(), input.dims.begin(), input.dims.end());
  return net_.Declare(net_.UniqueName(absl::StrCat(name_, ".tmp")), std::move(dims), input.dtype);
}

Value LayerHelper::AddBias(Value x, int axis, const BiasOptions& bias) {
  if (!bias.has_value() || !ok()) return x;
  const Var declared = net_.Get(x);
  const size_t dim = axis < 0 ? declared.dims.size() + axis : axis;
  const Value b =
      Parameter("b", {declared.dims[dim]}, declared.dtype, *bias, Initializer::Constant(0));
  const Value out = Temporary(declared.dims, declared.dtype);
  net_.AddOp("elementwise_add", {{"X", {x}}, {"Y", {b}}}, {{"Out", {out}}}, {{"axis", axis}});
  return out;
}

Value LayerHelper::Fail(absl::string_view message) {
  net_.Fail(absl::StrCat(name_, ": ", message));
  return {};
}

bool LayerHelper::Check(bool condition, absl::string_view message) {
  if (!condition) Fail(message);
  return ok();
}

}  // namespace interp
