// JsonWriter appends JSON text to a string, for dumps: core does not link a JSON library.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace interp {

// Call Begin/End in pairs, Key before each value of an object; commas are the writer's business.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Field("idx", 0);
//   json.Key("ops");
//   json.BeginArray();
//   json.EndArray();
//   json.EndObject();
//   return std::move(json).Take();  // {"idx":0,"ops":[]}
//
// The output is valid JSON for any input: bytes that are no UTF-8 become U+FFFD; infinities and
// NaN, which JSON lacks, become the strings "inf", "-inf" and "nan"; a value that does not exist is
// null. Doubles are written in the shortest form that reads back as the same value.
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(absl::string_view name);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(bool value) { Raw(value ? "true" : "false"); }
  void Value(std::integral auto value) { Raw(std::to_string(value)); }
  void Value(float value);
  void Value(double value);
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value.has_value()) {
      Value(*value);
    } else {
      Raw("null");
    }
  }

  template <typename T>
  void Field(absl::string_view name, const T& value) {
    Key(name);
    Value(value);
  }

  // Puts the next value of an array on a line of its own, so that dumps can be diffed.
  void Line() { line_ = true; }

  std::string Take() && { return std::move(text_); }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Raw(absl::string_view text);
  void Separate();

  std::string text_;
  bool first_ = true;       // nothing written yet in the innermost object or array
  bool after_key_ = false;  // the next value belongs to a key
  bool line_ = false;
};

}  // namespace interp
