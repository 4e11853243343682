#include "core/io/file_kind.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace interp {
namespace {

struct Magic {
  absl::string_view bytes;
  const char* hint;
};
constexpr absl::string_view kZip("PK\x03\x04", 4);
constexpr Magic kMagics[] = {
    {absl::string_view("\x93NUMPY", 6), "it is a NumPy array; feeds are given with --feed"},
    {kZip, "it is a zip archive, as .npz and PyTorch's files are"},
    {absl::string_view("\x1f\x8b", 2), "it is compressed with gzip; unpack it first"},
    {absl::string_view("\x89PNG\r\n", 6), "it is a picture; feeds are given with --feed"},
    {absl::string_view("\xff\xd8\xff", 3), "it is a picture; feeds are given with --feed"},
    {absl::string_view("\x89HDF\r\n", 6), "it is an HDF5 file, as of Keras"},
    {absl::string_view("\x80\x02", 2),
     "it is a pickle, as .pdparams files are; give it as --params"},
    {absl::string_view("\x80\x04", 2),
     "it is a pickle, as .pdparams files are; give it as --params"},
};

// The first field of a ModelProto is its version, a small number; the second names who made it.
bool LooksLikeOnnx(absl::string_view path, absl::string_view bytes) {
  return absl::EndsWith(path, ".onnx") || (bytes.size() > 3 && bytes[0] == 0x08 && bytes[1] > 0 &&
                                           bytes[1] < 32 && bytes[2] == 0x12);
}

bool LooksLikePir(absl::string_view path, absl::string_view bytes) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(bytes.substr(0, 64));
  return absl::StartsWith(text, "{") && (absl::EndsWith(path, ".json") ||
                                         absl::StrContains(bytes.substr(0, 256), "\"base_code\""));
}

// A parameter file starts with two versions that are 0, with the number of LoD levels in between.
bool LooksLikeParams(absl::string_view bytes) {
  return bytes.size() >= 16 &&
         bytes.substr(0, 16) == absl::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
}

}  // namespace

std::string ForeignFileHint(absl::string_view path, absl::string_view bytes) {
  if (bytes.empty()) return "the file is empty";
  if (LooksLikeOnnx(path, bytes)) {
    return "it is an ONNX model, expected a program of Paddle; X2Paddle converts such models";
  }
  if (LooksLikePir(path, bytes)) {
    return "it is a program of Paddle 3 (JSON), expected one of Paddle 0 to 2.6; save it with "
           "FLAGS_enable_pir_api=0 in the environment";
  }
  if (LooksLikeParams(bytes)) return "it is a parameter file; give it as --params";
  for (const Magic& magic : kMagics) {
    if (absl::StartsWith(bytes, magic.bytes)) return magic.hint;
  }
  if (absl::StartsWith(bytes, "program version=")) {
    return "it is the text of a program; a file with such text ends in .txt";
  }
  return "";
}

}  // namespace interp
