#include "storage/corpus/json_field.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::string Error(absl::string_view line) {
  return std::string(JsonTextField(line, "text").status().message());
}

TEST(JsonTextField, FindsTheTextAmongAll) {
  for (const char* line :
       {R"({"text": "a\n\u00e9\ud83d\ude00"})",
        R"( {"id": 3, "meta": {"text": "no", "l": [{"text": 1}]},)"
        R"( "text": "a\né😀", "z": null} )",
        R"({"text": 7, "text": "a\né😀"})"}) {
    const auto text = JsonTextField(line, "text");
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, "a\né😀");
  }
  EXPECT_EQ(*JsonTextField(R"({"text": ""})", "text"), "");
}

TEST(JsonTextField, SaysWhatIsWrong) {
  EXPECT_EQ(Error("{\"text\": \"a\""), "is not valid JSON (byte 13)");
  EXPECT_EQ(Error("text"), "is not valid JSON (byte 2)");
  EXPECT_EQ(Error("{\"text\": \"a\"} {}"), "is not valid JSON (byte 15)");
  EXPECT_EQ(Error(R"({"text": "\ud83d"})"), "is not valid JSON (byte 17)");
  EXPECT_EQ(Error("{\"text\": \"a\xff\"}"), "is not in UTF-8 (byte 12)");
  EXPECT_EQ(Error("[{\"text\": \"a\"}]"), "is a list, not an object");
  EXPECT_EQ(Error("\"text\""), "is a text, not an object");
  EXPECT_EQ(Error("{\"id\": 1, \"body\": \"a\"}"),
            "has no field \"text\"; it has id, body");
  EXPECT_EQ(Error("{}"), "has no field \"text\"");
  EXPECT_EQ(Error("{\"text\": [\"a\"]}"),
            "its field \"text\" is a list, not a text");
  EXPECT_EQ(Error("{\"text\": {\"text\": \"a\"}}"),
            "its field \"text\" is an object, not a text");
  EXPECT_EQ(Error("{\"text\": \"a\", \"text\": null}"),
            "its field \"text\" is null, not a text");
}

// A line of brackets must not use up the stack.
TEST(JsonTextField, DepthIsNoDanger) {
  const std::string deep = "{\"a\": " + std::string(1 << 20, '[') +
                           std::string(1 << 20, ']') + ", \"text\": \"x\"}";
  EXPECT_EQ(*JsonTextField(deep, "text"), "x");
}

}  // namespace
}  // namespace troupe
