#include "core/program_parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/check_var.h"
#include "core/program_print.h"

namespace interp {
namespace {

// Reads one line from left to right. Errors are sticky: after the first one everything reads as
// empty, so callers look at status() where they loop and at the end.
class Cursor {
 public:
  explicit Cursor(absl::string_view line) : rest_(line) { SkipBlanks(); }

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  bool AtEnd() const { return rest_.empty(); }
  char Peek() const { return rest_.empty() ? '\0' : rest_[0]; }

  void Fail(absl::string_view expected) {
    if (!ok()) return;
    const std::string found =
        AtEnd() ? "the end of the line" : absl::StrCat("'", rest_.substr(0, 20), "'");
    status_ = InvalidArgument("expected ", expected, ", found ", found);
    rest_ = "";
  }

  // Fails when `status`, about what was read, is an error.
  void Reject(const absl::Status& status) {
    if (!ok() || status.ok()) return;
    status_ = status;
    rest_ = "";
  }

  // Takes `text` when it comes next.
  bool Take(absl::string_view text) {
    if (!absl::StartsWith(rest_, text)) return false;
    rest_.remove_prefix(text.size());
    SkipBlanks();
    return true;
  }
  void Expect(absl::string_view text) {
    if (!Take(text)) Fail(absl::StrCat("'", text, "'"));
  }
  // Takes a word that ends at a blank or the end of the line.
  bool TakeWord(absl::string_view word) {
    if (!absl::StartsWith(rest_, word)) return false;
    if (rest_.size() > word.size() &&
        !absl::ascii_isspace(static_cast<unsigned char>(rest_[word.size()]))) {
      return false;
    }
    return Take(word);
  }

  std::string Name() {
    if (Peek() == '"') return Quoted();
    size_t length = 0;
    while (length < rest_.size() && IsBareNameChar(rest_[length]) &&
           !absl::StartsWith(rest_.substr(length), "->")) {
      ++length;
    }
    if (length == 0) Fail("a name");
    return std::string(TakeChars(length));
  }

  std::string Quoted() {
    if (Peek() != '"') {
      Fail("a string in quotes");
      return "";
    }
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    std::string text;
    if (end >= rest_.size() || !absl::CUnescape(rest_.substr(1, end - 1), &text)) {
      Fail("a string in quotes");
      return "";
    }
    TakeChars(end + 1);
    return text;
  }

  template <typename T>
  T Number() {
    T value{};
    const auto result = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (result.ec != std::errc()) {
      Fail("a number in range");
      return T{};
    }
    TakeChars(static_cast<size_t>(result.ptr - rest_.data()));
    return value;
  }

  bool Bool() {
    if (Take("true")) return true;
    if (!Take("false")) Fail("true or false");
    return false;
  }

  // Whether the number that comes next is written as a float.
  bool NextIsFloat() const {
    absl::string_view digits = rest_;
    absl::ConsumePrefix(&digits, "-");
    if (absl::StartsWith(digits, "inf") || absl::StartsWith(digits, "nan")) return true;
    const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
    return end < digits.size() && (digits[end] == '.' || digits[end] == 'e');
  }

  // Reads `item` zero or more times between `open` and `close`, separated by commas.
  template <typename Item>
  void List(absl::string_view open, absl::string_view close, Item item) {
    Expect(open);
    if (Take(close)) return;
    do {
      item();
    } while (ok() && Take(","));
    Expect(close);
  }

 private:
  void SkipBlanks() {
    while (!rest_.empty() && absl::ascii_isspace(static_cast<unsigned char>(rest_[0]))) {
      rest_.remove_prefix(1);
    }
  }
  absl::string_view TakeChars(size_t count) {
    const absl::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    SkipBlanks();
    return taken;
  }

  absl::string_view rest_;
  absl::Status status_;
};

// One overload per type of an attribute's items.
void ReadItem(Cursor& in, int32_t& out) { out = in.Number<int32_t>(); }
void ReadItem(Cursor& in, int64_t& out) { out = in.Number<int64_t>(); }
void ReadItem(Cursor& in, float& out) { out = in.Number<float>(); }
void ReadItem(Cursor& in, double& out) { out = in.Number<double>(); }
void ReadItem(Cursor& in, bool& out) { out = in.Bool(); }
void ReadItem(Cursor& in, std::string& out) { out = in.Quoted(); }
void ReadItem(Cursor& in, BlockIndex& out) { out.index = in.Number<int32_t>(); }
void ReadItem(Cursor& in, VarName& out) { out.name = in.Name(); }
void ReadItem(Cursor& in, Scalar& out) {
  if (in.Peek() == 't' || in.Peek() == 'f') {
    out.value = in.Bool();
  } else if (in.Take("(")) {
    Complex value;
    value.real = in.Number<double>();
    in.Expect(",");
    value.imag = in.Number<double>();
    in.Expect(")");
    out.value = value;
  } else if (in.NextIsFloat()) {
    out.value = in.Number<double>();
  } else {
    out.value = in.Number<int64_t>();
  }
}
template <typename T>
void ReadItem(Cursor& in, std::vector<T>& out) {
  in.List("[", "]", [&] {
    T item{};
    ReadItem(in, item);
    out.push_back(std::move(item));
  });
}
void ReadItem(Cursor& in, BlockIndices& out) { ReadItem(in, out.indices); }
void ReadItem(Cursor& in, VarNames& out) {
  in.List("[", "]", [&] { out.names.push_back(in.Name()); });
}

template <typename T>
AttrValue ReadAs(Cursor& in) {
  T value{};
  ReadItem(in, value);
  return AttrValue(std::in_place_type<T>, std::move(value));
}

template <size_t... I>
constexpr auto MakeReaders(std::index_sequence<I...>) {
  return std::array{&ReadAs<std::variant_alternative_t<I, AttrVariant>>...};
}
// By index of AttrValue's alternatives.
constexpr auto kReaders = MakeReaders(std::make_index_sequence<std::variant_size_v<AttrVariant>>());

// Alternatives of AttrValue that are told by their text alone.
constexpr size_t kInt = 0, kFloat = 1, kString = 2, kBool = 6;
// Index of the list kind of those.
constexpr size_t ListOf(size_t kind) { return kind == kBool ? 7 : kind + 3; }

size_t KindOfNextItem(Cursor& in) {
  if (in.Peek() == '"') return kString;
  if (in.Peek() == 't' || in.Peek() == 'f') return kBool;
  return in.NextIsFloat() ? kFloat : kInt;
}

AttrValue ReadAttrValue(Cursor& in) {
  for (size_t kind = 0; kind < kReaders.size(); ++kind) {
    if (in.Take(absl::StrCat(AttrKindPrefix(kind), ":"))) return kReaders[kind](in);
  }
  if (in.Peek() != '[') return kReaders[KindOfNextItem(in)](in);
  Cursor items = in;
  items.Expect("[");
  return kReaders[ListOf(KindOfNextItem(items))](in);
}

// Position among the flattened arguments of what ArgumentText in program_print.cc writes.
int32_t ReadArgument(Cursor& in, const std::vector<Slot>& slots) {
  if (in.Take("#")) return in.Number<int32_t>();
  const std::string name = in.Name();
  int32_t index = 0;
  if (in.Take("[")) {
    index = in.Number<int32_t>();
    in.Expect("]");
  }
  int32_t begin = 0;
  for (const Slot& slot : slots) {
    if (slot.name == name && index >= 0 && index < std::ssize(slot.args)) return begin + index;
    begin += static_cast<int32_t>(slot.args.size());
  }
  in.Fail(absl::StrCat("an argument of the op, not '", name, "[", index, "]'"));
  return -1;
}

class Parser {
 public:
  absl::Status ParseLine(absl::string_view line) {
    Cursor in(line);
    if (in.AtEnd() || in.Peek() == '#') return absl::OkStatus();
    if (in.TakeWord("program")) {
      in.Expect("version=");
      program_.version = in.Number<int64_t>();
    } else if (in.TakeWord("block")) {
      ParseBlock(in);
    } else if (program_.blocks.empty()) {
      in.Fail("'block 0'");
    } else if (in.TakeWord("var")) {
      ParseVar(in);
    } else {
      ParseOp(in);
    }
    if (in.ok() && !in.AtEnd()) in.Fail("the end of the line");
    return in.status();
  }

  Program Take() && { return std::move(program_); }

 private:
  void ParseBlock(Cursor& in) {
    Block& block = program_.blocks.emplace_back();
    block.idx = in.Number<int32_t>();
    if (in.Take("parent=")) block.parent_idx = in.Number<int32_t>();
    if (in.Take("forward=")) {
      block.has_forward_block_idx = true;
      block.forward_block_idx = in.Number<int32_t>();
    }
  }

  void ParseVar(Cursor& in) {
    Var var;
    var.id = program_.Intern(in.Name());
    while (in.ok() && !in.AtEnd()) ParseVarWord(in, var);
    in.Reject(Annotate(CheckVar(var), absl::StrCat("variable '", program_.NameOf(var.id), "'")));
    program_.blocks.back().vars.push_back(std::move(var));
  }

  void ParseVarWord(Cursor& in, Var& var) {
    if (in.Take("lod=")) {
      var.lod_level = in.Number<int32_t>();
    } else if (in.TakeWord("param")) {
      var.persistable = var.is_parameter = true;
    } else if (in.TakeWord("persistable")) {
      var.persistable = true;
    } else if (in.TakeWord("parameter")) {
      var.is_parameter = true;
    } else if (in.TakeWord("check_feed")) {
      var.need_check_feed = true;
    } else if (in.TakeWord("stop_gradient")) {
      var.stop_gradient = true;
    } else {
      ParseVarType(in, var);
    }
  }

  // "float32[2,3]" or the name of a kind.
  void ParseVarType(Cursor& in, Var& var) {
    const Cursor start = in;
    const std::string word = in.Name();
    if (in.Peek() == '[') {
      const std::optional<DType> dtype = DTypeFromName(word);
      if (!dtype.has_value() && word != Name(DType::kUndefined)) {
        in = start;
        return in.Fail("a type");
      }
      var.dtype = dtype.value_or(DType::kUndefined);
      return ReadItem(in, var.dims);
    }
    int number = 0;
    if (const std::optional<VarKind> kind = VarKindFromName(word)) {
      var.kind = *kind;
    } else if (absl::StartsWith(word, "kind") && absl::SimpleAtoi(word.substr(4), &number)) {
      var.kind = static_cast<VarKind>(number);
    } else if (in.ok()) {
      in = start;
      in.Fail("a type, a kind of variable or a flag");
    }
  }

  void ParseOp(Cursor& in) {
    Op op;
    op.type = in.Name();
    op.inputs = ReadSlots(in);
    in.Expect("->");
    op.outputs = ReadSlots(in);
    if (in.Peek() == '{') {
      in.List("{", "}", [&] {
        Attr& attr = op.attrs.emplace_back();
        attr.name = in.Name();
        in.Expect("=");
        attr.value = ReadAttrValue(in);
      });
    }
    if (in.Take("inplace")) {
      in.List("(", ")", [&] {
        InplacePair& pair = op.inplace.emplace_back();
        pair.input = ReadArgument(in, op.inputs);
        in.Expect("->");
        pair.output = ReadArgument(in, op.outputs);
      });
    }
    op.is_target = op.has_is_target = in.TakeWord("target");
    program_.blocks.back().ops.push_back(std::move(op));
  }

  std::vector<Slot> ReadSlots(Cursor& in) {
    std::vector<Slot> slots;
    in.List("(", ")", [&] {
      Slot& slot = slots.emplace_back();
      slot.name = in.Name();
      in.Expect("=");
      const auto read_arg = [&] { slot.args.push_back(program_.Intern(in.Name())); };
      if (in.Peek() == '[') {
        in.List("[", "]", read_arg);
      } else {
        read_arg();
      }
    });
    return slots;
  }

  Program program_;
};

}  // namespace

absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  Parser parser;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = parser.ParseLine(line);
    if (!status.ok()) return Annotate(status, absl::StrCat("line ", number));
  }
  return std::move(parser).Take();
}

}  // namespace interp
