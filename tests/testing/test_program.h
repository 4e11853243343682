// TestProgram: makes programs for tests, a line an op.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/program.h"

namespace interp::testing {

//   Program program = TestProgram()
//                         .Feed("x", {2, 3})
//                         .Call("relu", {"x"}, "a")
//                         .Call("relu", {"a"}, "b")
//                         .Fetch("b")
//                         .Build();
//
// Variables that an op writes and nobody declared are declared with the builder's dtype and the
// dims of the op's first input.
class TestProgram {
 public:
  using Dims = std::vector<int64_t>;
  using Slots = std::vector<std::pair<std::string, std::vector<std::string>>>;
  using Attrs = std::vector<std::pair<std::string, AttrValue>>;

  explicit TestProgram(DType dtype = DType::kFloat32);

  // Declare a variable: fed in the order of the calls, a parameter, any other.
  TestProgram& Feed(const std::string& name, Dims dims, std::optional<DType> dtype = {});
  TestProgram& Param(const std::string& name, Dims dims, std::optional<DType> dtype = {});
  TestProgram& Declare(const std::string& name, Dims dims, std::optional<DType> dtype = {});
  TestProgram& DeclareArray(const std::string& name);
  TestProgram& DeclareSteps(const std::string& name);
  TestProgram& DeclareRows(const std::string& name, Dims dims);

  // Adds an op with all inputs in slot X and all outputs in slot Out.
  TestProgram& Call(const std::string& type, std::vector<std::string> inputs,
                    std::vector<std::string> outputs, const Attrs& attrs = {});
  TestProgram& Call(const std::string& type, std::vector<std::string> inputs,
                    const std::string& output, const Attrs& attrs = {});
  TestProgram& AddOp(const std::string& type, const Slots& inputs, const Slots& outputs,
                     const Attrs& attrs = {});
  int32_t current_block() const { return current_; }
  // Starts a block within the current one: what follows is declared and added there. Variables of
  // enclosing blocks, and of the forward block if this is its gradient, may be used.
  TestProgram& Open(int32_t forward_block = -1);
  // Ends it and adds the op that runs it. An output that nobody declared gets dims [-1].
  TestProgram& Close(const std::string& type, const Slots& inputs, const Slots& outputs,
                     Attrs attrs = {});
  // Fetched in the order of the calls. REQUIRES: in no block.
  TestProgram& Fetch(const std::string& name);

  // The program, with feed ops in front and fetch ops at the end where there are feeds and fetches.
  Program Build() const;

 private:
  Var& Add(const std::string& name, Dims dims, std::optional<DType> dtype);
  std::vector<Slot> Intern(const Slots& slots);
  // The declaration in the current block or one around it, or null.
  const Var* Find(VarId id) const;
  Block& current() { return program_.blocks[current_]; }

  const DType dtype_;
  Program program_;
  int32_t current_ = 0;                                        // the block that things are added to
  std::vector<absl::flat_hash_map<VarId, size_t>> positions_;  // by block: in its `vars`
  std::vector<VarId> feeds_;
  std::vector<VarId> fetches_;
};

// x -> op -> ... -> op -> out: `num_ops` ops of one type in a row, "x" fed, the last result
// fetched.
Program Chain(const std::string& type, int num_ops, TestProgram::Dims dims,
              DType dtype = DType::kFloat32);

}  // namespace interp::testing
