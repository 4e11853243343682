#include "kernels/io/op_files.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "core/element_types.h"
#include "core/io/file_folder.h"
#include "core/io/params.h"
#include "core/resource/place_resources.h"
#include "kernels/util/convert_elements.h"

namespace interp {
namespace {

// The core gives its folder when it has one; nobody else makes it.
absl::StatusOr<const FileFolder*> FolderOf(const KernelContext& ctx) {
  return ctx.place_resources().GetOrMake<FileFolder>(
      "", []() -> absl::StatusOr<std::unique_ptr<FileFolder>> {
        return absl::PermissionDeniedError(
            "the program may not use files; to let it, name a folder for them "
            "(--allow-files, CoreOptions::file_folder)");
      });
}

}  // namespace

SaveAttrs SaveAttrs::Read(AttrReader& reader) {
  return {.path = reader.String("file_path", ""),
          .overwrite = reader.Bool("overwrite", true),
          .as_fp16 = reader.Bool("save_as_fp16", false)};
}

absl::StatusOr<std::string> FileToWrite(const KernelContext& ctx, const SaveAttrs& attrs) {
  INTERP_ASSIGN_OR_RETURN(const FileFolder* const folder, FolderOf(ctx));
  INTERP_ASSIGN_OR_RETURN(std::string path, folder->ResolveForWriting(attrs.path));
  std::error_code error;
  if (attrs.overwrite || !std::filesystem::exists(path, error)) return path;
  return absl::AlreadyExistsError(
      absl::StrCat("'", path, "' exists already, and attribute 'overwrite' is false"));
}

absl::StatusOr<BufferRef> FileToRead(const KernelContext& ctx, const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const FileFolder* const folder, FolderOf(ctx));
  INTERP_ASSIGN_OR_RETURN(const std::string file, folder->Resolve(path));
  return MapAsBuffer(file);
}

absl::StatusOr<Tensor> AsFloat16(const KernelContext& ctx, const Tensor& tensor) {
  if (tensor.dtype == DType::kFloat16) return tensor;
  Tensor out;
  out.dtype = DType::kFloat16;
  out.shape = tensor.shape;
  out.lod = tensor.lod;
  INTERP_RETURN_IF_ERROR(out.Allocate(SystemAllocator()));
  const bool is_number = WithNumber(tensor.dtype, [&]<typename T>() {
    ConvertElements(ctx.num_threads(), tensor.data<T>(), tensor.numel(),
                    out.mutable_data<float16>());
  });
  if (is_number) return out;
  return Unimplemented("conversion of ", Name(tensor.dtype), " to float16 is not supported");
}

}  // namespace interp
