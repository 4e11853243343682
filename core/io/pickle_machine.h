// PickleMachine: runs the opcodes of a pickle on a stack of values.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/io/pickle.h"

namespace interp {

// What the known names of functions and classes mean.
enum class PickleFunction : int8_t {
  kReconstruct,  // numpy: an array that BUILD fills
  kNdarray,
  kDtype,
  kScalar,
  kFromBuffer,
  kEncode,  // of a string in which each character stands for a byte
  kOrderedDict,
  kBytes,
  kTuple,
};

class PickleMachine {
 public:
  explicit PickleMachine(absl::string_view file) : file_(file) {}

  absl::StatusOr<Pickle> Run();

 private:
  struct OpcodeRow;
  static const OpcodeRow* FindOpcode(uint8_t code);

  // --- opcodes; the argument is that of their row ---
  absl::Status Proto(int);
  absl::Status Frame(int);
  absl::Status Mark(int);
  absl::Status Pop(int);
  absl::Status None(int);
  absl::Status Bool(int value);
  absl::Status Int(int size_bytes);
  absl::Status Long(int length_bytes);
  absl::Status Float(int);
  absl::Status String(int length_bytes);
  absl::Status Bytes(int length_bytes);
  absl::Status Empty(int kind);
  absl::Status TupleOf(int count);
  absl::Status TupleFromMark(int);
  absl::Status Append(int);
  absl::Status Appends(int);
  absl::Status SetItem(int);
  absl::Status SetItems(int);
  absl::Status Put(int index_bytes);
  absl::Status Get(int index_bytes);
  absl::Status Memoize(int);
  absl::Status Global(int);
  absl::Status StackGlobal(int);
  absl::Status Reduce(int);
  absl::Status Build(int);

  // --- calls of known functions ---
  using Items = std::vector<int32_t>;
  absl::Status CallDtype(const Items& arguments);
  absl::Status CallScalar(const Items& arguments);
  absl::Status CallFromBuffer(const Items& arguments);
  absl::Status CallEncode(const Items& arguments);
  absl::Status BuildDtype(PickleArray& dtype, const Items& state);
  absl::Status BuildArray(PickleArray& array, const Items& state);
  absl::Status FillArray(PickleArray& array, int32_t dtype, int32_t shape, bool fortran_order,
                         int32_t elements);

  // --- the file and the stack ---
  absl::Status Fail(absl::string_view what) const;         // DataLoss at the opcode
  absl::Status Unsupported(absl::string_view what) const;  // Unimplemented at the opcode
  // The next little-endian number, or bytes that a length of so many bytes precedes.
  absl::StatusOr<uint64_t> ReadNumber(int size_bytes);
  absl::StatusOr<absl::string_view> ReadCounted(int length_bytes);
  absl::StatusOr<absl::string_view> ReadLine();
  absl::Status Push(int32_t value);
  absl::Status PushNew(PickleKind kind, int64_t number);
  absl::Status PushText(PickleKind kind, absl::string_view text);
  absl::Status PushArray(PickleKind kind, PickleArray array);
  absl::Status PushFunction(absl::string_view module, absl::string_view name);
  // The top of the stack above the last mark.
  absl::StatusOr<int32_t> TakeTop();
  absl::StatusOr<Items> TakeToMark();
  // The items of the list or dict on top, to which more are added.
  absl::StatusOr<Items*> TopItems(PickleKind kind);
  bool Is(int32_t value, PickleKind kind) const { return pickle_.at(value).kind == kind; }
  bool IsFunction(int32_t value, PickleFunction function) const;

  absl::string_view file_;
  size_t position_ = 0;
  size_t opcode_at_ = 0;
  size_t decoded_bytes_ = 0;
  Pickle pickle_;
  Items stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  absl::flat_hash_map<uint64_t, int32_t> memo_;
};

}  // namespace interp
