// Gradients of what a tape has recorded.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/array/array_runtime.h"
#include "core/array/filled.h"
#include "core/array/sum_arrays.h"
#include "core/array/tape.h"
#include "core/differentiable.h"
#include "core/each_argument.h"
#include "core/gradient.h"

namespace interp {
namespace {

// An array like another, of one value.
absl::StatusOr<Array> FilledLike(const Array& like, double value) {
  return Filled(like.runtime(), like.shape(), like.dtype(), value, like.place());
}

bool IsSparse(const std::vector<Attr>& attrs) {
  for (const Attr& attr : attrs) {
    const bool* sparse = std::get_if<bool>(&attr.value);
    if (attr.name == "is_sparse" && sparse != nullptr) return *sparse;
  }
  return false;
}

}  // namespace

// One pass from the last step to the first.
class TapeBackward {
 public:
  TapeBackward(const Tape& tape, ArrayRuntime& runtime) : tape_(tape), runtime_(runtime) {}

  absl::StatusOr<std::vector<Array>> Run(const Array& loss, absl::Span<const Array> sources) {
    for (const Array& source : sources) AddDependent(source);
    for (const Tape::Step& step : tape_.steps_) FindDependents(step);
    INTERP_RETURN_IF_ERROR(CheckSources(sources));
    INTERP_ASSIGN_OR_RETURN(gradients_[ArrayAccess::id(loss)], FilledLike(loss, 1));
    for (auto step = tape_.steps_.rbegin(); step != tape_.steps_.rend(); ++step) {
      if (!IsOnTheWay(*step)) continue;
      INTERP_RETURN_IF_ERROR(Annotate(Differentiate(*step), step->def->type));
    }
    std::vector<Array> found;
    for (const Array& source : sources) {
      const auto at = gradients_.find(ArrayAccess::id(source));
      found.push_back(at == gradients_.end() || !depends_on_source(loss) ? Array() : at->second);
    }
    return found;
  }

 private:
  // The names of a step's arrays in the program that its gradient is made with.
  struct Names {
    Program program;
    Op op;
    absl::flat_hash_map<VarId, Array> arrays;
    absl::flat_hash_set<VarId> given;  // by ops of the gradient
  };

  // Memory of a chunk, in bytes.
  struct Region {
    explicit Region(const Array& array)
        : id(ArrayAccess::id(array)),
          begin(ArrayAccess::offset_bytes(array)),
          end(begin + array.size_bytes()) {}
    bool Overlaps(const Region& other) const { return begin < other.end && other.begin < end; }

    uint64_t id;  // of the array
    size_t begin;
    size_t end;
  };

  void AddDependent(const Array& array) {
    if (!depends_.insert(ArrayAccess::id(array)).second) return;
    regions_[ArrayAccess::chunk(array).get()].emplace_back(array);
  }

  // The tape knows views by what made them. One of before it would see what a dependent array holds
  // and hand no gradient on to it.
  absl::Status CheckAlias(const Array& array) const {
    const Region region(array);
    if (made_.contains(region.id) || depends_.contains(region.id)) return absl::OkStatus();
    const auto at = regions_.find(ArrayAccess::chunk(array).get());
    if (at == regions_.end()) return absl::OkStatus();
    for (const Region& dependent : at->second) {
      if (dependent.id == region.id || !dependent.Overlaps(region)) continue;
      return InvalidArgument("uses an array ", DescribeArray(array),
                             " that shares memory with one that gradients pass; make the view "
                             "while the tape records");
    }
    return absl::OkStatus();
  }

  absl::Status CheckSources(absl::Span<const Array> sources) const {
    for (const Array& a : sources) {
      for (const Array& b : sources) {
        const bool apart = a.SameAs(b) || !a.SharesMemoryWith(b) || !Region(a).Overlaps(Region(b));
        if (apart || made_.contains(ArrayAccess::id(a)) || made_.contains(ArrayAccess::id(b))) {
          continue;
        }
        return InvalidArgument("the sources ", DescribeArray(a), " and ", DescribeArray(b),
                               " share memory; ask for the gradient of one of them");
      }
    }
    return absl::OkStatus();
  }

  bool depends_on_source(const Array& array) const {
    const uint64_t id = ArrayAccess::id(array);
    return depends_.contains(id) || aliases_.contains(id);
  }

  template <typename Visit>
  static void ForEach(const ArraySlots& slots, const Visit& visit) {
    for (const auto& [slot, arrays] : slots) {
      for (const Array& array : arrays) {
        if (array) visit(array);
      }
    }
  }

  void FindDependents(const Tape::Step& step) {
    bool depends = false;
    ForEach(step.inputs, [&](const Array& a) {
      if (!CheckAlias(a).ok()) aliases_.insert(ArrayAccess::id(a));
      depends = depends || depends_on_source(a);
    });
    ForEach(step.outputs, [&](const Array& a) {
      made_.insert(ArrayAccess::id(a));
      if (depends && !step.def->gradient.none && IsDifferentiable(a.dtype())) AddDependent(a);
    });
  }

  bool IsOnTheWay(const Tape::Step& step) const {
    bool given = false;
    bool wanted = false;
    ForEach(step.outputs, [&](const Array& a) {
      given = given || (gradients_.contains(ArrayAccess::id(a)) && depends_on_source(a));
    });
    ForEach(step.inputs, [&](const Array& a) { wanted = wanted || depends_on_source(a); });
    return given && wanted && !step.def->gradient.none;
  }

  static void NameAll(const ArraySlots& slots, std::vector<Slot>& named, Names& names) {
    for (const auto& [slot, arrays] : slots) {
      Slot& added = named.emplace_back();
      added.name = std::string(slot);
      for (const Array& array : arrays) {
        const std::string name =
            array ? absl::StrCat("v", ArrayAccess::id(array)) : std::string(kEmptyVarName);
        const VarId id = names.program.Intern(name);
        added.args.push_back(id);
        if (!array || !names.arrays.emplace(id, array).second) continue;
        Var var;
        var.id = id;
        var.dtype = array.dtype();
        var.dims.assign(array.shape().begin(), array.shape().end());
        names.program.blocks[0].vars.push_back(std::move(var));
      }
    }
  }

  // Beside ops that write, a tape that records, copies, pulls from stores and runs of cores do.
  absl::Status CheckUnchanged(const Tape::Step& step) const {
    absl::Status status;
    const auto check = [&](const Array& array) {
      const auto used = tape_.used_.find(ArrayAccess::chunk(array).get());
      if (used->second == ArrayAccess::num_writes(array)) return;
      status = InvalidArgument("has used an array ", DescribeArray(array),
                               " that was written to since: its gradient would see other values");
    };
    ForEach(step.inputs, check);
    ForEach(step.outputs, check);
    return status;
  }

  absl::Status Differentiate(const Tape::Step& step) {
    if (!step.def->gradient.exists()) return Unimplemented("has no gradient");
    INTERP_RETURN_IF_ERROR(CheckUnchanged(step));
    absl::Status alias;
    ForEach(step.inputs, [&](const Array& a) { alias.Update(CheckAlias(a)); });
    INTERP_RETURN_IF_ERROR(alias);
    Names names;
    names.program.blocks.emplace_back();
    names.op.type = std::string(step.def->type);
    names.op.attrs = step.attrs;
    NameAll(step.inputs, names.op.inputs, names);
    NameAll(step.outputs, names.op.outputs, names);
    INTERP_RETURN_IF_ERROR(GiveGradients(step, names));
    GradientMaker maker({.program = &names.program, .op = &names.op, .wants = [&](VarId id) {
                           const auto at = names.arrays.find(id);
                           return at != names.arrays.end() &&
                                  IsDifferentiable(at->second.dtype()) &&
                                  depends_on_source(at->second);
                         }});
    if (step.def->gradient.make != nullptr) {
      INTERP_RETURN_IF_ERROR(step.def->gradient.make(maker));
    } else {
      maker.AddByTable(step.def->gradient);
    }
    for (const Op& op : maker.Take()) INTERP_RETURN_IF_ERROR(RunOp(op, step, names));
    return TakeGradients(step, names);
  }

  // Those of the outputs, zeros where the loss does not depend on one.
  absl::Status GiveGradients(const Tape::Step& step, Names& names) {
    absl::Status status;
    ForEach(step.outputs, [&](const Array& output) {
      if (!IsDifferentiable(output.dtype()) || !status.ok()) return;
      const uint64_t id = ArrayAccess::id(output);
      Array& gradient = names.arrays[names.program.Intern(GradientName(absl::StrCat("v", id)))];
      if (const auto at = gradients_.find(id); at != gradients_.end()) {
        gradient = at->second;
        return;
      }
      absl::StatusOr<Array> zeros = FilledLike(output, 0);
      status.Update(zeros.status());
      if (zeros.ok()) gradient = *std::move(zeros);
    });
    return status;
  }

  absl::Status RunOp(const Op& op, const Tape::Step& step, Names& names) {
    const OpDef* def = runtime_.ops().Find(op.type);
    if (def == nullptr) return NotFound("no op named '", op.type, "' is registered");
    ArraySlots inputs;
    for (const Slot& slot : op.inputs) {
      if (def->InputIndex(slot.name) < 0) continue;
      auto& [name, arrays] = inputs.emplace_back(slot.name, std::vector<Array>());
      for (const VarId id : slot.args) {
        const auto at = names.arrays.find(id);
        arrays.push_back(at == names.arrays.end() ? Array() : at->second);
      }
    }
    InvokeOptions options{.place = step.outputs.front().second.front().place()};
    for (const Slot& slot : op.outputs) {
      const int index = def->OutputIndex(slot.name);
      if (index < 0) continue;
      options.outputs.emplace_back(slot.name, static_cast<int>(slot.args.size()));
      if (IsSparse(step.attrs) && (def->outputs[index].flags & kMayBeRows) != 0) {
        INTERP_RETURN_IF_ERROR(AddRows(slot, names, options));
      }
    }
    INTERP_ASSIGN_OR_RETURN(const ArraySlots outputs,
                            Invoke(runtime_, *def, inputs, op.attrs, options));
    for (const auto& [slot, arrays] : outputs) {
      const Slot& named = *op.FindOutput(slot);
      for (size_t i = 0; i < arrays.size(); ++i) {
        if (names.program.NameOf(named.args[i]) == kEmptyVarName) continue;
        INTERP_RETURN_IF_ERROR(Give(op, named.args[i], arrays[i], names));
      }
    }
    return absl::OkStatus();
  }

  // An array that is an input several times has several shares of one gradient.
  absl::Status Give(const Op& op, VarId name, const Array& array, Names& names) {
    const bool reads = HasArgument(op.inputs, name);
    Array& value = names.arrays[name];
    const bool first = names.given.insert(name).second;
    if (first || reads) {
      value = array;
      return absl::OkStatus();
    }
    INTERP_ASSIGN_OR_RETURN(value, Add(value, array));
    return absl::OkStatus();
  }

  // The gradients of a sparse op's slot are rows of what they belong to.
  absl::Status AddRows(const Slot& slot, const Names& names, InvokeOptions& options) {
    std::vector<Array> rows;
    for (const VarId id : slot.args) {
      absl::string_view name = names.program.NameOf(id);
      name.remove_suffix(kGradientSuffix.size());
      const auto of = names.arrays.find(names.program.Find(name));
      if (of == names.arrays.end()) return absl::OkStatus();
      INTERP_ASSIGN_OR_RETURN(rows.emplace_back(),
                              runtime_.NewRows(of->second.shape(), of->second.dtype()));
    }
    options.into.emplace_back(slot.name, std::move(rows));
    return absl::OkStatus();
  }

  absl::Status TakeGradients(const Tape::Step& step, const Names& names) {
    absl::flat_hash_set<uint64_t> taken;
    absl::Status status;
    ForEach(step.inputs, [&](const Array& input) {
      const uint64_t id = ArrayAccess::id(input);
      if (!status.ok() || !depends_on_source(input) || !taken.insert(id).second) return;
      const VarId name = names.program.Find(GradientName(absl::StrCat("v", id)));
      const auto part = names.arrays.find(name);
      if (name < 0 || part == names.arrays.end()) return;
      status = Accumulate(input, part->second);
    });
    return status;
  }

  absl::Status Accumulate(const Array& of, const Array& part) {
    Array here = part;
    if (part && part.place() != of.place()) {  // behind a copy
      INTERP_ASSIGN_OR_RETURN(here, part.CopyTo(of.place()));
    }
    Array& gradient = gradients_[ArrayAccess::id(of)];
    if (!gradient) {
      gradient = here;
      return absl::OkStatus();
    }
    INTERP_ASSIGN_OR_RETURN(gradient, Add(gradient, here));
    return absl::OkStatus();
  }

  absl::StatusOr<Array> Add(const Array& a, const Array& b) {
    const ArraySlots inputs = {{"X", {a, b}}};
    if (!a.is_rows() && !b.is_rows()) return First(Invoke(runtime_, SumArraysDef(), inputs));
    InvokeOptions options;
    if (a.is_rows() && b.is_rows()) {
      INTERP_ASSIGN_OR_RETURN(Array rows, runtime_.NewRows(a.shape(), a.dtype()));
      options.into = {{"Out", {rows}}};
    }
    return First(Invoke(runtime_, "sum", inputs, {}, options));
  }

  const Tape& tape_;
  ArrayRuntime& runtime_;
  absl::flat_hash_set<uint64_t> depends_;  // ids of arrays that depend on a source
  // Ids of what shares memory with those although the tape has seen no view being made.
  absl::flat_hash_set<uint64_t> aliases_;
  absl::flat_hash_set<uint64_t> made_;  // ids of outputs of steps so far
  absl::flat_hash_map<const Chunk*, std::vector<Region>> regions_;  // of what depends on a source
  absl::flat_hash_map<uint64_t, Array> gradients_;
};

absl::StatusOr<std::vector<Array>> Tape::Backward(const Array& loss,
                                                  absl::Span<const Array> sources) {
  if (!loss || loss.numel() != 1 || !IsFloating(loss.dtype())) {
    return InvalidArgument("the loss is ", loss ? DescribeArray(loss) : "no array",
                           ", expected one float: take its mean");
  }
  // Gradients are not recorded themselves.
  const Pause pause;
  return TapeBackward(*this, loss.runtime()).Run(loss, sources);
}

}  // namespace interp
