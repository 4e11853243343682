#include "passes/train/state_writer.h"

#include <charconv>

#include "core/edit_op.h"
#include "core/op_role.h"
#include "passes/make_op.h"

namespace interp {
namespace {

// The shortest text that reads back as the number; with a point, as Python writes floats.
std::string Text(double number, bool floating) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number);
  std::string text(buffer, end.ptr);
  if (floating && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

Op FillConstant(VarId var, const Var& like, double value) {
  Op op = MakeOp("fill_constant", {}, {{"Out", {var}}});
  SetAttr(op, "shape", std::vector<int64_t>(like.dims));
  SetAttr(op, "value", static_cast<float>(value));
  SetAttr(op, "str_value", Text(value, IsFloating(like.dtype)));
  SetAttr(op, "dtype", static_cast<int32_t>(like.dtype));
  return op;
}

std::string StateWriter::FreshName(absl::string_view prefix, absl::string_view ending) {
  for (int& n = counts_[std::string(prefix)];; ++n) {
    std::string name = absl::StrCat(prefix, "_", n, ending);
    if (!HasName(name)) return name;
  }
}

Var StateWriter::Declare(absl::string_view name, const Var& like) {
  Var var{.id = main_.Intern(name), .kind = like.kind, .dtype = like.dtype, .dims = like.dims};
  declarations_.Add(0, var);
  return var;
}

Var StateWriter::DeclareInBoth(const std::string& name, Var var) {
  var.persistable = true;
  var.stop_gradient = true;
  var.id = startup_.Intern(name);
  startup_.blocks[0].vars.push_back(var);
  var.id = main_.Intern(name);
  declarations_.Add(0, var);
  return var;
}

Var StateWriter::DeclareState(const std::string& name, const Var& like, double value) {
  const Var var = DeclareInBoth(name, {.dtype = like.dtype, .dims = like.dims});
  Op fill = FillConstant(startup_.Intern(name), like, value);
  SetRole(fill, kForwardRole);
  startup_.blocks[0].ops.push_back(std::move(fill));
  return var;
}

Var StateWriter::DeclareMaster(const Var& param) {
  const std::string name = FreshName(absl::StrCat(NameOf(param.id), "_fp32_master"));
  const Var master = DeclareInBoth(name, {.dtype = DType::kFloat32, .dims = param.dims});
  Op cast = MakeCastOp(startup_.Intern(NameOf(param.id)), startup_.Intern(name), param.dtype,
                       DType::kFloat32);
  SetRole(cast, kForwardRole);
  startup_.blocks[0].ops.push_back(std::move(cast));
  return master;
}

}  // namespace interp
