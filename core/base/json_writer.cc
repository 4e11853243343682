#include "core/base/json_writer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/number_text.h"

namespace interp {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Length of the valid UTF-8 sequence at the start of `text`, 0 when there is none: overlong forms,
// surrogates and values above U+10FFFF are invalid.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

void AppendAscii(char c, std::string& out) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (c < 0x20 || c == 0x7F) {
        absl::StrAppendFormat(&out, "\\u%04x", static_cast<int>(c));
      } else {
        out += c;
      }
  }
}

std::string QuotedJson(absl::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 1) {
      AppendAscii(text[0], out);
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out += '"';
}

template <typename T>
std::string NumberOrName(T value) {
  return std::isfinite(value) ? FloatText(value) : QuotedJson(FloatText(value));
}

}  // namespace

void JsonWriter::Separate() {
  if (!after_key_ && !first_) text_ += ',';
  if (line_) text_ += '\n';
  first_ = false;
  after_key_ = false;
  line_ = false;
}

void JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  first_ = true;
}

void JsonWriter::Close(char bracket) {
  text_ += bracket;
  first_ = false;
}

void JsonWriter::Raw(absl::string_view text) {
  Separate();
  absl::StrAppend(&text_, text);
}

void JsonWriter::Key(absl::string_view name) {
  Raw(QuotedJson(name));
  text_ += ':';
  after_key_ = true;
}

void JsonWriter::Value(absl::string_view text) { Raw(QuotedJson(text)); }
void JsonWriter::Value(float value) { Raw(NumberOrName(value)); }
void JsonWriter::Value(double value) { Raw(NumberOrName(value)); }

}  // namespace interp
