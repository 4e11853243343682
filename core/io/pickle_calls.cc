// What a pickle calls: functions of NumPy, OrderedDict and the like.
#include "core/io/pickle_machine.h"

namespace interp {
namespace {

// In a pickle of protocol 2 bytes are a string of the characters 0 to 255, which UTF-8 writes in
// one or two bytes. False for any other character.
bool DecodeLatin1(absl::string_view text, std::string* bytes) {
  bytes->clear();
  bytes->reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c < 0x80) {
      bytes->push_back(text[i]);
      continue;
    }
    const bool pair = (c == 0xc2 || c == 0xc3) && i + 1 < text.size() &&
                      (static_cast<uint8_t>(text[i + 1]) & 0xc0) == 0x80;
    if (!pair) return false;
    ++i;
    bytes->push_back(static_cast<char>((c & 0x03) << 6 | (text[i] & 0x3f)));
  }
  return true;
}

bool IsLatin1(absl::string_view encoding) {
  return encoding == "latin1" || encoding == "latin-1" || encoding == "iso-8859-1";
}

}  // namespace

absl::Status PickleMachine::Reduce(int) {
  INTERP_ASSIGN_OR_RETURN(const int32_t tuple, TakeTop());
  INTERP_ASSIGN_OR_RETURN(const int32_t function, TakeTop());
  if (!Is(function, PickleKind::kGlobal) || !Is(tuple, PickleKind::kTuple)) {
    return Fail("a call of what is no function");
  }
  constexpr size_t kMostArguments = 4;
  if (pickle_.ItemsOf(tuple).size() > kMostArguments)
    return Unsupported("a call of many arguments");
  const Items arguments = pickle_.ItemsOf(tuple);  // a copy: calls add values
  switch (static_cast<PickleFunction>(pickle_.at(function).number)) {
    case PickleFunction::kReconstruct:
      if (arguments.empty() || !IsFunction(arguments[0], PickleFunction::kNdarray)) break;
      return PushArray(PickleKind::kArray, {});
    case PickleFunction::kDtype:
      return CallDtype(arguments);
    case PickleFunction::kScalar:
      return CallScalar(arguments);
    case PickleFunction::kFromBuffer:
      return CallFromBuffer(arguments);
    case PickleFunction::kEncode:
      return CallEncode(arguments);
    case PickleFunction::kOrderedDict:
      if (!arguments.empty()) break;
      return Empty(static_cast<int>(PickleKind::kDict));
    case PickleFunction::kBytes:
      if (!arguments.empty()) break;
      return PushText(PickleKind::kBytes, "");
    case PickleFunction::kTuple:
      if (arguments.size() != 1 || !Is(arguments[0], PickleKind::kTuple)) break;
      return Push(arguments[0]);
    case PickleFunction::kNdarray:
      break;
  }
  return Unsupported("a call with other arguments than are known");
}

absl::Status PickleMachine::CallDtype(const Items& arguments) {
  PickleArray dtype;
  const absl::string_view type = arguments.empty() ? "" : pickle_.TextOf(arguments[0]);
  const absl::Status status = SetNumpyType(type, &dtype.layout);
  return status.ok() ? PushArray(PickleKind::kDtype, dtype) : Unsupported(status.message());
}

absl::Status PickleMachine::CallScalar(const Items& arguments) {
  if (arguments.size() != 2) return Unsupported("a number without its bytes");
  PickleArray array;
  INTERP_RETURN_IF_ERROR(Empty(static_cast<int>(PickleKind::kTuple)));
  INTERP_ASSIGN_OR_RETURN(const int32_t no_dims, TakeTop());
  INTERP_RETURN_IF_ERROR(FillArray(array, arguments[0], no_dims, false, arguments[1]));
  return PushArray(PickleKind::kArray, array);
}

// _frombuffer(elements, dtype, shape, order)
absl::Status PickleMachine::CallFromBuffer(const Items& arguments) {
  if (arguments.size() != 4) return Unsupported("an array without its shape");
  PickleArray array;
  const bool fortran_order = pickle_.TextOf(arguments[3]) == "F";
  INTERP_RETURN_IF_ERROR(FillArray(array, arguments[1], arguments[2], fortran_order, arguments[0]));
  return PushArray(PickleKind::kArray, array);
}

absl::Status PickleMachine::CallEncode(const Items& arguments) {
  if (arguments.size() != 2 || !Is(arguments[0], PickleKind::kString) ||
      !IsLatin1(pickle_.TextOf(arguments[1]))) {
    return Unsupported("an encoding other than latin1");
  }
  const absl::string_view text = pickle_.TextOf(arguments[0]);
  // Nobody needs one text decoded twice.
  if (text.size() > file_.size() - decoded_bytes_) return Fail("the same bytes over and over");
  decoded_bytes_ += text.size();
  std::string& bytes = pickle_.decoded.emplace_back();
  if (!DecodeLatin1(text, &bytes)) return Fail("bytes written as text hold another character");
  return PushText(PickleKind::kBytes, bytes);
}

absl::Status PickleMachine::Build(int) {
  INTERP_ASSIGN_OR_RETURN(const int32_t state, TakeTop());
  INTERP_ASSIGN_OR_RETURN(const int32_t object, TakeTop());
  INTERP_RETURN_IF_ERROR(Push(object));
  const PickleValue& value = pickle_.at(object);
  if (Is(state, PickleKind::kTuple)) {
    if (value.kind == PickleKind::kArray) {
      return BuildArray(pickle_.arrays[value.number], pickle_.ItemsOf(state));
    }
    if (value.kind == PickleKind::kDtype) {
      return BuildDtype(pickle_.arrays[value.number], pickle_.ItemsOf(state));
    }
  }
  return Unsupported("the state of what is no array");
}

// (version, byte order, ...)
absl::Status PickleMachine::BuildDtype(PickleArray& dtype, const Items& state) {
  if (state.size() < 2) return Fail("the state of a dtype without its byte order");
  dtype.layout.big_endian = pickle_.TextOf(state[1]) == ">";
  return absl::OkStatus();
}

// (version, shape, dtype, fortran order, elements)
absl::Status PickleMachine::BuildArray(PickleArray& array, const Items& state) {
  if (state.size() != 5) return Unsupported("the state of an array is not of version 1");
  const bool fortran_order = pickle_.at(state[3]).number != 0;
  return FillArray(array, state[2], state[1], fortran_order, state[4]);
}

absl::Status PickleMachine::FillArray(PickleArray& array, int32_t dtype, int32_t shape,
                                      bool fortran_order, int32_t elements) {
  if (!Is(dtype, PickleKind::kDtype)) return Fail("an array without a dtype");
  if (!Is(shape, PickleKind::kTuple)) return Fail("an array without a shape");
  if (!Is(elements, PickleKind::kBytes)) return Unsupported("elements that are no bytes");
  array.layout = pickle_.arrays[pickle_.at(dtype).number].layout;
  array.layout.fortran_order = fortran_order;
  const Items& dims = pickle_.ItemsOf(shape);
  if (dims.size() > kMaxRank) {
    return Unsupported(absl::StrCat("an array of ", dims.size(), " dims, the most is ", kMaxRank));
  }
  array.layout.shape = Shape();
  for (const int32_t dim : dims) {
    if (!Is(dim, PickleKind::kInt)) return Fail("a dim that is no integer");
    array.layout.shape.push_back(pickle_.at(dim).number);
  }
  const Shape& found = array.layout.shape;
  if (!found.CheckedNumel().has_value()) {
    return Fail(absl::StrCat("dims ", ToString(found), " are negative or too large"));
  }
  array.elements = pickle_.TextOf(elements);
  if (array.elements.size() != array.layout.size_bytes()) {
    return Fail(absl::StrCat(array.elements.size(), " bytes of elements, expected ",
                             array.layout.size_bytes(), " for ", Name(array.layout.dtype),
                             ToString(found)));
  }
  array.complete = true;
  return absl::OkStatus();
}

}  // namespace interp
