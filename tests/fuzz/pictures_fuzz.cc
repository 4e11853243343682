// Any bytes as a list of pictures: an error, or a list that survives being written and read again.
#include <cstdint>
#include <cstdlib>

#include "tools/picture_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace interp;  // NOLINT(google-build-using-namespace)
  const absl::StatusOr<PictureList> list =
      ParsePictureList({reinterpret_cast<const char*>(data), size});
  if (!list.ok() || !CheckListable(*list).ok()) return 0;
  const std::string text = FormatPictureList(*list);
  const absl::StatusOr<PictureList> again = ParsePictureList(text);
  if (!again.ok() || FormatPictureList(*again) != text) std::abort();
  return 0;
}
