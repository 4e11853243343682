#include "tools/xml_text.h"

#include <gtest/gtest.h>

namespace interp::testing::xml_text_test {
namespace {

TEST(XmlTextTest, NamesMayHoldAnything) {
  EXPECT_EQ(XmlText("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(XmlText("l\x1b[31m \xff \xc3\xa9"), "l\\x1b[31m \\xff \xc3\xa9");
}

}  // namespace
}  // namespace interp::testing::xml_text_test
