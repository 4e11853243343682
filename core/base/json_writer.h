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
//   json.Values("shape", std::vector<int64_t>{2, 3});
//   json.EndObject();
//   return std::move(json).Take();  // {"idx":0,"shape":[2,3]}
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

  // An array of what write(item) writes, a value for each item.
  template <typename Items, typename Write>
  void Array(absl::string_view name, const Items& items, const Write& write) {
    Key(name);
    BeginArray();
    for (const auto& item : items) write(item);
    EndArray();
  }
  template <typename Items>
  void Values(absl::string_view name, const Items& items) {
    Array(name, items, [this](const auto& item) { this->Value(item); });
  }
  // An array of objects; write(item) writes the members of one.
  template <typename Items, typename Write>
  void Objects(absl::string_view name, const Items& items, const Write& write) {
    Array(name, items, [&](const auto& item) {
      BeginObject();
      write(item);
      EndObject();
    });
  }
  // The same, each on a line of its own.
  template <typename Items, typename Write>
  void ObjectLines(absl::string_view name, const Items& items, const Write& write) {
    Array(name, items, [&](const auto& item) {
      Line();
      BeginObject();
      write(item);
      EndObject();
    });
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
