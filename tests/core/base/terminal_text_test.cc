#include "core/base/terminal_text.h"

#include <gtest/gtest.h>

namespace interp::testing::terminal_text_test {
namespace {

TEST(TerminalTextTest, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(TerminalText("a\x1b[2J\x7f\r"), "a\\x1b[2J\\x7f\\x0d");
  EXPECT_EQ(TerminalText(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(TerminalText("\xc2\x9b[2J"), "\\xc2\\x9b[2J");
}

// Terminals of 8 bits take 0x9b as escape and '['.
TEST(TerminalTextTest, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(TerminalText("a\x9b[2J"), "a\\x9b[2J");
  EXPECT_EQ(TerminalText("\xc2"), "\\xc2");
  EXPECT_EQ(TerminalText("\xe2\x82 \xff\xc0\x80"), "\\xe2\\x82 \\xff\\xc0\\x80");
}

TEST(TerminalTextTest, OtherTextStaysAsItIs) {
  const std::string text = "a\tb \\x1b\n\xc3\xa9 \xc2\xa0 \xe2\x82\x9b \xf0\x9f\x98\x80";
  EXPECT_EQ(TerminalText(text), text);
}

TEST(TerminalTextTest, ALineHasNoLineEnds) {
  EXPECT_EQ(TerminalLine("a\nb\tc\x1b"), "a\\nb\tc\\x1b");
}

}  // namespace
}  // namespace interp::testing::terminal_text_test
