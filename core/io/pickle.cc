#include "core/io/pickle.h"

#include <bit>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "core/io/pickle_machine.h"

namespace interp {
namespace {

constexpr int kProtoOpcode = 0x80;
constexpr int kOldestProtocol = 2;
constexpr int kNewestProtocol = 5;

struct FunctionRow {
  absl::string_view module;
  absl::string_view name;
  PickleFunction function;
};

// NumPy 2 and Python 2 have other modules for the same things.
constexpr FunctionRow kFunctions[] = {
    {"numpy.core.multiarray", "_reconstruct", PickleFunction::kReconstruct},
    {"numpy._core.multiarray", "_reconstruct", PickleFunction::kReconstruct},
    {"numpy.core.multiarray", "scalar", PickleFunction::kScalar},
    {"numpy._core.multiarray", "scalar", PickleFunction::kScalar},
    {"numpy.core.numeric", "_frombuffer", PickleFunction::kFromBuffer},
    {"numpy._core.numeric", "_frombuffer", PickleFunction::kFromBuffer},
    {"numpy", "ndarray", PickleFunction::kNdarray},
    {"numpy", "dtype", PickleFunction::kDtype},
    {"_codecs", "encode", PickleFunction::kEncode},
    {"collections", "OrderedDict", PickleFunction::kOrderedDict},
    {"builtins", "bytes", PickleFunction::kBytes},
    {"__builtin__", "bytes", PickleFunction::kBytes},
    {"builtins", "tuple", PickleFunction::kTuple},
    {"__builtin__", "tuple", PickleFunction::kTuple},
};

}  // namespace

// --- Pickle ---

absl::string_view Pickle::TextOf(int32_t value) const {
  const PickleValue& v = at(value);
  const bool text = v.kind == PickleKind::kString || v.kind == PickleKind::kBytes;
  return text ? texts[v.number] : absl::string_view();
}

const std::vector<int32_t>& Pickle::ItemsOf(int32_t value) const {
  static const auto& none = *new std::vector<int32_t>;
  const PickleValue& v = at(value);
  const bool holds =
      v.kind == PickleKind::kTuple || v.kind == PickleKind::kList || v.kind == PickleKind::kDict;
  return holds ? items[v.number] : none;
}

const PickleArray* Pickle::ArrayOf(int32_t value) const {
  const PickleValue& v = at(value);
  if (v.kind != PickleKind::kArray || !arrays[v.number].complete) return nullptr;
  return &arrays[v.number];
}

bool IsPickle(absl::string_view bytes) {
  return bytes.size() >= 2 && static_cast<uint8_t>(bytes[0]) == kProtoOpcode &&
         bytes[1] >= kOldestProtocol && bytes[1] <= kNewestProtocol;
}

absl::StatusOr<Pickle> ParsePickle(absl::string_view file) { return PickleMachine(file).Run(); }

// --- PickleMachine: the file and the stack ---

absl::Status PickleMachine::Fail(absl::string_view what) const {
  return DataLoss("byte ", opcode_at_, ": ", what);
}

absl::Status PickleMachine::Unsupported(absl::string_view what) const {
  return Unimplemented("byte ", opcode_at_, ": ", what);
}

absl::StatusOr<uint64_t> PickleMachine::ReadNumber(int size_bytes) {
  if (file_.size() - position_ < static_cast<size_t>(size_bytes)) return Fail("the file ends here");
  uint64_t number = 0;  // little endian, as the machine
  std::memcpy(&number, file_.data() + position_, size_bytes);
  position_ += size_bytes;
  return number;
}

absl::StatusOr<absl::string_view> PickleMachine::ReadCounted(int length_bytes) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t length, ReadNumber(length_bytes));
  if (length > file_.size() - position_) {
    return Fail(absl::StrCat(length, " bytes of content, but only ", file_.size() - position_,
                             " are left"));
  }
  const absl::string_view bytes = file_.substr(position_, length);
  position_ += length;
  return bytes;
}

absl::StatusOr<absl::string_view> PickleMachine::ReadLine() {
  const size_t end = file_.find('\n', position_);
  if (end == absl::string_view::npos) return Fail("a line does not end");
  const absl::string_view line = file_.substr(position_, end - position_);
  position_ = end + 1;
  return line;
}

absl::Status PickleMachine::Push(int32_t value) {
  if (stack_.size() >= kMaxPickleValues) return Unsupported("too many values");
  stack_.push_back(value);
  return absl::OkStatus();
}

absl::Status PickleMachine::PushNew(PickleKind kind, int64_t number) {
  if (pickle_.values.size() >= kMaxPickleValues) return Unsupported("too many values");
  pickle_.values.push_back({.kind = kind, .number = number, .offset = opcode_at_});
  return Push(static_cast<int32_t>(pickle_.values.size() - 1));
}

absl::Status PickleMachine::PushText(PickleKind kind, absl::string_view text) {
  pickle_.texts.push_back(text);
  return PushNew(kind, std::ssize(pickle_.texts) - 1);
}

absl::Status PickleMachine::PushArray(PickleKind kind, PickleArray array) {
  pickle_.arrays.push_back(std::move(array));
  return PushNew(kind, std::ssize(pickle_.arrays) - 1);
}

absl::StatusOr<int32_t> PickleMachine::TakeTop() {
  const size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= bottom) return Fail("the stack is empty");
  const int32_t top = stack_.back();
  stack_.pop_back();
  return top;
}

absl::StatusOr<PickleMachine::Items> PickleMachine::TakeToMark() {
  if (marks_.empty()) return Fail("there is no mark on the stack");
  Items items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

absl::StatusOr<PickleMachine::Items*> PickleMachine::TopItems(PickleKind kind) {
  const size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= bottom || !Is(stack_.back(), kind)) {
    return Fail(kind == PickleKind::kDict ? "no dict to put items in" : "no list to put items in");
  }
  return &pickle_.items[pickle_.at(stack_.back()).number];
}

bool PickleMachine::IsFunction(int32_t value, PickleFunction function) const {
  const PickleValue& v = pickle_.at(value);
  return v.kind == PickleKind::kGlobal && v.number == static_cast<int64_t>(function);
}

// --- opcodes ---

absl::Status PickleMachine::Proto(int) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t protocol, ReadNumber(1));
  if (protocol >= kOldestProtocol && protocol <= kNewestProtocol) return absl::OkStatus();
  return Unsupported(absl::StrCat("pickle protocol ", protocol, ", expected ", kOldestProtocol,
                                  " to ", kNewestProtocol));
}

// Frames tell readers of streams how much to read at once.
absl::Status PickleMachine::Frame(int) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t length, ReadNumber(8));
  return length <= file_.size() - position_ ? absl::OkStatus()
                                            : Fail("a frame reaches over the end of the file");
}

absl::Status PickleMachine::Mark(int) {
  if (marks_.size() >= kMaxPickleValues) return Unsupported("too many marks");
  marks_.push_back(stack_.size());
  return absl::OkStatus();
}

absl::Status PickleMachine::Pop(int) { return TakeTop().status(); }
absl::Status PickleMachine::None(int) { return PushNew(PickleKind::kNone, 0); }
absl::Status PickleMachine::Bool(int value) { return PushNew(PickleKind::kInt, value); }

absl::Status PickleMachine::Int(int size_bytes) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t number, ReadNumber(size_bytes));
  // Only the longest is signed.
  return PushNew(PickleKind::kInt,
                 size_bytes == 4 ? static_cast<int32_t>(number) : static_cast<int64_t>(number));
}

absl::Status PickleMachine::Long(int length_bytes) {
  INTERP_ASSIGN_OR_RETURN(const absl::string_view bytes, ReadCounted(length_bytes));
  if (bytes.size() > sizeof(int64_t)) return Unsupported("an integer of more than 64 bits");
  const bool negative = !bytes.empty() && (static_cast<uint8_t>(bytes.back()) & 0x80) != 0;
  int64_t number = negative ? -1 : 0;
  if (!bytes.empty()) std::memcpy(&number, bytes.data(), bytes.size());
  return PushNew(PickleKind::kInt, number);
}

absl::Status PickleMachine::Float(int) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t bits, ReadNumber(8));  // big endian
  pickle_.floats.push_back(std::bit_cast<double>(__builtin_bswap64(bits)));
  return PushNew(PickleKind::kFloat, std::ssize(pickle_.floats) - 1);
}

absl::Status PickleMachine::String(int length_bytes) {
  INTERP_ASSIGN_OR_RETURN(const absl::string_view text, ReadCounted(length_bytes));
  return PushText(PickleKind::kString, text);
}

absl::Status PickleMachine::Bytes(int length_bytes) {
  INTERP_ASSIGN_OR_RETURN(const absl::string_view bytes, ReadCounted(length_bytes));
  return PushText(PickleKind::kBytes, bytes);
}

absl::Status PickleMachine::Empty(int kind) {
  pickle_.items.emplace_back();
  return PushNew(static_cast<PickleKind>(kind), std::ssize(pickle_.items) - 1);
}

absl::Status PickleMachine::TupleOf(int count) {
  Items items(count);
  for (int i = count - 1; i >= 0; --i) {
    INTERP_ASSIGN_OR_RETURN(items[i], TakeTop());
  }
  pickle_.items.push_back(std::move(items));
  return PushNew(PickleKind::kTuple, std::ssize(pickle_.items) - 1);
}

absl::Status PickleMachine::TupleFromMark(int) {
  INTERP_ASSIGN_OR_RETURN(Items items, TakeToMark());
  pickle_.items.push_back(std::move(items));
  return PushNew(PickleKind::kTuple, std::ssize(pickle_.items) - 1);
}

absl::Status PickleMachine::Append(int) {
  INTERP_ASSIGN_OR_RETURN(const int32_t item, TakeTop());
  INTERP_ASSIGN_OR_RETURN(Items * list, TopItems(PickleKind::kList));
  list->push_back(item);
  return absl::OkStatus();
}

absl::Status PickleMachine::Appends(int) {
  INTERP_ASSIGN_OR_RETURN(const Items items, TakeToMark());
  INTERP_ASSIGN_OR_RETURN(Items * list, TopItems(PickleKind::kList));
  list->insert(list->end(), items.begin(), items.end());
  return absl::OkStatus();
}

absl::Status PickleMachine::SetItem(int) {
  INTERP_ASSIGN_OR_RETURN(const int32_t value, TakeTop());
  INTERP_ASSIGN_OR_RETURN(const int32_t key, TakeTop());
  INTERP_ASSIGN_OR_RETURN(Items * dict, TopItems(PickleKind::kDict));
  dict->insert(dict->end(), {key, value});
  return absl::OkStatus();
}

absl::Status PickleMachine::SetItems(int) {
  INTERP_ASSIGN_OR_RETURN(const Items items, TakeToMark());
  if (items.size() % 2 != 0) return Fail("a key without its value");
  INTERP_ASSIGN_OR_RETURN(Items * dict, TopItems(PickleKind::kDict));
  dict->insert(dict->end(), items.begin(), items.end());
  return absl::OkStatus();
}

absl::Status PickleMachine::Put(int index_bytes) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t index, ReadNumber(index_bytes));
  if (stack_.empty()) return Fail("the stack is empty");
  memo_[index] = stack_.back();
  return absl::OkStatus();
}

absl::Status PickleMachine::Get(int index_bytes) {
  INTERP_ASSIGN_OR_RETURN(const uint64_t index, ReadNumber(index_bytes));
  const auto it = memo_.find(index);
  if (it == memo_.end()) return Fail(absl::StrCat("no value ", index, " was remembered"));
  return Push(it->second);
}

absl::Status PickleMachine::Memoize(int) {
  if (stack_.empty()) return Fail("the stack is empty");
  memo_[memo_.size()] = stack_.back();
  return absl::OkStatus();
}

absl::Status PickleMachine::PushFunction(absl::string_view module, absl::string_view name) {
  for (const FunctionRow& row : kFunctions) {
    if (row.module != module || row.name != name) continue;
    return PushNew(PickleKind::kGlobal, static_cast<int64_t>(row.function));
  }
  return Unsupported(absl::StrCat(
      "it wants to call '", absl::Utf8SafeCEscape(module), ".", absl::Utf8SafeCEscape(name),
      "', and only arrays, dicts, lists, strings and numbers are read"));
}

absl::Status PickleMachine::Global(int) {
  INTERP_ASSIGN_OR_RETURN(const absl::string_view module, ReadLine());
  INTERP_ASSIGN_OR_RETURN(const absl::string_view name, ReadLine());
  return PushFunction(module, name);
}

absl::Status PickleMachine::StackGlobal(int) {
  INTERP_ASSIGN_OR_RETURN(const int32_t name, TakeTop());
  INTERP_ASSIGN_OR_RETURN(const int32_t module, TakeTop());
  return PushFunction(pickle_.TextOf(module), pickle_.TextOf(name));
}

// --- the table of opcodes ---

struct PickleMachine::OpcodeRow {
  uint8_t code;
  absl::Status (PickleMachine::*run)(int argument);
  int argument = 0;
};

const PickleMachine::OpcodeRow* PickleMachine::FindOpcode(uint8_t code) {
  using M = PickleMachine;
  constexpr auto kTuple = static_cast<int>(PickleKind::kTuple);
  constexpr auto kList = static_cast<int>(PickleKind::kList);
  constexpr auto kDict = static_cast<int>(PickleKind::kDict);
  // In the order of how often they come.
  static constexpr OpcodeRow kRows[] = {
      {'q', &M::Put, 1},         {0x94, &M::Memoize},      {'h', &M::Get, 1},
      {'K', &M::Int, 1},         {'M', &M::Int, 2},        {'J', &M::Int, 4},
      {'X', &M::String, 4},      {0x8c, &M::String, 1},    {0x8d, &M::String, 8},
      {'C', &M::Bytes, 1},       {'B', &M::Bytes, 4},      {0x8e, &M::Bytes, 8},
      {'(', &M::Mark},           {'t', &M::TupleFromMark}, {0x85, &M::TupleOf, 1},
      {0x86, &M::TupleOf, 2},    {0x87, &M::TupleOf, 3},   {'R', &M::Reduce},
      {'b', &M::Build},          {'N', &M::None},          {0x88, &M::Bool, 1},
      {0x89, &M::Bool, 0},       {'u', &M::SetItems},      {'s', &M::SetItem},
      {'e', &M::Appends},        {'a', &M::Append},        {'}', &M::Empty, kDict},
      {']', &M::Empty, kList},   {')', &M::Empty, kTuple}, {'r', &M::Put, 4},
      {'j', &M::Get, 4},         {'c', &M::Global},        {0x93, &M::StackGlobal},
      {'G', &M::Float},          {0x8a, &M::Long, 1},      {0x8b, &M::Long, 4},
      {'U', &M::Bytes, 1},       {'T', &M::Bytes, 4},      {0x96, &M::Bytes, 8},
      {kProtoOpcode, &M::Proto}, {0x95, &M::Frame},        {'0', &M::Pop},
  };
  for (const OpcodeRow& row : kRows) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

absl::StatusOr<Pickle> PickleMachine::Run() {
  constexpr uint8_t kStop = '.';
  if (!IsPickle(file_)) return Fail("no pickle of protocol 2 to 5");
  while (position_ < file_.size()) {
    opcode_at_ = position_;
    const auto code = static_cast<uint8_t>(file_[position_++]);
    if (code == kStop) {
      INTERP_ASSIGN_OR_RETURN(pickle_.root, TakeTop());
      if (position_ == file_.size()) return std::move(pickle_);
      return Fail(absl::StrCat(file_.size() - position_, " bytes follow the end of the pickle"));
    }
    const OpcodeRow* row = FindOpcode(code);
    if (row == nullptr) return Unsupported(absl::StrFormat("opcode 0x%02x", code));
    INTERP_RETURN_IF_ERROR((this->*row->run)(row->argument));
  }
  opcode_at_ = file_.size();
  return Fail("the file ends within the pickle");
}

}  // namespace interp
