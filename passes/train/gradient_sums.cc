#include "passes/train/gradient_sums.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/op_role.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"

namespace interp {

void GradientSums::SetIncoming(VarId var) {
  // Attributes may name what became a variable here.
  if (var >= std::ssize(context_.flow.reached) || !context_.flow.reached[var]) return;
  gradients_[var] = {Part{}};
  incoming_.insert(var);
}

void GradientSums::MarkRows(VarId gradient, bool is_rows) {
  if (is_rows) {
    rows_.insert(gradient);
  } else {
    rows_.erase(gradient);
  }
}

// The last op that writes to the name; -1 for none.
int GradientSums::LastWriter(VarId gradient) const {
  const auto writes = [gradient](const Op& op) {
    const std::vector<VarId> outputs = ArgumentsOf(op.outputs);
    return std::find(outputs.begin(), outputs.end(), gradient) != outputs.end();
  };
  const auto last = std::find_if(ops_.rbegin(), ops_.rend(), writes);
  return static_cast<int>(ops_.rend() - last) - 1;
}

GradientSums::Part GradientSums::Push(Op op) {
  ops_.push_back(std::move(op));
  return {.op = static_cast<int>(ops_.size()) - 1, .slot = 0, .arg = 0};
}

void GradientSums::Forget(VarId var, bool adds) {
  if (!context_.IsTensor(block_, var)) return;
  if (Has(var) && is_source_.contains(var)) {
    AddUp(var);
    overwritten_.insert(var);
    const bool is_rows = rows_.contains(context_.GradientOf(var));
    const Part& whole = gradients_[var][0];
    if (adds) later_[var].push_back({.part = whole, .is_plain = true, .is_rows = is_rows});
  }
  gradients_.erase(var);
}

void GradientSums::AddLater(VarId source, Part part) {
  Rename(part, source);
  later_[source].push_back({.part = part});
}

// Paddle adds the gradients of all versions of a parameter. Those of later versions wait until the
// ops that hand gradients on have been made, as none of these may read the sum.
void GradientSums::AddLaterVersions() {
  for (const VarId var : sources_) {
    const auto later = later_.find(var);
    if (later == later_.end()) continue;
    std::vector<Part>& parts = gradients_[var];
    const Version& first = later->second[0];
    const bool is_whole = parts.empty() && later->second.size() == 1 && first.is_plain;
    if (is_whole && LastWriter(context_.GradientOf(var)) == first.part.op) {
      parts = {first.part};
      continue;
    }
    for (const Version& version : later->second) {
      if (version.is_plain) RenameVersion(version.part, var, version.is_rows);
    }
    if (parts.size() == 1 && !KeepsPlainName(parts[0], var)) Rename(parts[0], var);
    for (const Version& version : later->second) parts.push_back(version.part);
  }
}

// Gives the gradient of a version a name of its own, for its readers as well.
void GradientSums::RenameVersion(const Part& part, VarId var, bool is_rows) {
  const VarId plain = context_.GradientOf(var);
  Rename(part, var);
  const VarId name = NameOf(part, var);
  MarkRows(name, is_rows);
  for (auto op = ops_.begin() + part.op + 1; op != ops_.end(); ++op) {
    for (Slot& slot : op->inputs) std::replace(slot.args.begin(), slot.args.end(), plain, name);
    const std::vector<VarId> outputs = ArgumentsOf(op->outputs);
    if (std::find(outputs.begin(), outputs.end(), plain) != outputs.end()) return;
  }
}

void GradientSums::SetSources(const std::vector<VarId>& sources) {
  sources_ = sources;
  is_source_ = {sources.begin(), sources.end()};
}

void GradientSums::Finish() {
  AddLaterVersions();
  AddLastSums();
  for (const VarId source : sources_) NoteSource(source);
  for (const Op& op : ops_) Declare(op);
  std::vector<Op>& to = context_.program.blocks[gradient_block_].ops;
  for (Op& op : ops_) to.push_back(std::move(op));
}

Op GradientSums::MakeZerosOp(VarId like, VarId out) {
  Op op = MakeUnaryOp("fill_any_like", like, out);
  SetAttr(op, "value", 0.0F);
  SetAttr(op, "dtype", int32_t{-1});
  SetRole(op, kBackwardRole);
  return op;
}

void GradientSums::AddUp(VarId var) {
  std::vector<Part>& parts = gradients_[var];
  if (parts.size() < 2) return;
  parts = {Push(Sum(var, parts))};
}

Op GradientSums::Sum(VarId var, const std::vector<Part>& parts) {
  ArgIds names;
  bool sparse = true;
  for (const Part& part : parts) {
    names.push_back(NameOf(part, var));
    sparse = sparse && rows_.contains(names.back());
  }
  const VarId gradient = context_.GradientOf(var);
  MarkRows(gradient, sparse);
  Op sum = MakeOp("sum", {{"X", names}}, {{"Out", {gradient}}});
  SetRole(sum, kBackwardRole);
  return sum;
}

VarId GradientSums::NameOf(const Part& part, VarId var) {
  return part.op < 0 ? context_.GradientOf(var) : ops_[part.op].outputs[part.slot].args[part.arg];
}

bool GradientSums::MayBeRows(const Op& op, int slot) const {
  const OpDef* const def = context_.ops.Find(op.type);
  const int position = def == nullptr ? -1 : def->OutputIndex(op.outputs[slot].name);
  return position < 0 || (def->outputs[position].flags & kMayBeRows) != 0;
}

void GradientSums::Append(Op made, const absl::flat_hash_map<VarId, VarId>& wanted,
                          absl::FunctionRef<bool(VarId)> makes_rows) {
  std::erase_if(made.attrs, [](const Attr& attr) {
    return attr.name == "op_callstack" || attr.name == "op_role_var";
  });
  SetRole(made, kBackwardRole);
  const std::vector<VarId> args = ArgumentsOf(made.inputs);
  const absl::flat_hash_set<VarId> read(args.begin(), args.end());
  absl::flat_hash_map<VarId, int> given;
  for (const VarId id : ArgumentsOf(made.outputs)) ++given[id];
  ops_.push_back(std::move(made));
  const int position = static_cast<int>(ops_.size()) - 1;
  std::map<VarId, std::vector<Part>> shares;  // in one order, as names are numbered
  for (int slot = 0; slot < std::ssize(ops_[position].outputs); ++slot) {
    for (int arg = 0; arg < std::ssize(ops_[position].outputs[slot].args); ++arg) {
      const auto found = wanted.find(ops_[position].outputs[slot].args[arg]);
      if (found == wanted.end()) continue;
      const Part part{.op = position, .slot = slot, .arg = arg};
      const bool is_rows = MayBeRows(ops_[position], slot) && makes_rows(found->first);
      if (!read.contains(found->first)) {
        AddPart(found->second, part);
      } else if (given[found->first] == 1) {
        gradients_[found->second] = {part};  // it takes the gradient and gives it back
      } else {
        shares[found->second].push_back(part);
      }
      // A part that is added was renamed with the mark of those before it.
      if (is_rows || !read.contains(found->first)) {
        MarkRows(NameOf(part, found->second), is_rows);
      }
    }
  }
  // It takes the gradient and gives it back in shares.
  for (const auto& [var, parts] : shares) {
    for (const Part& part : parts) Rename(part, var);
    gradients_[var] = parts;
  }
}

void GradientSums::AddPart(VarId var, Part part) {
  std::vector<Part>& parts = gradients_[var];
  if (!parts.empty()) {
    if (parts.size() == 1 && parts[0].op >= 0 && !KeepsPlainName(parts[0], var)) {
      Rename(parts[0], var);
    }
    Rename(part, var);
  }
  parts.push_back(part);
}

// Whether the first part of a gradient may not be renamed. Paddle's while_grad finds the
// gradients it carries by their plain names, and behind the op of the part only gradients of
// arrays may have been read: each reader takes one element.
bool GradientSums::KeepsPlainName(const Part& part, VarId var) {
  const VarId plain = context_.GradientOf(var);
  const auto reads_plain = [&](const Op& op) {
    const std::vector<VarId> inputs = ArgumentsOf(op.inputs);
    return std::find(inputs.begin(), inputs.end(), plain) != inputs.end();
  };
  if (reads_plain(ops_[part.op])) return true;
  return !context_.IsTensor(block_, var) &&
         std::any_of(ops_.begin() + part.op + 1, ops_.end(), reads_plain);
}

void GradientSums::Rename(const Part& part, VarId var) {
  const VarId plain = context_.GradientOf(var);
  const int number = context_.renamed[plain]++;
  const VarId name = context_.program.Intern(
      absl::StrCat(context_.program.NameOf(plain), "@RENAME@block", gradient_block_, "@", number));
  if (rows_.contains(plain)) rows_.insert(name);
  ops_[part.op].outputs[part.slot].args[part.arg] = name;
}

// The sums of gradients that no op of the block has read, each behind the last of its parts, or of
// all ops where these write several versions.
void GradientSums::AddLastSums() {
  std::vector<std::pair<int, VarId>> due;
  for (const auto& [var, parts] : gradients_) {
    const bool is_later = later_.contains(var);
    const bool is_one = is_later && NameOf(parts[0], var) != context_.GradientOf(var);
    if (parts.size() < 2 && !is_one) continue;
    const auto by_op = [](const Part& a, const Part& b) { return a.op < b.op; };
    const int last = std::max_element(parts.begin(), parts.end(), by_op)->op;
    due.emplace_back(is_later ? static_cast<int>(ops_.size()) - 1 : last, var);
  }
  std::sort(due.begin(), due.end());
  std::vector<std::pair<int, Op>> sums;
  sums.reserve(due.size());
  for (const auto& [after, var] : due) sums.emplace_back(after, Sum(var, gradients_[var]));
  for (const auto& [after, var] : due) sum_of_.emplace(var, 0);
  std::vector<Op> old = std::move(ops_);
  ops_.clear();
  moved_.clear();
  auto next = sums.begin();
  for (int i = 0; i < std::ssize(old); ++i) {
    moved_.push_back(static_cast<int>(ops_.size()));
    ops_.push_back(std::move(old[i]));
    for (; next != sums.end() && next->first == i; ++next) {
      sum_of_[due[next - sums.begin()].second] = static_cast<int>(ops_.size());
      ops_.push_back(std::move(next->second));
    }
  }
}

// The op that gives the whole gradient says whose it is.
void GradientSums::NoteSource(VarId source) {
  const auto parts = gradients_.find(source);
  int position = -1;
  if (parts == gradients_.end() || parts->second.empty()) {
    if (overwritten_.contains(source)) position = LastWriter(context_.GradientOf(source));
  } else if (const auto sum = sum_of_.find(source); sum != sum_of_.end()) {
    position = sum->second;
  } else if (parts->second[0].op >= 0) {
    position = moved_[parts->second[0].op];
  }
  if (position < 0) return;
  given_.push_back(source);
  Op& op = ops_[position];
  std::vector<std::string> names;
  if (const Attr* attr = op.FindAttr("op_role_var"); attr != nullptr) {
    names = std::get<std::vector<std::string>>(attr->value);
  }
  names.push_back(context_.program.NameOf(source));
  names.push_back(context_.program.NameOf(context_.GradientOf(source)));
  SetAttr(op, "op_role_var", std::move(names));
}

// Gradients are declared like the variables they belong to.
void GradientSums::Declare(const Op& op) {
  for (const VarId id : ArgumentsOf(op.outputs)) {
    const std::string& name = context_.program.NameOf(id);
    const size_t suffix = absl::string_view(name).rfind(kGradientSuffix);
    if (id == context_.empty || suffix == absl::string_view::npos) continue;
    DeclareGradient(id, context_.program.Find(name.substr(0, suffix)));
  }
}

// But for what comes from around the block: a declaration would hide it there.
void GradientSums::DeclareGradient(VarId id, VarId var) {
  if (incoming_.contains(var) && id == context_.GradientOf(var)) return;
  if (context_.declarations.FindLocal(gradient_block_, id) != nullptr) return;
  const Var* like = var < 0 ? nullptr : context_.declarations.Find(block_, var);
  Var declared;
  if (like != nullptr) {
    declared.kind = like->kind;
    declared.dtype = like->dtype;
    declared.dims = like->dims;
    declared.lod_level = like->lod_level;
  }
  declared.id = id;
  if (rows_.contains(id)) declared.kind = VarKind::kSelectedRows;
  context_.declarations.Add(gradient_block_, std::move(declared));
}

}  // namespace interp
