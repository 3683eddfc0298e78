#include "storage/chat_template/chat_format.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "storage/chat_template/json_value.h"
#include "tests/storage/temp_dir.h"

namespace troupe::chat {
namespace {

class ChatFormatTest : public ::testing::Test {
 protected:
  static Conversation Of(const std::string& messages) {
    return {.messages = ParseJson(messages)->items()};
  }
  std::string TextOf(const ChatFormat& format,
                     const Conversation& conversation) {
    const auto chat = format.Render(conversation, true);
    return chat.ok() ? chat->text : chat.status().ToString();
  }

  TempDir dir_;
  const Conversation hi_ = Of(R"([{"role": "user", "content": "hi"}])");
};

TEST_F(ChatFormatTest, IsThatOfADirectory) {
  WriteText(dir_.File("tokenizer_config.json"), R"({
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
    "pad_token": null, "extra_special_tokens": {"image_token": "<i>"},
    "chat_template": "config {{ bos_token ~ eos_token ~ pad_token }}"})");
  for (const std::string& path : {dir_.path(), dir_.File("tokenizer.json")}) {
    const auto format = OpenChatFormat(path, "");
    ASSERT_TRUE(format.ok()) << format.status();
    EXPECT_EQ(TextOf(*format, hi_), "config <s></s>");
    EXPECT_EQ(format->ReadTokens(),
              (std::map<std::string, std::string>{{"bos_token", "<s>"},
                                                  {"eos_token", "</s>"}}));
  }
  // Newer than what the config says.
  WriteText(dir_.File("chat_template.jinja"),
            "file {{ image_token }}{{ messages[0].content }}");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), ""), hi_), "file <i>hi");
  WriteText(dir_.File("mine"), "mine {{ bos_token }}");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), dir_.File("mine")), hi_),
            "mine <s>");
}

// A token that nothing names would be written as nothing.
TEST_F(ChatFormatTest, KnowsTheTokensThatItNeeds) {
  const std::string mine = dir_.File("mine");
  WriteText(mine, "{{- bos_token }}{{ messages[0].content }}");
  EXPECT_TRUE(Fails(OpenChatFormat("", mine).status(),
                    absl::StatusCode::kInvalidArgument,
                    {mine, "bos_token", "--tokenizer DIR"}));
  EXPECT_TRUE(
      Fails(OpenChatFormat(dir_.path(), mine).status(),
            absl::StatusCode::kInvalidArgument,
            {mine, "bos_token", "special_tokens_map.json of " + dir_.path(),
             "\"bos_token\": null"}));
  WriteText(dir_.File("special_tokens_map.json"),
            R"({"bos_token": {"content": "<map>"}, "eos_token": "</s>"})");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), mine), hi_), "<map>hi");
  WriteText(dir_.File("tokenizer_config.json"), R"({"bos_token": "<s>"})");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), mine), hi_), "<s>hi");
  WriteText(dir_.File("tokenizer_config.json"), R"({"bos_token": null})");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), mine), hi_), "hi");
  WriteText(dir_.File("tokenizer_config.json"), R"({"bos_token": 1})");
  EXPECT_TRUE(Fails(OpenChatFormat(dir_.path(), mine).status(),
                    absl::StatusCode::kInvalidArgument, {"bos_token"}));
  for (const char* const asks :
       {"{% if bos_token is defined %}a{% endif %}hi",
        "{% if bos_token is not defined %}{% endif %}hi",
        "{% set bos_token = 'hi' %}{{ bos_token }}",
        "{{ messages[0].bos_token }}hi"}) {
    WriteText(mine, asks);
    EXPECT_EQ(TextOf(*OpenChatFormat("", mine), hi_), "hi") << asks;
  }
}

TEST_F(ChatFormatTest, ToolsMayHaveATemplateOfTheirOwn) {
  WriteText(dir_.File("tokenizer_config.json"), R"({"chat_template": [
    {"name": "default", "template": "plain"},
    {"name": "tool_use", "template": "{{ tools | length }} tools"},
    {"name": "rag", "template": "{% unknown %}"}]})");
  const auto format = OpenChatFormat(dir_.path(), "");
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(TextOf(*format, hi_), "plain");
  Conversation with_tools = hi_;
  with_tools.tools = ParseJson("[{}, {}]").value();
  EXPECT_EQ(TextOf(*format, with_tools), "2 tools");
  std::filesystem::create_directory(dir_.File("additional_chat_templates"));
  WriteText(dir_.File("additional_chat_templates/tool_use.jinja"), "more");
  EXPECT_EQ(TextOf(*OpenChatFormat(dir_.path(), ""), with_tools), "more");
}

TEST_F(ChatFormatTest, GivesReasoningTheNamesThatTemplatesRead) {
  const auto format = ChatFormat::Create(
      "here",
      "{% for m in messages %}{{ m.thinking }}|{{ m.reasoning_content }};"
      "{% endfor %}",
      Dict());
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(TextOf(*format, Of(R"([{"role": "a", "reasoning_content": "r"},
                                   {"role": "a", "thinking": "t"},
                                   {"role": "a", "reasoning": "x"},
                                   {"role": "a", "reasoning": null}])")),
            "r|r;t|t;x|x;|;");
}

TEST_F(ChatFormatTest, ReadsConversations) {
  const auto list = ReadConversation(R"([{"role": "user", "content": "a"}])");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->messages.size(), 1u);
  const auto whole = ReadConversation(
      R"({"messages": [{"role": "user"}], "tools": [1],
          "chat_template_kwargs": {"x": 2}})");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->tools.items().size(), 1u);
  EXPECT_EQ(whole->variables.Find("x")->integer(), 2);
  for (const char* const wrong : {"[]", "1", "{}", R"({"messages": 1})"}) {
    EXPECT_TRUE(Fails(ReadConversation(wrong).status(),
                      absl::StatusCode::kInvalidArgument,
                      {"a list of messages"}))
        << wrong;
  }
}

TEST_F(ChatFormatTest, ErrorsSayWhere) {
  EXPECT_TRUE(Fails(OpenChatFormat(dir_.path(), "").status(),
                    absl::StatusCode::kNotFound,
                    {dir_.path(), "chat_template.jinja", "--chat-template"}));
  WriteText(dir_.File("tokenizer_config.json"), "[]");
  EXPECT_TRUE(Fails(OpenChatFormat(dir_.path(), "").status(),
                    absl::StatusCode::kInvalidArgument,
                    {"tokenizer_config.json", "no JSON object"}));
  WriteText(dir_.File("tokenizer_config.json"), "{}");
  WriteText(dir_.File("chat_template.jinja"), "\n {% include 'x' %}");
  EXPECT_TRUE(Fails(OpenChatFormat(dir_.path(), "").status(),
                    absl::StatusCode::kInvalidArgument,
                    {dir_.path() + ": chat template: line 2, column 5"}));
  EXPECT_TRUE(Fails(OpenChatFormat("", dir_.File("none")).status(),
                    absl::StatusCode::kNotFound, {dir_.File("none")}));
  const auto format = ChatFormat::Create("here", "{{ 1 / 0 }}", Dict());
  EXPECT_TRUE(Fails(format->Render(hi_, false).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"here: chat template: line 1"}));
}

}  // namespace
}  // namespace troupe::chat
