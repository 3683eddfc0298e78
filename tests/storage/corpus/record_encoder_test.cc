#include "storage/corpus/record_encoder.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/chat_template/json_value.h"
#include "storage/chat_template/value_text.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using chat::ChatFormat;
using chat::Dict;
using chat::Value;

Value Golden(const std::string& name) {
  return chat::ParseJson(ReadText("tests/oracle/chat/" + name)).value();
}

const Value& At(const Value& value, const std::string& key) {
  const Value* const found = value.dict().Find(key);
  CHECK(found != nullptr) << key;
  return *found;
}

std::vector<int64_t> Numbers(const Value& list) {
  std::vector<int64_t> numbers;
  for (const Value& item : list.items()) numbers.push_back(item.integer());
  return numbers;
}

std::unique_ptr<Tokenizer> TokenizerOf(const std::string& file,
                                       const std::string& eos) {
  return MakeHuggingFaceTokenizer(
             ReadText("tests/oracle/tokenizers/" + file + ".json"),
             absl::StrCat("{\"eos_token\": \"", eos, "\"}"))
      .value();
}

TEST(RecordEncoder, CountsAsTransformersAndTrlDo) {
  const Value templates = At(Golden("templates.json"), "templates");
  const Value golden = Golden("records.json");
  EXPECT_GE(At(golden, "cases").items().size(), 60u);
  for (const Value& one : At(golden, "cases").items()) {
    const std::string& name = At(one, "template").text();
    const auto tokenizer =
        TokenizerOf(At(one, "tokenizer").text(), At(one, "eos_token").text());
    const auto encoder = RecordEncoder::Create(
        *tokenizer,
        ChatFormat::Create(name, At(templates, name).text(), Dict()));
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    chat::Budget budget(100'000, 1 << 20);
    const std::string line =
        chat::JsonOf(At(one, "record"), {}, budget).value();
    SCOPED_TRACE(
        absl::StrCat(At(one, "tokenizer").text(), " ", name, " ", line));
    std::vector<int32_t> ids;
    std::vector<uint8_t> counts;
    const absl::Status status = encoder->Encode(line, ids, counts);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(std::vector<int64_t>(ids.begin(), ids.end()),
              Numbers(At(one, "ids")));
    EXPECT_EQ(std::vector<int64_t>(counts.begin(), counts.end()),
              Numbers(At(one, "counts")));
  }
}

class RecordErrors : public ::testing::Test {
 protected:
  absl::Status Encode(const std::string& line,
                      const std::string& format = "chatml") {
    const auto encoder = RecordEncoder::Create(
        *tokenizer_,
        ChatFormat::Create("here", At(templates_, format).text(), tokens_));
    if (!encoder.ok()) return encoder.status();
    std::vector<int32_t> ids;
    std::vector<uint8_t> counts;
    const absl::Status status = encoder->Encode(line, ids, counts);
    EXPECT_EQ(ids.size(), counts.size());
    EXPECT_EQ(ids.empty(), !status.ok());
    return status;
  }
  void ExpectWrong(const std::string& line,
                   const std::vector<std::string>& words,
                   const std::string& format = "chatml") {
    const absl::Status status = Encode(line, format);
    for (const std::string& word : words) {
      EXPECT_TRUE(Fails(status, absl::StatusCode::kInvalidArgument, {word}))
          << line;
    }
  }

  const std::unique_ptr<Tokenizer> tokenizer_ =
      TokenizerOf("qwen2", "<|im_end|>");
  const Value templates_ = At(Golden("templates.json"), "templates");
  Dict tokens_;
};

constexpr char kUser[] = R"({"role": "user", "content": "a"})";
constexpr char kAssistant[] = R"({"role": "assistant", "content": "b"})";

TEST_F(RecordErrors, SayWhatARecordLacks) {
  ExpectWrong("{\"text\": \"a\", \"id\": 1}",
              {"neither \"messages\" nor \"prompt\"", "it has text, id"});
  ExpectWrong("{\"prompt\": \"a\"}", {"neither"});
  ExpectWrong("[1]", {"is a list, not an object"});
  ExpectWrong("{\"prompt\": ", {"not valid JSON"});
  ExpectWrong(R"({"prompt": "a", "completion": ""})",
              {"\"completion\" is empty"});
  ExpectWrong(R"({"prompt": "a", "completion": ["b"]})",
              {"is a string", "a list", "lists of messages"});
  ExpectWrong(absl::StrCat(R"({"prompt": "a", "messages": [)", kUser, "]}"),
              {"beside"});
  ExpectWrong(R"({"messages": []})", {"\"messages\" is an empty list"});
  ExpectWrong(R"({"messages": "a"})", {"is a string, not a list"});
  ExpectWrong(R"({"messages": ["a"]})", {"message 1 is a string"});
  ExpectWrong(R"({"messages": [{"content": "a"}]})",
              {"message 1", "without a \"role\""});
  ExpectWrong(absl::StrCat(R"({"messages": [)", kUser, "]}"),
              {"nothing of it counts"});
  ExpectWrong(absl::StrCat(R"({"messages": [)", kUser, "]}"),
              {"nothing of it counts"}, "chatml_marked");
  ExpectWrong(absl::StrCat(R"({"tools": 1, "messages": [)", kUser, ",",
                           kAssistant, "]}"),
              {"\"tools\" are a number"});
  std::string many = R"({"messages": [)";
  for (int i = 0; i < 1024; ++i) absl::StrAppend(&many, kUser, ",");
  ExpectWrong(absl::StrCat(many, kAssistant, "]}"),
              {"1025 messages, more than 1024"});
}

TEST_F(RecordErrors, SayWhereTheTemplateRefuses) {
  ExpectWrong(absl::StrCat(R"({"messages": [)", kAssistant, ",", kUser, "]}"),
              {"here: chat template: line 1, column", "Roles must take turns"},
              "llama2");
}

// Qwen 3 writes an empty thought before the last answer only.
TEST_F(RecordErrors, SayThatTurnsCannotBeFound) {
  const std::string two =
      absl::StrCat(R"({"messages": [)", kUser, ",", kAssistant, ",", kUser, ",",
                   kAssistant, "]}");
  ExpectWrong(two,
              {"the first 2 of 4 messages otherwise than when more messages",
               "{% generation %}", "--chat-template", "a record of its own"},
              "qwen3");
  EXPECT_TRUE(
      Encode(absl::StrCat(R"({"prompt": [)", kUser, ",", kAssistant, ",", kUser,
                          R"(], "completion": [)", kAssistant, "]}"),
             "qwen3")
          .ok());
}

TEST_F(RecordErrors, SayThatATokenIsSplit) {
  tokens_.Set("bos_token", Value::Text("<begin>"));
  ExpectWrong(absl::StrCat(R"({"messages": [)", kUser, ",", kAssistant, "]}"),
              {"here", "bos_token \"<begin>\"", "splits into"}, "gemma");
  // This one does not write it.
  EXPECT_TRUE(
      Encode(absl::StrCat(R"({"messages": [)", kUser, ",", kAssistant, "]}"))
          .ok());
}

TEST(RecordEncoder, WithoutATemplateTextsAreRecords) {
  const auto tokenizer = TokenizerOf("gpt2", "<|endoftext|>");
  const auto encoder =
      RecordEncoder::Create(*tokenizer, chat::OpenChatFormat("", ""));
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;
  EXPECT_TRUE(
      encoder->Encode(R"({"prompt": "a", "completion": "b"})", ids, counts)
          .ok());
  EXPECT_TRUE(Fails(encoder->Encode(absl::StrCat(R"({"messages": [)", kUser,
                                                 ",", kAssistant, "]}"),
                                    ids, counts),
                    absl::StatusCode::kNotFound,
                    {"there is no chat template", "--chat-template FILE"}));
}

}  // namespace
}  // namespace troupe
