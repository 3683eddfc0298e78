#include "storage/dataset/bos_rule.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/dataset/sentencepiece/written_model.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using Tokens = std::vector<int32_t>;

// Of words 0 to 3, "<s>" and "</s>", with this post-processor.
std::string JsonWith(const std::string& post_processor) {
  return absl::StrCat(
      R"({"version": "1.0", "added_tokens": [
        {"id": 4, "content": "<s>", "single_word": false, "lstrip": false,
         "rstrip": false, "normalized": false, "special": true},
        {"id": 5, "content": "</s>", "single_word": false, "lstrip": false,
         "rstrip": false, "normalized": false, "special": true}],
        "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordPiece",
        "unk_token": "a", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"a": 0, "b": 1, "c": 2, "d": 3}},
        "post_processor": )",
      post_processor, "}");
}

constexpr char kTemplate[] = R"({"type": "TemplateProcessing",
  "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
             {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "</s>", "type_id": 0}}],
  "pair": [], "special_tokens": {
    "<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]},
    "</s>": {"id": "</s>", "ids": [5], "tokens": ["</s>"]}}})";

absl::StatusOr<BosRule> RuleOf(const std::string& post_processor,
                               const std::string& config = "") {
  const std::string json = JsonWith(post_processor);
  const auto tokenizer = MakeHuggingFaceTokenizer(json);
  CHECK_OK(tokenizer.status());
  return FindBosRule({.model = json, .config = config}, **tokenizer);
}

void ExpectRule(const absl::StatusOr<BosRule>& rule, bool adds,
                const Tokens& tokens) {
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->adds, adds);
  EXPECT_EQ(rule->tokens, tokens);
}

TEST(BosRule, IsThatOfThePostProcessor) {
  ExpectRule(RuleOf("null"), false, {});
  ExpectRule(RuleOf(R"({"type": "ByteLevel"})"), false, {});
  ExpectRule(RuleOf(kTemplate), true, {4});
  for (const char* const type : {"BertProcessing", "RobertaProcessing"}) {
    ExpectRule(RuleOf(absl::StrCat(R"({"type": ")", type,
                                   R"(", "sep": ["</s>", 5],
                                      "cls": ["<s>", 4]})")),
               true, {4});
  }
  ExpectRule(
      RuleOf(absl::StrCat(
          R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},)",
          kTemplate, "]}")),
      true, {4});
}

TEST(BosRule, TheConfigHasTheLastWord) {
  ExpectRule(RuleOf("null", R"({"bos_token": "<s>"})"), false, {4});
  ExpectRule(RuleOf("null", R"({"bos_token": null})"), false, {});
  ExpectRule(RuleOf("null", R"({"add_bos_token": true, "bos_token": "<s>"})"),
             true, {4});
  ExpectRule(RuleOf("null", R"({"add_bos_token": true,
                                "bos_token": {"content": "<s>"}})"),
             true, {4});
  ExpectRule(RuleOf(kTemplate, R"({"add_bos_token": false})"), false, {4});
  ExpectRule(RuleOf(kTemplate, R"({"add_bos_token": true})"), true, {4});
}

TEST(BosRule, DamageIsNotTakenForSilence) {
  struct Case {
    std::string post_processor;
    std::string config;
    const char* message;
  };
  const auto spoilt = [](const char* from, const char* to) {
    const std::string text = absl::StrReplaceAll(kTemplate, {{from, to}});
    EXPECT_NE(text, kTemplate) << from;
    return text;
  };
  for (const Case& c : {
           Case{spoilt("\"ids\": [4]", "\"ids\": []"), "",
                "post_processor.special_tokens.<s>.ids: is empty"},
           Case{spoilt("\"ids\": [4]", "\"ids\": [\"4\"]"), "",
                "ids[0]: must be the id of a token"},
           Case{spoilt("\"ids\": [4]", "\"ids\": [-4]"), "",
                "ids[0]: must be the id of a token"},
           Case{spoilt("\"ids\": [4]", "\"ids\": [6]"), "",
                "puts token 6 before a text, and the vocabulary has 6"},
           Case{spoilt("\"<s>\": {\"id\"", "\"<t>\": {\"id\""), "",
                "post_processor.special_tokens.<s>: must be an object"},
           Case{spoilt("{\"id\": \"A\"", "{\"id\": \"B\""), "",
                "is of \"B\", and a single text is \"A\""},
           Case{spoilt("{\"Sequence\"", "{\"Sequences\""), "",
                "key \"Sequences\" is not known"},
           Case{R"({"type": "TemplateProcessing", "single": []})", "",
                "has no place for the text"},
           Case{R"({"type": "TemplateProcessing"})", "",
                "post_processor.single: must be a list"},
           Case{R"({"type": "BertProcessing", "cls": ["<s>"]})", "",
                "post_processor.cls: must be a token and its id"},
           Case{"null", "{\"bos_token\": 1}",
                "tokenizer_config.json: bos_token: must be a text"},
           Case{"null", "{\"bos_token\": {\"contents\": \"<s>\"}}",
                "tokenizer_config.json: bos_token: must be a text"},
           Case{"null", "{\"bos_token\": \"a b\"}",
                "bos_token: \"a b\" is not a token of tokenizer.json"},
           Case{"null", "{\"add_bos_token\": \"true\"}",
                "add_bos_token: must be true or false"},
           Case{"null", "{\"add_bos_token\": true}",
                "is true, and no bos_token says which token that is"},
           Case{"null", "{\"add_bos_token\": tru", "tokenizer_config.json: "},
       }) {
    EXPECT_TRUE(Fails(RuleOf(c.post_processor, c.config).status(),
                      absl::StatusCode::kInvalidArgument, {c.message}))
        << c.post_processor << " " << c.config;
  }
}

TEST(BosRule, OfPiecesGoesByTheClass) {
  const std::string model = WrittenModel({});
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto rule = [&](const std::string& config) {
    return FindBosRule({.model = model, .config = config}, **tokenizer);
  };
  ExpectRule(rule(""), false, {1});
  ExpectRule(rule(R"({"tokenizer_class": "LlamaTokenizer"})"), true, {1});
  ExpectRule(rule(R"({"tokenizer_class": "LlamaTokenizer",
                      "add_bos_token": false})"),
             false, {1});
  ExpectRule(rule(R"({"add_bos_token": true, "bos_token": "<s>"})"), true, {1});
  EXPECT_TRUE(Fails(rule(R"({"bos_token": "<bos>"})").status(),
                    absl::StatusCode::kInvalidArgument,
                    {"bos_token: \"<bos>\" is not a special piece"}));
}

TEST(BosRule, OfBytesIsNothing) {
  ExpectRule(FindBosRule({}, *MakeBytesTokenizer()), false, {});
}

}  // namespace
}  // namespace troupe
