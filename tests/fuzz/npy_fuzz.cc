// Any bytes as a .npy or .npz file: an error, or arrays that survive being written and read again.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/io/npy.h"
#include "core/io/npz.h"

namespace {

using namespace interp;  // NOLINT(google-build-using-namespace)

void CheckRoundTrip(const Tensor& tensor) {
  const absl::StatusOr<NpyParts> parts = FormatNpy(tensor);
  if (!parts.ok()) std::abort();
  const absl::StatusOr<Tensor> back = ParseNpy(absl::StrCat(parts->header, parts->element_bytes()));
  if (!back.ok() || DescribeType(*back) != DescribeType(tensor)) std::abort();
  if (std::memcmp(back->raw_data(), tensor.raw_data(), tensor.size_bytes()) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  if (const absl::StatusOr<Tensor> tensor = ParseNpy(file); tensor.ok()) CheckRoundTrip(*tensor);
  const absl::StatusOr<std::vector<NamedTensor>> tensors = ParseNpz(file);
  if (!tensors.ok()) return 0;
  for (const auto& [name, tensor] : *tensors) CheckRoundTrip(tensor);
  return 0;
}
