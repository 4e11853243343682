// read_file: Out = the bytes of the file `filename`, uint8[size], in the folder that the run may
// use for files.
#include <cstring>

#include "kernels/io/op_files.h"

namespace interp::read_file {
namespace {

constexpr int kOut = 0;

struct Attrs {
  std::string path;
  static Attrs Read(AttrReader& reader) { return {reader.String("filename", "")}; }
};

DType NoDType(const DTypeContext&) { return DType::kUndefined; }

void InferDTypes(DTypeContext& ctx) { ctx.Set(kOut, DType::kUInt8); }

absl::Status Run(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, FileToRead(ctx, ctx.attrs<Attrs>().path));
  Tensor& out = ctx.output(kOut);
  out.shape = {static_cast<int64_t>(file->size_bytes)};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  if (file->size_bytes > 0) std::memcpy(out.mutable_raw_data(), file->data, file->size_bytes);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "read_file",
    .inputs = {},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<Attrs, Attrs::Read>,
    .kernel_dtype = NoDType,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kUndefined, Run}},
    .dynamic_outputs = true,
    // What it gives depends on the file: it keeps its place among the ops that write files.
    .side_effect = true,
    .host_only = true,
    .gradient = {.none = true},
});

}  // namespace
}  // namespace interp::read_file
