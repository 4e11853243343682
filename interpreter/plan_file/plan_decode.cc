// Long because it reads every field of a plan, each in one place.
#include <algorithm>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "core/base/annotate.h"
#include "core/each_argument.h"
#include "core/io/param_decl.h"
#include "core/program_load.h"
#include "interpreter/analysis/link.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_types.h"
#include "interpreter/plan_file/plan_wire.h"
#include "interpreter/verify/plan_structure.h"

namespace interp {
namespace {

namespace wire = proto::plan;
using google::protobuf::RepeatedField;

// --- single values ---

template <typename Enum>
absl::Status ReadCode(int32_t code, Enum last, absl::string_view what, Enum* out) {
  if (code < 0 || code > static_cast<int32_t>(last)) {
    return InvalidArgument(what, " has code ", code);
  }
  *out = static_cast<Enum>(code);
  return absl::OkStatus();
}

absl::Status ReadDType(int32_t code, DType* out) {
  *out = DType::kUndefined;
  if (code == static_cast<int32_t>(DType::kUndefined)) return absl::OkStatus();
  const std::optional<DType> dtype = DTypeFromCode(code);
  if (!dtype.has_value() || static_cast<int32_t>(*dtype) != code) {
    return InvalidArgument("a dtype has code ", code);
  }
  *out = *dtype;
  return absl::OkStatus();
}

absl::Status ReadLayout(int32_t code, Layout* out) {
  return ReadCode(code, Layout::kChannelsLast, "a layout", out);
}

absl::Status ReadKind(int32_t code, VarKind* out) {
  const auto within = [code](VarKind first, VarKind last) {
    return code >= static_cast<int32_t>(first) && code <= static_cast<int32_t>(last);
  };
  if (!within(VarKind::kLodTensor, VarKind::kTuple) &&
      !within(VarKind::kString, VarKind::kFeedList) &&
      !within(VarKind::kSparseCoo, VarKind::kSparseCsr)) {
    return InvalidArgument("a variable has kind ", code);
  }
  *out = static_cast<VarKind>(code);
  return absl::OkStatus();
}

// --- lists ---

template <typename List = std::vector<int32_t>>
List Numbers(const RepeatedField<int32_t>& values) {
  return List(values.begin(), values.end());
}

template <typename Pairs>
absl::Status ReadPairs(const RepeatedField<int32_t>& values, Pairs* out) {
  if (values.size() % 2 != 0) return InvalidArgument("half a pair of arguments");
  for (int i = 0; i < values.size(); i += 2) out->push_back({values[i], values[i + 1]});
  return absl::OkStatus();
}

absl::Status ReadLists(const wire::Lists& lists, absl::string_view name, IdLists* out) {
  const int num_ids = lists.values_size();
  int32_t end = 0;
  for (const int32_t size : lists.sizes()) {
    if (size < 0 || size > num_ids - end) {
      return InvalidArgument(name, " has a list of ", size, " numbers, but ", num_ids - end,
                             " are left");
    }
    end += size;
    out->begins.push_back(end);
  }
  if (end != num_ids) return InvalidArgument(name, " has ", num_ids - end, " numbers in no list");
  out->ids = Numbers(lists.values());
  return absl::OkStatus();
}

// --- parts of the plan ---

absl::Status ReadVar(const wire::Var& from, PlanVar* var) {
  var->name = from.name();
  var->program_var = from.program_var();
  var->captured = from.captured();
  var->settled = from.settled();
  INTERP_RETURN_IF_ERROR(ReadKind(from.kind(), &var->kind));
  INTERP_RETURN_IF_ERROR(ReadDType(from.dtype(), &var->dtype));
  INTERP_RETURN_IF_ERROR(ReadLayout(from.layout(), &var->layout));
  var->rank = from.rank();
  var->declared = from.declared();
  var->persistable = from.persistable();
  var->constant = from.constant();
  var->folded = from.folded();
  var->storage = from.storage();
  var->copy_of = from.copy_of();
  return ReadPlace(from.place(), &var->place);
}

absl::Status ReadInstruction(const wire::Instruction& from, Instruction* to) {
  to->sub_block = from.sub_block();
  to->inputs = Numbers<VarIds>(from.inputs());
  to->outputs = Numbers<VarIds>(from.outputs());
  to->input_counts = Numbers<ArgCounts>(from.input_counts());
  to->output_counts = Numbers<ArgCounts>(from.output_counts());
  for (const int32_t code : from.output_dtypes()) {
    INTERP_RETURN_IF_ERROR(ReadDType(code, &to->output_dtypes.emplace_back()));
  }
  for (const int32_t code : from.output_layouts()) {
    INTERP_RETURN_IF_ERROR(ReadLayout(code, &to->output_layouts.emplace_back()));
  }
  INTERP_RETURN_IF_ERROR(ReadPairs(from.share(), &to->share));
  INTERP_RETURN_IF_ERROR(ReadDType(from.dtype(), &to->dtype));
  to->kernel = from.kernel();
  INTERP_RETURN_IF_ERROR(
      ReadCode(from.layout_rule(), LayoutRule::kForReaders, "a layout rule", &to->layout_rule));
  to->priority = from.priority();
  INTERP_RETURN_IF_ERROR(ReadPlace(from.place(), &to->place));
  to->stream = from.stream();
  INTERP_RETURN_IF_ERROR(ReadCode(from.queue(), QueueKind::kDevice, "a queue", &to->queue));
  for (const wire::Wait& wait : from.waits()) {
    to->waits.push_back({.event = wait.event(),
                         .previous_run = wait.previous_run(),
                         .blocks_host = wait.blocks_host()});
  }
  to->record = from.record();
  return absl::OkStatus();
}

absl::Status ReadEdges(const wire::Edges& from, std::vector<Edge>* edges) {
  const int n = from.from_size();
  for (const int size : {from.to_size(), from.kind_size(), from.var_size(), from.run_type_size(),
                         from.shrunk_size(), from.memory_size(), from.host_reads_size()}) {
    if (size != n) return InvalidArgument("columns of edges have ", n, " and ", size, " entries");
  }
  edges->resize(n);
  for (int i = 0; i < n; ++i) {
    Edge& edge = (*edges)[i];
    edge.from = from.from(i);
    edge.to = from.to(i);
    edge.var = from.var(i);
    edge.shrunk = from.shrunk(i);
    edge.memory = from.memory(i);
    edge.host_reads = from.host_reads(i);
    INTERP_RETURN_IF_ERROR(ReadCode(from.kind(i), EdgeKind::kStream, "an edge", &edge.kind));
    INTERP_RETURN_IF_ERROR(
        ReadCode(from.run_type(i), RunType::kEvent, "the run type of an edge", &edge.run_type));
  }
  return absl::OkStatus();
}

absl::Status ReadOptions(const wire::Options& from, PlanOptions* options) {
  options->sequential = from.sequential();
  options->garbage_collection = from.garbage_collection();
  options->optimize_layout = from.optimize_layout();
  options->fold_constants = from.fold_constants();
  options->single_stream = from.single_stream();
  return ReadPlace(from.place(), &options->place);
}

absl::Status ReadFeed(const wire::Feed& from, FeedSpec* feed) {
  feed->name = from.name();
  feed->check_shape = from.check_shape();
  feed->overwritten = from.overwritten();
  feed->persistable = from.persistable();
  if (from.dims_size() > kMaxRank) {
    return InvalidArgument("feed '", feed->name, "' has rank ", from.dims_size());
  }
  for (const int64_t dim : from.dims()) feed->shape.push_back(dim);
  return ReadDType(from.dtype(), &feed->dtype);
}

absl::Status ReadLines(const wire::Plan& from, Plan& plan) {
  for (const wire::Stream& stream : from.streams()) {
    PlanStream& to = plan.streams.emplace_back();
    to.name = stream.name();
    to.priority = stream.priority();
    INTERP_RETURN_IF_ERROR(ReadPlace(stream.place(), &to.place));
  }
  for (const int32_t recorder : from.event_recorders()) plan.events.push_back({recorder});
  return absl::OkStatus();
}

// What it has in common with other blocks.
absl::Status ReadInterface(const wire::Plan& from, Plan& plan) {
  for (const wire::Capture& capture : from.captures()) {
    plan.captures.push_back(
        {.var = capture.var(), .read = capture.read(), .written = capture.written()});
  }
  plan.entries = Numbers(from.entries());
  plan.entry_args = Numbers(from.entry_args());
  plan.results = Numbers(from.results());
  if (from.saved_size() != from.saved_at_start_size()) {
    return InvalidArgument("has ", from.saved_size(), " saved variables and ",
                           from.saved_at_start_size(), " notes when they are saved");
  }
  for (int i = 0; i < from.saved_size(); ++i) {
    plan.saved.push_back({.var = from.saved(i), .at_start = from.saved_at_start(i)});
  }
  plan.gradient_block = from.gradient_block();
  plan.forward_block = from.forward_block();
  plan.inherited = Numbers(from.inherited());
  plan.first_number = from.first_number();
  return absl::OkStatus();
}

// All but variables and instructions.
absl::Status ReadRest(const wire::Plan& from, Plan& plan) {
  INTERP_RETURN_IF_ERROR(ReadInterface(from, plan));
  INTERP_RETURN_IF_ERROR(ReadLines(from, plan));
  INTERP_RETURN_IF_ERROR(ReadEdges(from.edges(), &plan.edges));
  INTERP_RETURN_IF_ERROR(ReadLists(from.successors(), "the list of successors", &plan.successors));
  plan.dep_counts = Numbers(from.dep_counts());
  plan.order = Numbers(from.order());
  INTERP_RETURN_IF_ERROR(ReadLists(from.gc_check(), "gc_check", &plan.gc_check));
  plan.ref_counts = Numbers(from.ref_counts());
  INTERP_RETURN_IF_ERROR(ReadLists(from.frees_in_order(), "frees_in_order", &plan.frees_in_order));
  INTERP_RETURN_IF_ERROR(ReadOptions(from.options(), &plan.options));
  plan.fallbacks.assign(from.fallbacks().begin(), from.fallbacks().end());
  for (const wire::Feed& feed : from.feeds()) {
    INTERP_RETURN_IF_ERROR(ReadFeed(feed, &plan.feeds.emplace_back()));
  }
  plan.fetches.assign(from.fetches().begin(), from.fetches().end());
  plan.feed_list = from.feed_list();
  plan.fetch_list = from.fetch_list();
  plan.max_width = from.max_width();
  plan.critical_path = from.critical_path();
  return absl::OkStatus();
}

// --- the whole ---

size_t NumArgs(const std::vector<Slot>& slots) {
  size_t count = 0;
  for (const Slot& slot : slots) count += slot.args.size();
  return count;
}

class Decoder {
 public:
  Decoder(const wire::PlanFile& file, const OpRegistry& ops) : file_(file), registry_(ops) {}

  absl::StatusOr<CompiledProgram> Decode() {
    INTERP_RETURN_IF_ERROR(CheckBuild());
    INTERP_RETURN_IF_ERROR(ReadProgram());
    INTERP_RETURN_IF_ERROR(ReadMadeInRuns());
    compiled_.plans.resize(compiled_.program.blocks.size());
    std::vector<bool> seen(compiled_.plans.size(), false);
    for (const wire::Plan& from : file_.plans()) {
      const auto block = static_cast<size_t>(from.block());
      if (block >= seen.size() || seen[block]) {
        return InvalidArgument("a plan of block ", from.block(), " of ", seen.size(),
                               ", or a second one");
      }
      seen[block] = true;
      INTERP_RETURN_IF_ERROR(Annotate(ReadPlan(from, compiled_.plans[block]),
                                      absl::StrCat("the plan of block ", block)));
    }
    compiled_.source_fingerprint = file_.source_fingerprint();
    INTERP_RETURN_IF_ERROR(CheckPlansStructure(compiled_.plans));
    INTERP_RETURN_IF_ERROR(CheckPlanTypes(compiled_.program, compiled_.plans, registry_));
    for (Plan& plan : compiled_.plans) MarkDynamicShapes(plan);
    return std::move(compiled_);
  }

 private:
  absl::Status CheckBuild() {
    if (file_.interp_version() != INTERP_VERSION) {
      return OtherKernels(absl::StrCat("it was written by version ",
                                       absl::Utf8SafeCEscape(file_.interp_version()), ", this is ",
                                       INTERP_VERSION));
    }
    for (const wire::OpKernels& kernels : file_.kernels()) {
      const std::string type = absl::Utf8SafeCEscape(kernels.type());
      const OpDef* def = registry_.Find(kernels.type());
      if (def == nullptr) return OtherKernels(absl::StrCat("op ", type, " is not in this build"));
      if (FingerprintOf(*def) != kernels.fingerprint()) {
        return OtherKernels(absl::StrCat("op ", type, " has changed"));
      }
      defs_[kernels.type()] = def;
    }
    return absl::OkStatus();
  }

  static absl::Status OtherKernels(absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("compiled for other kernels: ", why, "; compile it again"));
  }

  absl::Status ReadProgram() {
    const std::vector<std::string> names(file_.names().begin(), file_.names().end());
    INTERP_ASSIGN_OR_RETURN(Program program,
                            Annotate(LoadProgram(file_.program(), names), "its program"));
    if (program.names.size() != names.size()) {
      return InvalidArgument("its program has variable '", program.names.back(),
                             "', which its names have not");
    }
    compiled_.program = std::move(program);
    for (const wire::OpShares& shares : file_.shares()) {
      INTERP_RETURN_IF_ERROR(ReadOpShares(shares));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMadeInRuns() {
    const Program& program = compiled_.program;
    const std::vector<VarId> persistable = PersistableTensors(program);
    VarId last = -1;
    for (const VarId id : file_.made_in_runs()) {
      if (id <= last || static_cast<size_t>(id) >= program.names.size()) {
        return InvalidArgument("variable ", id, " behind ", last, " is made in runs, of ",
                               program.names.size(), " variables");
      }
      if (absl::c_binary_search(persistable, id)) {
        return InvalidArgument("variable '", program.NameOf(id),
                               "' is persistable and made in runs");
      }
      compiled_.made_in_runs.push_back(id);
      last = id;
    }
    return absl::OkStatus();
  }

  absl::Status ReadOpShares(const wire::OpShares& from) {
    const auto block = static_cast<size_t>(from.block());
    const auto op = static_cast<size_t>(from.op());
    std::vector<Block>& blocks = compiled_.program.blocks;
    if (block >= blocks.size() || op >= blocks[block].ops.size()) {
      return InvalidArgument("pairs of op #", from.op(), " of block ", from.block(),
                             ", which its program has not");
    }
    Op& to = blocks[block].ops[op];
    INTERP_RETURN_IF_ERROR(ReadPairs(from.pairs(), &to.inplace));
    for (const InplacePair& pair : to.inplace) {
      if (static_cast<size_t>(pair.input) >= NumArgs(to.inputs) ||
          static_cast<size_t>(pair.output) >= NumArgs(to.outputs)) {
        return InvalidArgument("op #", from.op(), " of block ", from.block(),
                               ": a pair names an argument that is not there");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadPlan(const wire::Plan& from, Plan& plan) {
    plan.block = from.block();
    INTERP_RETURN_IF_ERROR(ReadVars(from, plan));
    INTERP_RETURN_IF_ERROR(ReadInsertedOps(from, plan));
    plan.instructions.resize(from.instructions_size());
    for (int i = 0; i < from.instructions_size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          Annotate(AddInstruction(from.instructions(i), plan, plan.instructions[i]),
                   absl::StrCat("instruction #", i)));
    }
    plan.folded.resize(from.folded_size());
    for (int i = 0; i < from.folded_size(); ++i) {
      INTERP_RETURN_IF_ERROR(Annotate(AddInstruction(from.folded(i), plan, plan.folded[i]),
                                      absl::StrCat("folded instruction #", i)));
    }
    return ReadRest(from, plan);
  }

  static absl::Status ReadVars(const wire::Plan& from, Plan& plan) {
    plan.vars.resize(from.vars_size());
    for (int i = 0; i < from.vars_size(); ++i) {
      INTERP_RETURN_IF_ERROR(
          Annotate(ReadVar(from.vars(i), &plan.vars[i]), absl::StrCat("variable #", i)));
    }
    plan.num_program_vars = from.num_program_vars();
    return absl::OkStatus();
  }

  static absl::Status ReadInsertedOps(const wire::Plan& from, Plan& plan) {
    INTERP_ASSIGN_OR_RETURN(Program program,
                            Annotate(LoadProgram(from.inserted_ops()), "its inserted ops"));
    std::vector<VarId> ids;
    for (const std::string& name : program.names) {
      VarId id = -1;
      if (!absl::SimpleAtoi(name, &id) || id < 0 || static_cast<size_t>(id) >= plan.vars.size()) {
        return InvalidArgument("an inserted op names variable '", absl::Utf8SafeCEscape(name),
                               "', expected a number below ", plan.vars.size());
      }
      ids.push_back(id);
    }
    plan.inserted_ops = std::move(program.blocks[0].ops);
    for (Op& op : plan.inserted_ops) {
      for (std::vector<Slot>* slots : {&op.inputs, &op.outputs}) {
        for (VarId& arg : EachArgument(*slots)) arg = ids[arg];
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddInstruction(const wire::Instruction& from, const Plan& plan, Instruction& to) {
    const bool inserted = from.inserted_op() != -1;
    const std::vector<Op>& ops =
        inserted ? plan.inserted_ops : compiled_.program.blocks[plan.block].ops;
    const auto index = static_cast<size_t>(inserted ? from.inserted_op() : from.op_index());
    if (inserted == (from.op_index() != -1) || index >= ops.size()) {
      return InvalidArgument("is op ", from.op_index(), " or inserted op ", from.inserted_op(),
                             " of ", ops.size());
    }
    const Op& op = ops[index];
    to.op_index = from.op_index();
    to.inserted_op = from.inserted_op();
    const auto def = defs_.find(op.type);
    if (def == defs_.end()) {
      return InvalidArgument(absl::Utf8SafeCEscape(op.type), ": no fingerprint tells its kernels");
    }
    to.def = def->second;
    to.op_type = to.def->type;
    if (to.def->parse != nullptr) {
      AttrReader reader(op, inserted ? nullptr : &compiled_.program);
      INTERP_ASSIGN_OR_RETURN(to.attrs, to.def->parse(reader));
    }
    return ReadInstruction(from, &to);
  }

  const wire::PlanFile& file_;
  const OpRegistry& registry_;
  absl::flat_hash_map<absl::string_view, const OpDef*> defs_;  // of the types the file lists
  CompiledProgram compiled_;
};

}  // namespace

absl::Status ReadPlace(int32_t code, Place* out) {
  INTERP_RETURN_IF_ERROR(ReadCode(code >> 8, PlaceKind::kCuda, "a place", &out->kind));
  out->index = static_cast<int8_t>(code & 0x7f);
  if ((code & 0x80) != 0 || out->index >= kMaxDevices || (out->on_host() && out->index != 0)) {
    return InvalidArgument("a place has code ", code);
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledProgram> DecodePlan(const wire::PlanFile& file, const OpRegistry& ops) {
  return Decoder(file, ops).Decode();
}

}  // namespace interp
