// StateWriter: adds variables, states and ops to a training program and its startup program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/program.h"
#include "passes/declarations.h"

namespace interp {

// Everything goes to block 0. The programs are borrowed and change by this alone while it lives.
class StateWriter {
 public:
  StateWriter(Program& main, Program& startup)
      : main_(main), startup_(startup), declarations_(main) {}

  const std::string& NameOf(VarId id) const { return main_.NameOf(id); }
  // A declaration of `main`, or null. Holds until something is declared.
  const Var* Find(VarId id) { return declarations_.FindLocal(0, id); }
  bool HasName(absl::string_view name) const {
    return main_.Find(name) >= 0 || startup_.Find(name) >= 0;
  }
  // <prefix>_<n><ending> with the least n that is free in both programs.
  std::string FreshName(absl::string_view prefix, absl::string_view ending = "");

  // A variable of `main` with kind, dtype and dims of `like`.
  Var Declare(absl::string_view name, const Var& like);
  Var DeclareTemporary(absl::string_view prefix, absl::string_view ending, const Var& like) {
    return Declare(FreshName(prefix, ending), like);
  }
  // A persistable variable of both programs that `startup` fills with `value`.
  Var DeclareState(const std::string& name, const Var& like, double value);
  // The variable of float32 that starts with the values of a parameter of 16 bits.
  Var DeclareMaster(const Var& param);

  void Add(Op op) { main_.blocks[0].ops.push_back(std::move(op)); }
  // In front of all ops.
  void Prepend(Op op) { main_.blocks[0].ops.insert(main_.blocks[0].ops.begin(), std::move(op)); }

 private:
  Var DeclareInBoth(const std::string& name, Var var);

  Program& main_;
  Program& startup_;
  Declarations declarations_;
  absl::flat_hash_map<std::string, int> counts_;  // by prefix: the first number that may be free
};

// fill_constant of `var` with `value`; attributes shape, value, str_value, dtype.
Op FillConstant(VarId var, const Var& like, double value);

}  // namespace interp
