#include "tests/testing/test_program.h"

#include "absl/strings/str_cat.h"
#include "core/each_argument.h"

namespace interp::testing {

TestProgram::TestProgram(DType dtype) : dtype_(dtype) {
  program_.blocks.emplace_back();
  positions_.emplace_back();
}

Var& TestProgram::Add(const std::string& name, Dims dims, std::optional<DType> dtype) {
  const VarId id = program_.Intern(name);
  std::vector<Var>& vars = current().vars;
  const auto [position, is_new] = positions_[current_].try_emplace(id, vars.size());
  if (is_new) vars.emplace_back();
  Var& var = vars[position->second];
  var.id = id;
  var.dims = std::move(dims);
  var.dtype = dtype.value_or(dtype_);
  return var;
}

TestProgram& TestProgram::Feed(const std::string& name, Dims dims, std::optional<DType> dtype) {
  feeds_.push_back(Add(name, std::move(dims), dtype).id);
  return *this;
}

TestProgram& TestProgram::Param(const std::string& name, Dims dims, std::optional<DType> dtype) {
  Var& var = Add(name, std::move(dims), dtype);
  var.persistable = true;
  var.is_parameter = true;
  return *this;
}

TestProgram& TestProgram::Declare(const std::string& name, Dims dims, std::optional<DType> dtype) {
  Add(name, std::move(dims), dtype);
  return *this;
}

TestProgram& TestProgram::DeclareArray(const std::string& name) {
  Add(name, {}, DType::kUndefined).kind = VarKind::kLodTensorArray;
  return *this;
}

TestProgram& TestProgram::DeclareRows(const std::string& name, Dims dims) {
  Add(name, std::move(dims), {}).kind = VarKind::kSelectedRows;
  return *this;
}

std::vector<Slot> TestProgram::Intern(const Slots& slots) {
  std::vector<Slot> interned;
  for (const auto& [name, args] : slots) {
    Slot& slot = interned.emplace_back();
    slot.name = name;
    for (const std::string& arg : args) slot.args.push_back(program_.Intern(arg));
  }
  return interned;
}

const Var* TestProgram::Find(VarId id) const {
  for (int32_t block = current_; block >= 0; block = program_.blocks[block].parent_idx) {
    const auto found = positions_[block].find(id);
    if (found != positions_[block].end()) return &program_.blocks[block].vars[found->second];
    const int32_t forward = program_.blocks[block].forward_block_idx;
    if (forward < 0) continue;
    const auto left = positions_[forward].find(id);
    if (left != positions_[forward].end()) return &program_.blocks[forward].vars[left->second];
  }
  return nullptr;
}

TestProgram& TestProgram::AddOp(const std::string& type, const Slots& inputs, const Slots& outputs,
                                const Attrs& attrs) {
  Op op;
  op.type = type;
  op.inputs = Intern(inputs);
  op.outputs = Intern(outputs);
  for (const auto& [name, value] : attrs) op.attrs.push_back({name, value});
  Dims dims = {-1};
  if (!op.inputs.empty() && !op.inputs[0].args.empty()) {
    if (const Var* first = Find(op.inputs[0].args[0])) dims = first->dims;
  }
  for (const VarId id : EachArgument(op.outputs)) {
    const std::string name = program_.names[id];
    if (Find(id) == nullptr && name != kEmptyVarName) Add(name, dims, std::nullopt);
  }
  current().ops.push_back(std::move(op));
  return *this;
}

TestProgram& TestProgram::DeclareSteps(const std::string& name) {
  Add(name, {}, DType::kUndefined).kind = VarKind::kStepScopes;
  return *this;
}

TestProgram& TestProgram::Open(int32_t forward_block) {
  const auto index = static_cast<int32_t>(program_.blocks.size());
  Block& block = program_.blocks.emplace_back();
  block.idx = index;
  block.parent_idx = current_;
  block.forward_block_idx = forward_block;
  block.has_forward_block_idx = forward_block >= 0;
  positions_.emplace_back();
  current_ = index;
  return *this;
}

TestProgram& TestProgram::Close(const std::string& type, const Slots& inputs, const Slots& outputs,
                                Attrs attrs) {
  attrs.emplace_back("sub_block", BlockIndex{current_});
  current_ = current().parent_idx;
  return AddOp(type, inputs, outputs, attrs);
}

TestProgram& TestProgram::Call(const std::string& type, std::vector<std::string> inputs,
                               std::vector<std::string> outputs, const Attrs& attrs) {
  Slots in;
  if (!inputs.empty()) in.emplace_back("X", std::move(inputs));
  return AddOp(type, in, {{"Out", std::move(outputs)}}, attrs);
}

TestProgram& TestProgram::Call(const std::string& type, std::vector<std::string> inputs,
                               const std::string& output, const Attrs& attrs) {
  return Call(type, std::move(inputs), std::vector<std::string>{output}, attrs);
}

TestProgram& TestProgram::Fetch(const std::string& name) {
  fetches_.push_back(program_.Intern(name));
  return *this;
}

Program TestProgram::Build() const {
  TestProgram whole = *this;
  std::vector<Op> ops;
  const auto add_list = [&](const std::string& name, VarKind kind) {
    Var& var = whole.Add(name, {}, DType::kUndefined);
    var.kind = kind;
    var.persistable = true;
    return var.id;
  };
  const auto add_op = [&](const std::string& type, VarId from, VarId to, size_t col) {
    Op& op = ops.emplace_back();
    op.type = type;
    op.inputs = {{"X", {from}}};
    op.outputs = {{"Out", {to}}};
    op.attrs = {{"col", static_cast<int32_t>(col)}};
  };
  if (!feeds_.empty()) {
    const VarId list = add_list("feed", VarKind::kFeedMinibatch);
    for (size_t i = 0; i < feeds_.size(); ++i) add_op("feed", list, feeds_[i], i);
  }
  std::vector<Op>& body = whole.program_.blocks[0].ops;
  ops.insert(ops.end(), std::make_move_iterator(body.begin()), std::make_move_iterator(body.end()));
  if (!fetches_.empty()) {
    const VarId list = add_list("fetch", VarKind::kFetchList);
    for (size_t i = 0; i < fetches_.size(); ++i) add_op("fetch", fetches_[i], list, i);
  }
  body = std::move(ops);
  return std::move(whole.program_);
}

Program Chain(const std::string& type, int num_ops, TestProgram::Dims dims, DType dtype) {
  TestProgram builder(dtype);
  builder.Feed("x", std::move(dims));
  std::string last = "x";
  for (int i = 0; i < num_ops; ++i) {
    const std::string next = absl::StrCat("v", i);
    builder.Call(type, {last}, next);
    last = next;
  }
  return builder.Fetch(last).Build();
}

}  // namespace interp::testing
