#include "core/terminal_text.h"

#include <gtest/gtest.h>

namespace interp::testing::terminal_text_test {
namespace {

TEST(TerminalTextTest, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(TerminalText("a\x1b[2J\x7f\r"), "a\\x1b[2J\\x7f\\x0d");
  EXPECT_EQ(TerminalText(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(TerminalText("\xc2\x9b[2J"), "\\xc2\\x9b[2J");
}

TEST(TerminalTextTest, OtherTextStaysAsItIs) {
  const std::string text = "a\tb \\x1b\n\xc3\xa9 \xc2\xa0 \xe2\x82\x9b \xc2";
  EXPECT_EQ(TerminalText(text), text);
}

TEST(TerminalTextTest, ALineHasNoLineEnds) {
  EXPECT_EQ(TerminalLine("a\nb\tc\x1b"), "a\\nb\tc\\x1b");
}

}  // namespace
}  // namespace interp::testing::terminal_text_test
