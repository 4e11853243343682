// save: writes X, a tensor or selected rows, to the file `file_path`, whose folder is made.
// save_combine: writes all X to one file, in their order.
//
// The bytes are Paddle's (core/io/param_record.h). A file appears whole or not at all. Paddle's
// `save_to_memory`, which gives the bytes to a variable of the host program, is refused.
#include "core/io/param_record.h"
#include "kernels/io/op_files.h"
#include "kernels/util/rows.h"

namespace interp {
namespace {

constexpr int kX = 0;

SaveAttrs ReadSaveCombine(AttrReader& reader) {
  if (reader.Bool("save_to_memory", false)) {
    reader.Fail("attribute 'save_to_memory' is true, only files can be written to");
  }
  return SaveAttrs::Read(reader);
}

absl::Status AppendTensor(const KernelContext& ctx, const SaveAttrs& attrs, const Tensor& x,
                          FileWriter& file) {
  if (!attrs.as_fp16) return AppendRecord(x, file);
  INTERP_ASSIGN_OR_RETURN(const Tensor converted, AsFloat16(ctx, x));
  return AppendRecord(converted, file);
}

absl::Status Save(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SaveAttrs>();
  const bool rows = InputIsRows(ctx, kX);
  if (rows && attrs.as_fp16) {
    return Unimplemented("selected rows cannot be saved as float16");
  }
  if (rows) INTERP_RETURN_IF_ERROR(CheckRows(ctx.input_variable(kX), "X"));
  INTERP_ASSIGN_OR_RETURN(const std::string path, FileToWrite(ctx, attrs));
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  const Variable& x = ctx.input_variable(kX);
  INTERP_RETURN_IF_ERROR(rows ? AppendRowsRecord(*x.selected_rows, x.tensor, file)
                              : AppendTensor(ctx, attrs, ctx.input(kX), file));
  return file.Commit();
}

absl::Status SaveCombine(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<SaveAttrs>();
  INTERP_ASSIGN_OR_RETURN(const std::string path, FileToWrite(ctx, attrs));
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  const auto tensors = ctx.inputs(kX);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] == nullptr) return InvalidArgument("argument #", i, " of 'X' is empty");
    const absl::Status status = AppendTensor(ctx, attrs, *tensors[i], file);
    if (!status.ok()) return Annotate(status, absl::StrCat("argument #", i, " of 'X'"));
  }
  return file.Commit();
}

absl::Status NoOutputs(InferContext&) { return absl::OkStatus(); }

INTERP_REGISTER_OP(OpDef{
    .type = "save",
    .inputs = {{"X", kAnyDType | kMayBeRows}},
    .outputs = {},
    .parse = ParseAttrs<SaveAttrs, SaveAttrs::Read>,
    .infer = NoOutputs,
    .kernels = {{DType::kUndefined, Save}},
    .side_effect = true,
    .host_only = true,
});

INTERP_REGISTER_OP(OpDef{
    .type = "save_combine",
    .inputs = {{"X", kAnyDType | kVariadic}},
    // Programs name it whether or not they ask for it; it is no tensor.
    .outputs = {{"Y", kOptional | kOfSubBlock}},
    .parse = ParseAttrs<SaveAttrs, ReadSaveCombine>,
    .infer = NoOutputs,
    .kernels = {{DType::kUndefined, SaveCombine}},
    .side_effect = true,
    .host_only = true,
});

}  // namespace
}  // namespace interp
