// Values are taken apart by structured bindings: a field that is added to the plan and not written
// here does not compile.
#include <map>

#include "core/program_load.h"
#include "interpreter/plan_file/fingerprint.h"
#include "interpreter/plan_file/plan_wire.h"

namespace interp {
namespace {

namespace wire = proto::plan;
using google::protobuf::RepeatedField;

int32_t CodeOf(Place place) { return static_cast<int32_t>(place.kind) * 256 + place.index; }

template <typename Enum>
int32_t CodeOf(Enum value) {
  return static_cast<int32_t>(value);
}

template <typename List>
void Fill(const List& values, RepeatedField<int32_t>* out) {
  out->Reserve(static_cast<int>(values.size()));
  for (const auto value : values) out->AddAlreadyReserved(static_cast<int32_t>(value));
}

void FillPairs(absl::Span<const InplacePair> pairs, RepeatedField<int32_t>* out) {
  for (const auto& [input, output] : pairs) {
    out->Add(input);
    out->Add(output);
  }
}

void FillLists(const IdLists& lists, wire::Lists* out) {
  for (size_t i = 0; i < lists.size(); ++i) {
    out->add_sizes(static_cast<int32_t>(lists[static_cast<InstrId>(i)].size()));
  }
  Fill(lists.ids, out->mutable_values());
}

void FillVar(const PlanVar& var, wire::Var* out) {
  const auto& [name, program_var, kind, dtype, layout, rank, declared, persistable, constant,
               folded, captured, settled, storage, place, copy_of] = var;
  out->set_name(name);
  out->set_program_var(program_var);
  out->set_captured(captured);
  out->set_settled(settled);
  out->set_kind(CodeOf(kind));
  out->set_dtype(CodeOf(dtype));
  out->set_layout(CodeOf(layout));
  out->set_rank(rank);
  out->set_declared(declared);
  out->set_persistable(persistable);
  out->set_constant(constant);
  out->set_folded(folded);
  out->set_storage(storage);
  out->set_place(CodeOf(place));
  out->set_copy_of(copy_of);
}

void FillWait(const EventWait& wait, wire::Wait* out) {
  const auto& [event, previous_run, blocks_host] = wait;
  out->set_event(event);
  out->set_previous_run(previous_run);
  out->set_blocks_host(blocks_host);
}

void FillInstruction(const Instruction& instruction, wire::Instruction* out) {
  // Type, definition and attributes are the op's. dynamic_shape follows from the rest.
  const auto& [op_type, def, op_index, inserted_op, sub_block, inputs, outputs, input_counts,
               output_counts, output_dtypes, output_layouts, share, attrs, dtype, layout_rule,
               kernel, dynamic_shape, queue, place, priority, stream, waits, record] = instruction;
  out->set_op_index(op_index);
  out->set_inserted_op(inserted_op);
  out->set_sub_block(sub_block);
  Fill(inputs, out->mutable_inputs());
  Fill(outputs, out->mutable_outputs());
  Fill(input_counts, out->mutable_input_counts());
  Fill(output_counts, out->mutable_output_counts());
  Fill(output_dtypes, out->mutable_output_dtypes());
  Fill(output_layouts, out->mutable_output_layouts());
  FillPairs(share, out->mutable_share());
  out->set_dtype(CodeOf(dtype));
  out->set_kernel(kernel);
  out->set_layout_rule(CodeOf(layout_rule));
  out->set_priority(priority);
  out->set_place(CodeOf(place));
  out->set_stream(stream);
  out->set_queue(CodeOf(queue));
  for (const EventWait& wait : waits) FillWait(wait, out->add_waits());
  out->set_record(record);
}

void FillEdges(const std::vector<Edge>& edges, wire::Edges* out) {
  for (const auto& [from, to, kind, var, shrunk, memory, host_reads, run_type] : edges) {
    out->add_from(from);
    out->add_to(to);
    out->add_kind(CodeOf(kind));
    out->add_var(var);
    out->add_shrunk(shrunk);
    out->add_memory(memory);
    out->add_host_reads(host_reads);
    out->add_run_type(CodeOf(run_type));
  }
}

void FillOptions(const PlanOptions& options, wire::Options* out) {
  const auto& [sequential, garbage_collection, optimize_layout, fold_constants, place,
               single_stream] = options;
  out->set_sequential(sequential);
  out->set_garbage_collection(garbage_collection);
  out->set_optimize_layout(optimize_layout);
  out->set_fold_constants(fold_constants);
  out->set_place(CodeOf(place));
  out->set_single_stream(single_stream);
}

void FillStream(const PlanStream& stream, wire::Stream* out) {
  const auto& [name, place, priority] = stream;
  out->set_name(name);
  out->set_place(CodeOf(place));
  out->set_priority(priority);
}

void FillFeed(const FeedSpec& feed, wire::Feed* out) {
  const auto& [name, dtype, shape, check_shape, overwritten, persistable] = feed;
  out->set_name(name);
  out->set_dtype(CodeOf(dtype));
  for (const int64_t dim : shape) out->add_dims(dim);
  out->set_check_shape(check_shape);
  out->set_overwritten(overwritten);
  out->set_persistable(persistable);
}

void FillCapture(const Capture& capture, wire::Capture* out) {
  const auto& [var, read, written] = capture;
  out->set_var(var);
  out->set_read(read);
  out->set_written(written);
}

// As a program whose variables are named by their id in the plan: names may repeat there.
absl::StatusOr<std::string> SaveInsertedOps(const Plan& plan) {
  Program program;
  for (size_t id = 0; id < plan.vars.size(); ++id) program.names.push_back(absl::StrCat(id));
  program.blocks.emplace_back().ops = plan.inserted_ops;
  return SaveProgram(program);
}

// Long because a plan has so many fields, of which none may be left out.
absl::Status FillPlan(const Plan& plan, wire::Plan* out) {
  const auto& [block, vars, num_program_vars, captures, entries, entry_args, results,
               gradient_block, saved, forward_block, inherited, instructions, folded, first_number,
               inserted_ops, streams, events, edges, successors, dep_counts, order, gc_check,
               ref_counts, frees_in_order, options, fallbacks, feeds, fetches, feed_list,
               fetch_list, max_width, critical_path] = plan;
  out->set_block(block);
  for (const PlanVar& var : vars) FillVar(var, out->add_vars());
  out->set_num_program_vars(num_program_vars);
  for (const Capture& capture : captures) FillCapture(capture, out->add_captures());
  Fill(entries, out->mutable_entries());
  Fill(entry_args, out->mutable_entry_args());
  Fill(results, out->mutable_results());
  for (const auto& [var, at_start] : saved) {
    out->add_saved(var);
    out->add_saved_at_start(at_start);
  }
  out->set_gradient_block(gradient_block);
  out->set_forward_block(forward_block);
  Fill(inherited, out->mutable_inherited());
  for (const Instruction& instruction : instructions) {
    FillInstruction(instruction, out->add_instructions());
  }
  for (const Instruction& instruction : folded) FillInstruction(instruction, out->add_folded());
  out->set_first_number(first_number);
  INTERP_ASSIGN_OR_RETURN(*out->mutable_inserted_ops(), SaveInsertedOps(plan));
  for (const PlanStream& stream : streams) FillStream(stream, out->add_streams());
  for (const auto& [recorder] : events) out->add_event_recorders(recorder);
  FillEdges(edges, out->mutable_edges());
  FillLists(successors, out->mutable_successors());
  Fill(dep_counts, out->mutable_dep_counts());
  Fill(order, out->mutable_order());
  FillLists(gc_check, out->mutable_gc_check());
  Fill(ref_counts, out->mutable_ref_counts());
  FillLists(frees_in_order, out->mutable_frees_in_order());
  FillOptions(options, out->mutable_options());
  for (const std::string& type : fallbacks) out->add_fallbacks(type);
  for (const FeedSpec& feed : feeds) FillFeed(feed, out->add_feeds());
  for (const std::string& fetch : fetches) out->add_fetches(fetch);
  out->set_feed_list(feed_list);
  out->set_fetch_list(fetch_list);
  out->set_max_width(max_width);
  out->set_critical_path(critical_path);
  return absl::OkStatus();
}

// The type of the op that an instruction stands for, or nothing when it stands for none.
std::optional<absl::string_view> TypeOfOp(const Program& program, const Plan& plan,
                                          const Instruction& instruction) {
  const bool inserted = instruction.inserted_op >= 0;
  if (inserted == (instruction.op_index >= 0)) return std::nullopt;
  const std::vector<Op>& ops = inserted ? plan.inserted_ops : program.blocks[plan.block].ops;
  const auto index = static_cast<size_t>(inserted ? instruction.inserted_op : instruction.op_index);
  if (index >= ops.size()) return std::nullopt;
  return ops[index].type;
}

// A plan that refers to other variables or ops than its program has could not be read again.
absl::Status CheckBelongs(const Program& program, const Plan& plan) {
  const auto num_names = static_cast<int32_t>(program.names.size());
  if (plan.num_program_vars < 0 || static_cast<size_t>(plan.num_program_vars) > plan.vars.size()) {
    return InvalidArgument("the plan has ", plan.num_program_vars, " variables of the program");
  }
  for (int32_t id = 0; id < plan.num_program_vars; ++id) {
    const PlanVar& var = plan.vars[id];
    if (var.program_var >= 0 && var.program_var < num_names &&
        program.names[var.program_var] == var.name) {
      continue;
    }
    return InvalidArgument("variable ", id, " is '", var.name, "' in the plan, but no variable ",
                           var.program_var, " of the program");
  }
  const auto is_its_op = [&](const Instruction& instruction) {
    return instruction.def != nullptr &&
           TypeOfOp(program, plan, instruction) == instruction.def->type;
  };
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    if (is_its_op(instruction)) continue;
    return InvalidArgument("instruction #", i, " ", instruction.op_type, " is not the op it names");
  }
  for (const Instruction& instruction : plan.folded) {
    if (is_its_op(instruction)) continue;
    return InvalidArgument("folded ", instruction.op_type, " is not the op it names");
  }
  return absl::OkStatus();
}

void FillKernels(const std::vector<Plan>& plans, wire::PlanFile& file) {
  std::map<absl::string_view, const OpDef*> defs;
  for (const Plan& plan : plans) {
    for (const std::vector<Instruction>* list : {&plan.folded, &plan.instructions}) {
      for (const Instruction& instruction : *list) {
        defs.emplace(instruction.def->type, instruction.def);
      }
    }
  }
  for (const auto& [type, def] : defs) {
    wire::OpKernels& kernels = *file.add_kernels();
    kernels.set_type(type.data(), type.size());
    kernels.set_fingerprint(FingerprintOf(*def));
  }
}

void FillShares(const Program& program, wire::PlanFile& file) {
  for (size_t block = 0; block < program.blocks.size(); ++block) {
    const std::vector<Op>& ops = program.blocks[block].ops;
    for (size_t op = 0; op < ops.size(); ++op) {
      if (ops[op].inplace.empty()) continue;
      wire::OpShares& shares = *file.add_shares();
      shares.set_block(static_cast<int32_t>(block));
      shares.set_op(static_cast<int32_t>(op));
      FillPairs(ops[op].inplace, shares.mutable_pairs());
    }
  }
}

// Where ops were written in Python takes most of a saved program and is of no use to a run.
Program WithoutCallStacks(Program program) {
  for (Block& block : program.blocks) {
    for (Op& op : block.ops) {
      std::erase_if(op.attrs, [](const Attr& attr) { return attr.name == "op_callstack"; });
    }
  }
  return program;
}

}  // namespace

absl::Status EncodePlan(const CompiledProgram& compiled, wire::PlanFile& file) {
  const auto& [program, plans, timings, made_in_runs, fingerprint, packed] = compiled;
  if (plans.empty() || plans.size() != program.blocks.size()) {
    return InvalidArgument("there are ", plans.size(), " plans of ", program.blocks.size(),
                           " blocks");
  }
  file.set_interp_version(INTERP_VERSION);
  file.set_source_fingerprint(fingerprint);
  INTERP_ASSIGN_OR_RETURN(*file.mutable_program(), SaveProgram(WithoutCallStacks(program)));
  for (const std::string& name : program.names) file.add_names(name);
  for (const VarId id : made_in_runs) file.add_made_in_runs(id);
  FillShares(program, file);
  for (size_t block = 0; block < plans.size(); ++block) {
    const Plan& plan = plans[block];
    if (plan.block != static_cast<int32_t>(block)) continue;  // a block that never runs
    INTERP_RETURN_IF_ERROR(CheckBelongs(program, plan));
    INTERP_RETURN_IF_ERROR(FillPlan(plan, file.add_plans()));
  }
  FillKernels(plans, file);
  return absl::OkStatus();
}

}  // namespace interp
