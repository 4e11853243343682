// A restricted reader of Python's pickles, protocols 2 to 5: what parameter files are made of.
//
// It builds dicts, lists, tuples, strings, bytes, numbers and NumPy arrays, and nothing else. A
// pickle may name any function of Python and call it; here a few names have a fixed meaning
// (numpy's _reconstruct, ndarray, dtype, scalar and _frombuffer, _codecs.encode, OrderedDict,
// builtins' bytes and tuple), and every other one is an error that tells it. Nothing is executed.
//
// Files are untrusted: a length is checked against the file before it is used, values number at
// most kMaxPickleValues, what is decoded takes no more memory than the file, and nothing recurses.
// Errors start with the byte offset.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/io/array_elements.h"
#include "core/status.h"

namespace interp {

// Of one file. An array takes about twenty.
inline constexpr size_t kMaxPickleValues = size_t{1} << 24;

enum class PickleKind : uint8_t {
  kNone,
  kInt,  // and bool
  kFloat,
  kString,
  kBytes,  // Python 2 writes its strings so, too
  kTuple,
  kList,
  kDict,
  kGlobal,  // a function or class by name
  kDtype,
  kArray,
};

// One value. They refer to each other by position: a value may be part of several, even of itself.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  // Of kInt; for others the position in the list of Pickle that holds more of it.
  int64_t number = 0;
  uint64_t offset = 0;  // in the file, of the opcode that made it
};

struct PickleArray {
  ArrayLayout layout;
  absl::string_view elements;  // layout.size_bytes() once complete
  bool complete = false;       // as long as it was not given its content: nothing
};

// The values of a file. Text and elements lie in the file or in `decoded`.
struct Pickle {
  std::vector<PickleValue> values;
  int32_t root = -1;
  std::vector<absl::string_view> texts;     // of strings, bytes
  std::vector<std::vector<int32_t>> items;  // of tuples and lists; of dicts key, value, key, ...
  std::vector<PickleArray> arrays;          // of arrays and dtypes
  std::vector<double> floats;
  std::deque<std::string> decoded;

  const PickleValue& at(int32_t value) const { return values[value]; }
  // Of a string or bytes; else empty.
  absl::string_view TextOf(int32_t value) const;
  // Of a tuple, list or dict; else empty.
  const std::vector<int32_t>& ItemsOf(int32_t value) const;
  // Of an array that is complete; else null.
  const PickleArray* ArrayOf(int32_t value) const;
};

// Whether a file starts like a pickle of these protocols.
bool IsPickle(absl::string_view bytes);

// The values of a whole file, which must outlive them. Errors: DataLoss for what is no pickle or
// cut off, Unimplemented for functions, types and opcodes that are not read.
absl::StatusOr<Pickle> ParsePickle(absl::string_view file);

}  // namespace interp
