// load: Out, a tensor or selected rows, as the file `file_path` has it. With `seek` that is not -1:
// the elements of the tensor in the file from number `seek` on, as many as `shape` has, in that
// shape.
// load_combine: all Out from one file, in their order; with `model_from_memory`, `file_path` is not
// the name of the file but its bytes.
//
// The bytes are Paddle's (core/io/param_record.h). With `load_as_fp16` tensors become float16. The
// file must have the dtype that Out is declared with: kernels were chosen by that.
#include "core/io/param_record.h"
#include "kernels/io/op_files.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kOut = 0;

struct LoadAttrs {
  std::string path;
  bool as_fp16 = false;
  int64_t seek = -1;                // of `load`
  std::vector<int64_t> shape = {};  // with `seek`
  bool from_memory = false;         // of `load_combine`
};

LoadAttrs ReadLoad(AttrReader& reader) {
  LoadAttrs attrs = {.path = reader.String("file_path", ""),
                     .as_fp16 = reader.Bool("load_as_fp16", false),
                     .seek = reader.Long("seek", -1),
                     .shape = reader.Ints("shape")};
  if (attrs.seek < -1) {
    reader.Fail(absl::StrCat("attribute 'seek' is ", attrs.seek, ", expected -1 or more"));
  }
  return attrs;
}

LoadAttrs ReadLoadCombine(AttrReader& reader) {
  return {.path = reader.String("file_path", ""),
          .as_fp16 = reader.Bool("load_as_fp16", false),
          .from_memory = reader.Bool("model_from_memory", false)};
}

// No dtype to choose a kernel by: outputs keep those that they are declared with.
DType NoDType(const DTypeContext&) { return DType::kUndefined; }

void OutputDTypes(DTypeContext& ctx) {
  if (ctx.attrs<LoadAttrs>().as_fp16) ctx.Set(kOut, DType::kFloat16);
}

// The part of a record's tensor that is wanted.
struct Part {
  int64_t first = 0;  // element
  Shape shape = {};
  Lod lod = {};
};

absl::StatusOr<Part> PartOf(const LoadAttrs& attrs, const ParamRecord& record) {
  if (attrs.seek < 0) return Part{.shape = record.shape, .lod = record.lod};
  const auto rank = static_cast<int64_t>(attrs.shape.size());
  const auto fail = [&](absl::string_view why) {
    return InvalidArgument("attribute 'shape' ", why, ", with 'seek' ", attrs.seek,
                           " in a file of ", Name(record.dtype), ToString(record.shape));
  };
  if (rank == 0 || rank > kMaxRank) return fail(absl::StrCat("has ", rank, " dims"));
  const Shape shape(attrs.shape);
  const std::optional<int64_t> numel = shape.CheckedNumel();
  if (!numel.has_value() || *numel > record.shape.numel() - attrs.seek) {
    return fail(absl::StrCat("is ", ToString(shape)));
  }
  return Part{.first = attrs.seek, .shape = shape};
}

// Gives `out` part of a record. Its memory is the system's: parameters outlive the core.
absl::Status LoadPart(const KernelContext& ctx, const ParamRecord& record, const Part& part,
                      absl::string_view file, Tensor& out) {
  Tensor loaded;
  loaded.dtype = record.dtype;
  loaded.shape = part.shape;
  loaded.lod = part.lod;
  INTERP_RETURN_IF_ERROR(loaded.Allocate(SystemAllocator()));
  CopyElements(record, file, part.first, loaded);
  if (ctx.attrs<LoadAttrs>().as_fp16) {
    INTERP_ASSIGN_OR_RETURN(loaded, AsFloat16(ctx, loaded));
  }
  if (out.dtype != DType::kUndefined && out.dtype != loaded.dtype) {
    return InvalidArgument("the file has ", DescribeType(loaded), ", the variable is declared as ",
                           Name(out.dtype));
  }
  out = std::move(loaded);
  return absl::OkStatus();
}

absl::Status CheckAtEnd(const ParamRecordReader& reader, absl::string_view last) {
  if (reader.at_end()) return absl::OkStatus();
  return InvalidArgument("byte ", reader.position(), ": ", reader.left(), " bytes follow ", last);
}

absl::Status LoadFile(const KernelContext& ctx, absl::string_view file) {
  const auto& attrs = ctx.attrs<LoadAttrs>();
  ParamRecordReader reader(file);
  if (!OutputIsRows(ctx, kOut)) {
    INTERP_ASSIGN_OR_RETURN(const ParamRecord record, reader.Next());
    INTERP_RETURN_IF_ERROR(CheckAtEnd(reader, "the tensor"));
    INTERP_ASSIGN_OR_RETURN(const Part part, PartOf(attrs, record));
    return LoadPart(ctx, record, part, file, ctx.output(kOut));
  }
  if (attrs.seek >= 0 || attrs.as_fp16) {
    return Unimplemented(
        "selected rows are loaded whole and as they are, without 'seek' and "
        "'load_as_fp16'");
  }
  RowIndex index;
  INTERP_ASSIGN_OR_RETURN(const ParamRecord record, reader.NextRows(index));
  INTERP_RETURN_IF_ERROR(CheckAtEnd(reader, "the selected rows"));
  Variable& out = ctx.output_variable(kOut);
  INTERP_RETURN_IF_ERROR(LoadPart(ctx, record, {.shape = record.shape}, file, out.tensor));
  out.selected_rows = std::move(index);
  return absl::OkStatus();
}

absl::Status Load(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LoadAttrs>();
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, FileToRead(ctx, attrs.path));
  return Annotate(LoadFile(ctx, BytesOf(file)), absl::StrCat("'", attrs.path, "'"));
}

absl::Status LoadAll(const KernelContext& ctx, absl::string_view file) {
  ParamRecordReader reader(file);
  const auto outputs = ctx.outputs(kOut);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (reader.at_end()) {
      return InvalidArgument("byte ", reader.position(), ": the file ends before tensor ", i + 1,
                             " of ", outputs.size());
    }
    INTERP_ASSIGN_OR_RETURN(const ParamRecord record, reader.Next());
    if (outputs[i] == nullptr) continue;
    const absl::Status status =
        LoadPart(ctx, record, {.shape = record.shape, .lod = record.lod}, file, *outputs[i]);
    if (!status.ok()) {
      return Annotate(
          status, absl::StrCat("byte ", record.offset, ": tensor ", i + 1, " of ", outputs.size()));
    }
  }
  return CheckAtEnd(reader, absl::StrCat("the last of ", outputs.size(), " tensors"));
}

absl::Status LoadCombine(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LoadAttrs>();
  if (attrs.from_memory) {
    return Annotate(LoadAll(ctx, attrs.path), "the bytes of attribute 'file_path'");
  }
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, FileToRead(ctx, attrs.path));
  return Annotate(LoadAll(ctx, BytesOf(file)), absl::StrCat("'", attrs.path, "'"));
}

OpDef LoadDef(absl::string_view type, int out_flags, KernelFn run,
              absl::StatusOr<ParsedAttrs> (*parse)(AttrReader&)) {
  return OpDef{
      .type = type,
      .inputs = {},
      .outputs = {{"Out", out_flags}},
      .parse = parse,
      .kernel_dtype = NoDType,
      .infer_dtype = OutputDTypes,
      .kernels = {{DType::kUndefined, run}},
      .dynamic_outputs = true,
      // What it gives depends on the file: it keeps its place among the ops that write files.
      .side_effect = true,
      .host_only = true,
  };
}

INTERP_REGISTER_OP(LoadDef("load", kMayBeRows, Load, ParseAttrs<LoadAttrs, ReadLoad>));
INTERP_REGISTER_OP(LoadDef("load_combine", kVariadic, LoadCombine,
                           ParseAttrs<LoadAttrs, ReadLoadCombine>));

}  // namespace
}  // namespace interp
