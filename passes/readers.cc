#include "passes/readers.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/program_print.h"

namespace interp {
namespace {

bool AnyMainOp(const Program& program, bool (*is_wanted)(const Op& op)) {
  if (program.blocks.empty()) return false;
  const std::vector<Op>& ops = program.blocks[0].ops;
  return std::any_of(ops.begin(), ops.end(), is_wanted);
}

// By VarId: how many arguments of ops in any block are read.
std::vector<int32_t> CountReads(const Program& program) {
  std::vector<int32_t> reads(program.names.size(), 0);
  for (const Block& block : program.blocks) {
    for (const Op& op : block.ops) {
      for (const VarId id : EachArgument(op.inputs)) ++reads[id];
    }
  }
  return reads;
}

bool AnyOutput(const Op& op, const std::vector<int32_t>& reads) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](const Slot& slot) {
    return std::any_of(slot.args.begin(), slot.args.end(), [&](VarId id) { return reads[id] > 0; });
  });
}

void EraseOutputs(Op& op, const std::vector<bool>& erased) {
  for (Slot& slot : op.outputs) {
    const auto end =
        std::remove_if(slot.args.begin(), slot.args.end(), [&](VarId id) { return erased[id]; });
    slot.args.erase(end, slot.args.end());
  }
}

// What create_py_reader says of the variables of a batch.
struct BatchDeclaration {
  std::vector<int64_t> ranks;
  std::vector<int64_t> dims;  // of all variables, one behind the other
  std::vector<int64_t> dtypes;
  std::vector<int64_t> lod_levels;
  std::vector<int64_t> checked;  // not 0: dtype and dims are those of each batch
};

// Lists that are missing, as in old programs, say nothing.
absl::StatusOr<BatchDeclaration> ReadDeclaration(const Op& op, size_t num_vars) {
  AttrReader attrs(op);
  BatchDeclaration batch = {
      .ranks = attrs.Ints("ranks"),
      .dims = attrs.Ints("shape_concat"),
      .dtypes = attrs.Ints("dtypes"),
      .lod_levels = attrs.Ints("lod_levels"),
      .checked = attrs.Ints("need_check_feed"),
  };
  INTERP_RETURN_IF_ERROR(attrs.status());
  const auto num_of_all = [&](absl::string_view name, const std::vector<int64_t>& list) {
    if (list.empty() || list.size() == num_vars) return absl::OkStatus();
    return InvalidArgument("attribute '", name, "' has ", list.size(), " elements, but 'read' has ",
                           num_vars, " outputs");
  };
  INTERP_RETURN_IF_ERROR(num_of_all("ranks", batch.ranks));
  INTERP_RETURN_IF_ERROR(num_of_all("dtypes", batch.dtypes));
  INTERP_RETURN_IF_ERROR(num_of_all("lod_levels", batch.lod_levels));
  INTERP_RETURN_IF_ERROR(num_of_all("need_check_feed", batch.checked));
  int64_t left = std::ssize(batch.dims);
  for (const int64_t rank : batch.ranks) {
    if (rank < 0 || rank > left) left = -1;
    if (left < 0) break;
    left -= rank;
  }
  if (left == 0) return batch;
  return InvalidArgument("attribute 'shape_concat' has ", batch.dims.size(),
                         " elements, which are not those of 'ranks'");
}

std::string TypeText(DType dtype, absl::Span<const int64_t> dims, int64_t lod_level) {
  return absl::StrCat(Name(dtype), "[", absl::StrJoin(dims, ","), "]",
                      lod_level > 0 ? absl::StrCat(" with LoD level ", lod_level) : "");
}

// Negative dims fit every size.
bool FitDims(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](int64_t x, int64_t y) { return x < 0 || y < 0 || x == y; });
}

class ReaderCheck {
 public:
  explicit ReaderCheck(const Program& program) : program_(program) {
    for (const Var& var : program.blocks[0].vars) vars_[var.id] = &var;
  }

  absl::Status Visit(size_t index) {
    const Op& op = program_.blocks[0].ops[index];
    const absl::Status status = MakesReader(op) ? VisitMaker(op) : VisitRead(op, index);
    return status.ok() ? status : Annotate(status, DescribeOp(program_, 0, index));
  }

 private:
  // Where the batches of a reader come from.
  struct Source {
    VarId reader = -1;          // the first of the chain
    const Op* maker = nullptr;  // of the first; null: the startup program has it
  };

  Source SourceOf(VarId reader) const {
    const auto found = sources_.find(reader);
    return found == sources_.end() ? Source{.reader = reader} : found->second;
  }

  absl::Status VisitMaker(const Op& op) {
    if (op.type == "create_custom_reader") {
      return Unimplemented("changes samples by ops of its own; expected data that is ready");
    }
    const Slot* from = op.FindInput("UnderlyingReader");
    for (const VarId id : EachArgument(op.outputs)) {
      const bool decorates = from != nullptr && !from->args.empty();
      sources_[id] = decorates ? SourceOf(from->args[0]) : Source{.reader = id, .maker = &op};
    }
    return absl::OkStatus();
  }

  absl::Status VisitRead(const Op& op, size_t index) {
    const Slot* reader = op.FindInput("Reader");
    const size_t count = reader == nullptr ? 0 : reader->args.size();
    if (count != 1) return InvalidArgument("'Reader' has ", count, " arguments, expected 1");
    INTERP_RETURN_IF_ERROR(CheckDeclared(op));
    const Source source = SourceOf(reader->args[0]);
    const auto [first, is_first] = read_by_.emplace(source.reader, index);
    if (!is_first) {
      return Unimplemented("op #", first->second, " has read a batch of '",
                           program_.NameOf(source.reader),
                           "' already; expected one 'read' of each reader");
    }
    if (source.maker == nullptr || source.maker->type != "create_py_reader") {
      return absl::OkStatus();
    }
    const absl::Status status = CheckDeclaration(op, *source.maker);
    return status.ok() ? status : Annotate(status, source.maker->type);
  }

  absl::Status CheckDeclared(const Op& read) const {
    for (const VarId id : EachArgument(read.outputs)) {
      if (vars_.contains(id)) continue;
      return InvalidArgument("output '", program_.NameOf(id), "' is not declared in block 0");
    }
    return absl::OkStatus();
  }

  // REQUIRES: CheckDeclared(read).
  absl::Status CheckDeclaration(const Op& read, const Op& maker) const {
    const Slot* out = read.FindOutput("Out");
    const size_t num_vars = out == nullptr ? 0 : out->args.size();
    INTERP_ASSIGN_OR_RETURN(const BatchDeclaration batch, ReadDeclaration(maker, num_vars));
    size_t begin = 0;
    for (size_t i = 0; i < batch.ranks.size(); ++i) {
      const absl::Span<const int64_t> dims(batch.dims.data() + begin, batch.ranks[i]);
      begin += dims.size();
      if (batch.checked.empty() || batch.checked[i] == 0) continue;
      const Var& var = *vars_.at(out->args[i]);
      const DType dtype =
          batch.dtypes.empty()
              ? var.dtype
              : DTypeFromCode(static_cast<int32_t>(batch.dtypes[i])).value_or(DType::kUndefined);
      const int64_t lod = batch.lod_levels.empty() ? var.lod_level : batch.lod_levels[i];
      if (dtype == var.dtype && FitDims(dims, var.dims) && lod == var.lod_level) continue;
      return InvalidArgument("gives '", program_.NameOf(var.id), "' as ",
                             TypeText(dtype, dims, lod), ", which is declared as ",
                             TypeText(var.dtype, var.dims, var.lod_level));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  absl::flat_hash_map<VarId, const Var*> vars_;
  absl::flat_hash_map<VarId, Source> sources_;  // by reader
  absl::flat_hash_map<VarId, size_t> read_by_;  // by Source::reader: the op
};

// Of one `read`: `used` are the variables that ops before it read or write.
absl::Status CheckOutputs(const Program& program, const Op& op,
                          const absl::flat_hash_set<VarId>& used) {
  for (const VarId id : EachArgument(op.outputs)) {
    if (!used.contains(id)) continue;
    return Unimplemented("writes '", program.NameOf(id),
                         "', which an op before it uses; expected a variable of its own, as "
                         "batches are there before the first op");
  }
  return absl::OkStatus();
}

void AddArgs(const std::vector<Slot>& slots, absl::flat_hash_set<VarId>& vars) {
  for (const Slot& slot : slots) vars.insert(slot.args.begin(), slot.args.end());
}

}  // namespace

bool IsRead(const Op& op) { return op.type == "read"; }

bool MakesReader(const Op& op) {
  return op.type == "open_files" || op.type == "create_random_data_generator" ||
         (absl::StartsWith(op.type, "create_") && absl::EndsWith(op.type, "_reader"));
}

std::vector<VarId> ReadVars(const Program& program) {
  std::vector<VarId> vars;
  if (!AnyMainOp(program, IsRead)) return vars;
  std::vector<int32_t> reads = CountReads(program);
  for (const Op& op : program.blocks[0].ops) {
    if (!IsRead(op)) continue;
    for (const VarId id : EachArgument(op.outputs)) {
      if (std::exchange(reads[id], 0) > 0) vars.push_back(id);  // once
    }
  }
  return vars;
}

absl::Status CheckReads(const Program& program) {
  if (!AnyMainOp(program, IsRead)) return absl::OkStatus();
  absl::flat_hash_set<VarId> used;
  const std::vector<Op>& ops = program.blocks[0].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (IsRead(ops[i])) {
      const absl::Status status = CheckOutputs(program, ops[i], used);
      if (!status.ok()) return Annotate(status, DescribeOp(program, 0, i));
    }
    AddArgs(ops[i].inputs, used);
    AddArgs(ops[i].outputs, used);
  }
  return absl::OkStatus();
}

absl::Status CheckReaders(const Program& program) {
  if (!AnyMainOp(program, IsRead)) return absl::OkStatus();
  ReaderCheck check(program);
  const std::vector<Op>& ops = program.blocks[0].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!IsRead(ops[i]) && !MakesReader(ops[i])) continue;
    INTERP_RETURN_IF_ERROR(check.Visit(i));
  }
  return CheckReads(program);
}

void DropReaders(Program& program, const std::vector<VarId>& fed) {
  if (!AnyMainOp(program, IsRead) && !AnyMainOp(program, MakesReader)) return;
  std::vector<Op>& ops = program.blocks[0].ops;
  std::vector<bool> is_fed(program.names.size(), false);
  for (const VarId id : fed) is_fed[id] = true;
  std::vector<int32_t> reads = CountReads(program);
  std::vector<bool> drop(ops.size(), false);
  // Backwards, so that the reader of a dropped op is looked at once nobody reads it.
  for (size_t i = ops.size(); i-- > 0;) {
    if (IsRead(ops[i])) EraseOutputs(ops[i], is_fed);
    drop[i] = (IsRead(ops[i]) || MakesReader(ops[i])) && !AnyOutput(ops[i], reads);
    if (!drop[i]) continue;
    for (const VarId id : EachArgument(ops[i].inputs)) --reads[id];
  }
  size_t kept = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) ops[kept] = std::move(ops[i]);
    ++kept;
  }
  ops.resize(kept);
}

}  // namespace interp
