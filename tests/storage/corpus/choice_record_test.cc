#include "storage/corpus/choice_record.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/chat_template/json_value.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::string ChoiceError(const std::string& line) {
  return std::string(ParseChoiceRecord(line).status().message());
}

TEST(ChoiceRecord, IsReadByEitherName) {
  for (const char* const line :
       {R"({"prompt": "2 + 2 =", "choices": [" 4", " 5"], "answer": 1})",
        R"( {"id": "x", "gold": 1, "query": "2 + 2 =", "choices":
            [" 4", " 5"], "label": "B"} )"}) {
    const auto record = ParseChoiceRecord(line);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->prompt, "2 + 2 =");
    EXPECT_EQ(record->choices, (std::vector<std::string>{" 4", " 5"}));
    EXPECT_EQ(record->answer, 1);
  }
}

TEST(ChoiceRecord, SaysWhatIsWrong) {
  const auto with = [](const std::string& choices, const std::string& answer) {
    return ChoiceError(absl::StrCat(R"({"prompt": "p", "choices": )", choices,
                                    R"(, "answer": )", answer, "}"));
  };
  EXPECT_NE(ChoiceError("{").find("(byte "), std::string::npos);
  EXPECT_EQ(ChoiceError("[1]"), "is a list, not an object");
  EXPECT_EQ(ChoiceError("{\"question\": \"q\"}"),
            "has no \"prompt\"; a record is {\"prompt\": \"...\", \"choices\": "
            "[\"...\", \"...\"], \"answer\": 0}");
  EXPECT_EQ(ChoiceError(R"({"prompt": "a", "query": "b"})"),
            "has both \"prompt\" and \"query\", which mean the same; leave one "
            "out");
  EXPECT_EQ(ChoiceError(R"({"prompt": ["a"]})"),
            "its \"prompt\" is a list, not a text");
  EXPECT_EQ(ChoiceError(R"({"prompt": "p"})"),
            "has no \"choices\", the list of the texts of which one is right");
  EXPECT_EQ(with("\"a\"", "0"),
            "its \"choices\" is a string, not a list of texts");
  EXPECT_NE(with("[]", "0").find("has 0 of 2 to 1024"), std::string::npos);
  EXPECT_NE(with("[\"a\"]", "0").find("has 1 of 2 to 1024"), std::string::npos);
  EXPECT_EQ(with("[\"a\", 7]", "0"), "choices[1] is a number, not a text");
  EXPECT_EQ(
      with("[\"\", \"b\"]", "0"),
      "choices[0] is empty, so it has no likelihood; write what the model "
      "is to say");
  for (const char* const answer : {"2", "-1"}) {
    EXPECT_EQ(with("[\"a\", \"b\"]", answer),
              absl::StrCat("its \"answer\" is ", answer,
                           ", and the places of its 2 choices are 0 to 1"));
  }
  for (const char* const answer : {"\"1\"", "1.0", "true", "null", "[1]"}) {
    EXPECT_NE(with("[\"a\", \"b\"]", answer)
                  .find("not a whole number; give the place of the right "
                        "choice, from 0 to 1"),
              std::string::npos)
        << with("[\"a\", \"b\"]", answer);
  }
  EXPECT_EQ(ChoiceError(R"({"prompt": "p", "choices": ["a", "b"]})"),
            "has no \"answer\"; a record is {\"prompt\": \"...\", \"choices\": "
            "[\"...\", \"...\"], \"answer\": 0}");
}

TEST(ChoiceRecord, CountsCharacters) {
  EXPECT_EQ(CharacterCount(""), 0);
  EXPECT_EQ(CharacterCount(" Grüße, 世界 😀"), 12);
}

std::string Bytes(const std::vector<int32_t>& ids, size_t begin, size_t end) {
  return std::string(ids.begin() + static_cast<int64_t>(begin),
                     ids.begin() + static_cast<int64_t>(end));
}

// By bytes the split is seen as text.
TEST(ChoiceEncoder, WhiteSpaceAtTheEndOfThePromptIsTheChoices) {
  const auto bytes = MakeBytesTokenizer();
  struct Case {
    const char* prompt;
    const char* delimiter;
    const char* choice;
    const char* before;
    const char* counted;
  };
  for (const Case& c :
       {Case{"a b", "", " c", "a b", " c"}, Case{"a b ", "", "c", "a b", " c"},
        Case{"a\t \n", "", " c", "a", "\t \n c"},
        Case{"a b", " ", "c", "a b", " c"}, Case{"a ", ": ", "c", "a", " : c"},
        Case{"a\u00a0\u3000\u2003", "", "c", "a", "\u00a0\u3000\u2003c"},
        Case{"a\u200b", "", "c", "a\u200b", "c"},
        Case{"\u00e9", "", "c", "\u00e9", "c"}}) {
    const ChoiceEncoder encoder(*bytes, {.delimiter = c.delimiter});
    const auto rows = encoder.Encode(
        {.prompt = c.prompt, .choices = {c.choice, "other"}, .answer = 0});
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->size(), 2u);
    const ChoiceRow& row = rows->front();
    EXPECT_EQ(Bytes(row.ids, 0, row.first_counted), c.before);
    EXPECT_EQ(Bytes(row.ids, row.first_counted, row.ids.size()), c.counted);
  }
}

TEST(ChoiceEncoder, SomethingComesBeforeTheChoice) {
  const auto bytes = MakeBytesTokenizer();
  const ChoiceRecord record = {.prompt = "", .choices = {"ab", "c"}};
  EXPECT_TRUE(Fails(ChoiceEncoder(*bytes, {}).Encode(record).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"its prompt is empty", "write a prompt"}));
  const ChoiceEncoder replaced(*bytes, {.in_place_of_prompt = {7}});
  EXPECT_EQ(replaced.Encode(record)->front().ids,
            (std::vector<int32_t>{7, 'a', 'b'}));
  EXPECT_EQ(replaced.Encode(record)->front().first_counted, 1u);
  const ChoiceEncoder begun(*bytes, {.bos = {9}, .in_place_of_prompt = {9}});
  EXPECT_EQ(begun.Encode(record)->back().ids, (std::vector<int32_t>{9, 'c'}));
  EXPECT_EQ(begun.Encode({.prompt = "x", .choices = {"y", "z"}})->front().ids,
            (std::vector<int32_t>{9, 'x', 'y'}));
  // BOS that the text has itself is not put there twice.
  EXPECT_EQ(begun.Encode({.prompt = "\tx", .choices = {"y", "z"}})->front().ids,
            (std::vector<int32_t>{9, 'x', 'y'}));
}

// tests/oracle/make_choice_goldens.py: _encode_pair of lm-evaluation-harness on
// the `tokenizers` package.
TEST(ChoiceEncoder, SplitsAsLmEvaluationHarnessDoes) {
  const auto golden =
      chat::ParseJson(ReadText("tests/oracle/tokenizers/choices.json"));
  ASSERT_TRUE(golden.ok()) << golden.status();
  const auto at = [](const chat::Value& value, const char* key) {
    const chat::Value* const found = value.dict().Find(key);
    CHECK(found != nullptr) << key;
    return *found;
  };
  const auto numbers = [](const chat::Value& list) {
    std::vector<int32_t> ids;
    for (const chat::Value& id : list.items()) {
      ids.push_back(static_cast<int32_t>(id.integer()));
    }
    return ids;
  };
  const chat::Value cases = at(*golden, "cases");
  EXPECT_GE(cases.items().size(), 40u);
  int refused = 0;
  for (const chat::Value& one : cases.items()) {
    const std::string& name = at(one, "tokenizer").text();
    const auto tokenizer = MakeHuggingFaceTokenizer(
        ReadText(absl::StrCat("tests/oracle/tokenizers/", name, ".json")));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const ChoiceEncoder encoder(
        **tokenizer, {.bos = numbers(at(one, "bos")),
                      .in_place_of_prompt = numbers(at(one, "prefix"))});
    SCOPED_TRACE(absl::StrCat(name, ": ", at(one, "prompt").text(), "|",
                              at(one, "choice").text()));
    const std::vector<int32_t> counted = numbers(at(one, "continuation"));
    const auto rows = encoder.Encode({.prompt = at(one, "prompt").text(),
                                      .choices = {at(one, "choice").text()}});
    if (counted.empty()) {
      ++refused;
      EXPECT_TRUE(Fails(rows.status(), absl::StatusCode::kInvalidArgument,
                        {"choices[0] adds no token to the prompt"}));
      continue;
    }
    ASSERT_TRUE(rows.ok()) << rows.status();
    const ChoiceRow& row = rows->front();
    std::vector<int32_t> expected = numbers(at(one, "context"));
    EXPECT_EQ(row.first_counted, expected.size());
    expected.insert(expected.end(), counted.begin(), counted.end());
    EXPECT_EQ(row.ids, expected);
  }
  EXPECT_GE(refused, 1);
}

}  // namespace
}  // namespace troupe
