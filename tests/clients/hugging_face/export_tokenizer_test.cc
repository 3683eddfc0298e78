// What `transformers` makes of these files, tests/oracle/check_tokenizer.py
// compares; here is which files an export has, and what they say.
#include "clients/hugging_face/export_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/engine/posix_file.h"
#include "tests/clients/hugging_face/round_trip.h"
#include "tests/storage/dataset/sentencepiece/written_model.h"

namespace troupe {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Of Llama's kind, by SentencePiece.
std::string BpeFixture() {
  return *ReadWholeFile(
      HfFixture("llama_tied_bf16_sharded") + "/tokenizer.model", 1 << 20);
}

std::vector<std::string> Names(const ExportedTokenizer& exported) {
  std::vector<std::string> names;
  for (const CarriedFile& file : exported.files) names.push_back(file.name);
  return names;
}

json Content(const ExportedTokenizer& exported, const std::string& name) {
  for (const CarriedFile& file : exported.files) {
    if (file.name == name) return json::parse(file.bytes);
  }
  ADD_FAILURE() << name;
  return {};
}

ExportedTokenizer Export(const std::string& tokenizer,
                         std::vector<CarriedFile> carried) {
  auto exported = ExportTokenizer(tokenizer, std::move(carried));
  EXPECT_TRUE(exported.ok()) << exported.status();
  return exported.value_or(ExportedTokenizer());
}

// Tokens that the carried tokenizer.model made.
ExportedTokenizer ExportOfModel(std::vector<CarriedFile> carried) {
  for (const CarriedFile& file : carried) {
    if (file.name != "tokenizer.model") continue;
    const std::string name = SentencePieceTokenizerName(file.bytes);
    return Export(name, std::move(carried));
  }
  ADD_FAILURE() << "no tokenizer.model";
  return {};
}

TEST(ExportTokenizer, AUnigramModel) {
  const ExportedTokenizer exported =
      ExportOfModel({{"tokenizer.model", WrittenModel({})}});
  EXPECT_THAT(Names(exported),
              UnorderedElementsAre("tokenizer.json", "tokenizer_config.json",
                                   "tokenizer.model"));
  ASSERT_TRUE(exported.ids.has_value());
  EXPECT_EQ(exported.ids->bos, 1);
  EXPECT_EQ(exported.ids->eos, 2);
  EXPECT_FALSE(exported.ids->pad.has_value());
  const json config = Content(exported, "tokenizer_config.json");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["split_special_tokens"], true);
  EXPECT_FALSE(config.contains("pad_token"));
  const json file = Content(exported, "tokenizer.json");
  EXPECT_EQ(file["model"]["type"], "Unigram");
  EXPECT_EQ(file["model"]["byte_fallback"], true);
  EXPECT_EQ(file["model"]["unk_id"], 0);
  EXPECT_EQ(file["added_tokens"].size(), 3u);
  EXPECT_EQ(file["added_tokens"][2]["content"], "</s>");
  EXPECT_EQ(file["normalizer"]["normalizers"][0]["type"], "Prepend");
  // Never chosen: "</s>" in a text is characters.
  const json& vocabulary = file["model"]["vocab"];
  double least = 0;
  for (size_t id = 259; id < vocabulary.size(); ++id) {
    least = std::min(least, vocabulary[id][1].get<double>());
  }
  for (size_t id = 0; id < 259; ++id) {
    EXPECT_LT(vocabulary[id][1].get<double>(), 6 * least) << id;
  }
}

TEST(ExportTokenizer, ABpeModel) {
  const ExportedTokenizer exported = ExportOfModel(
      {{"tokenizer.model",
        WrittenModel({.kind = 2, .pad = true, .dummy_prefix = false})}});
  EXPECT_EQ(exported.ids->pad, 3);
  const json file = Content(exported, "tokenizer.json");
  const json& model = file["model"];
  EXPECT_EQ(model["type"], "BPE");
  EXPECT_EQ(model["vocab"]["</s>"], 2);
  EXPECT_EQ(file["normalizer"]["normalizers"][0]["type"], "Replace");
  EXPECT_TRUE(file["pre_tokenizer"].is_null());
  ASSERT_FALSE(model["merges"].empty());
  EXPECT_EQ(model["merges"].dump(), "[[\"a\",\"b\"],[\"\u2581\",\"ab\"]]");
}

// Both halves of each merge are pieces, and so is what they become.
TEST(ExportTokenizer, MergesAreOfPieces) {
  const json file = Content(ExportOfModel({{"tokenizer.model", BpeFixture()}}),
                            "tokenizer.json");
  const json& model = file["model"];
  EXPECT_GT(model["merges"].size(), 20u);
  for (const json& merge : model["merges"]) {
    const std::string left = merge[0], right = merge[1];
    EXPECT_TRUE(model["vocab"].contains(left)) << left;
    EXPECT_TRUE(model["vocab"].contains(right)) << right;
    EXPECT_GT(model["vocab"][left + right].get<int>(), 258);
  }
}

TEST(ExportTokenizer, TablesAndUserDefinedPieces) {
  const json unigram = Content(
      ExportOfModel(
          {{"tokenizer.model",
            WrittenModel(
                {.byte_fallback = false,
                 .more = WrittenPiece("<", -7, PieceType::kNormal) +
                         WrittenPiece("KEEP", 0, PieceType::kUserDefined),
                 .table = "table"})}}),
      "tokenizer.json");
  EXPECT_EQ(
      unigram["normalizer"]["normalizers"][0],
      json({{"type", "Precompiled"}, {"precompiled_charsmap", "dGFibGU="}}));
  EXPECT_EQ(unigram["model"]["vocab"].back(), json({"KEEP", -4.1}));
  // "/" and ">" are unknown to it, so "</s>" is cut there.
  EXPECT_EQ(unigram["pre_tokenizer"]["pattern"],
            json({{"Regex",
                   "(?<=\\<)\\/(?=s\\>)|(?<=\\<)unk\\>|"
                   "(?<=\\<s)\\>"}}));
  const json bpe = Content(
      ExportOfModel(
          {{"tokenizer.model",
            WrittenModel(
                {.kind = 2,
                 .more =
                     WrittenPiece("KEEP", 0, PieceType::kUserDefined) +
                     WrittenPiece("KEEP.IT", 0, PieceType::kUserDefined)})}}),
      "tokenizer.json");
  EXPECT_EQ(bpe["pre_tokenizer"]["pretokenizers"][0]["pattern"],
            json({{"Regex", "KEEP\\.IT|KEEP"}}));
  EXPECT_EQ(bpe["model"]["ignore_merges"], true);
}

// Of the directory where training began, whose tokens these are not.
TEST(ExportTokenizer, AnothersFilesAreLeftOut) {
  const std::vector<CarriedFile> carried = {
      {"tokenizer.model", BpeFixture()},
      {"tokenizer.json", R"({"model": {"vocab": {"a": 0, "b": 1}}})"},
      {"vocab.json", "{}"},
      {"merges.txt", ""},
      {"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})"},
      {"generation_config.json", R"({"eos_token_id": 1})"},
      {"chat_template.jinja", "{{ messages }}"}};
  for (const std::string& tokenizer :
       {SentencePieceTokenizerName(BpeFixture()), std::string("bytes")}) {
    const ExportedTokenizer exported = Export(tokenizer, carried);
    const std::vector<std::string> names = Names(exported);
    EXPECT_THAT(names, Contains("chat_template.jinja"));
    EXPECT_THAT(names, Not(Contains("vocab.json")));
    EXPECT_THAT(names, Not(Contains("merges.txt")));
    EXPECT_THAT(names, Not(Contains("generation_config.json")));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
              names.size());
    EXPECT_EQ(Content(exported, "tokenizer_config.json")["tokenizer_class"],
              "PreTrainedTokenizerFast");
  }
}

// Not only its name: neither says anything about these tokens.
TEST(ExportTokenizer, AnothersConfigAloneIsReplaced) {
  for (const char* config : {R"({"tokenizer_class": "GPT2Tokenizer"})",
                             R"({"tokenizer_class": "LlamaTokenizer",
            "added_tokens_decoder": {"2": {"content": "<|end|>"}}})"}) {
    const ExportedTokenizer exported = ExportOfModel(
        {{"tokenizer.model", BpeFixture()},
         {"tokenizer_config.json", config},
         {"generation_config.json", R"({"eos_token_id": 50256})"}});
    EXPECT_THAT(Names(exported),
                UnorderedElementsAre("tokenizer.json", "tokenizer_config.json",
                                     "tokenizer.model"));
    EXPECT_EQ(exported.ids->eos, 2);
    EXPECT_EQ(Content(exported, "tokenizer_config.json")["tokenizer_class"],
              "PreTrainedTokenizerFast");
  }
}

TEST(ExportTokenizer, ItsOwnFilesStay) {
  std::vector<CarriedFile> carried = {{"tokenizer.model", BpeFixture()}};
  const json made = Content(ExportOfModel(carried), "tokenizer.json");
  json published = made;
  published["post_processor"] = {{"type", "TemplateProcessing"}};
  carried.push_back({"tokenizer.json", published.dump()});
  carried.push_back({"tokenizer_config.json", "{}"});
  const ExportedTokenizer exported = ExportOfModel(carried);
  EXPECT_FALSE(exported.ids.has_value());
  EXPECT_EQ(Content(exported, "tokenizer.json"), published);
  EXPECT_EQ(Content(exported, "tokenizer_config.json"), json::object());
  // What transformers makes of a model of Llama's, its config says.
  carried.erase(carried.begin() + 1);
  carried[1].bytes = R"({"tokenizer_class": "LlamaTokenizer",
                         "added_tokens_decoder": {"2": {"content": "</s>"}}})";
  EXPECT_THAT(Names(ExportOfModel(carried)),
              ElementsAre("tokenizer.model", "tokenizer_config.json"));
  // Tokens of which nothing is known.
  carried.pop_back();
  EXPECT_THAT(Names(Export("", carried)), ElementsAre("tokenizer.model"));
}

TEST(ExportTokenizer, BytesAreTheirOwnIds) {
  const ExportedTokenizer exported = Export("bytes", {});
  const json vocabulary = Content(exported, "tokenizer.json")["model"]["vocab"];
  EXPECT_EQ(vocabulary.size(), 256u);
  EXPECT_EQ(vocabulary["a"], 'a');
  EXPECT_EQ(vocabulary["\u0120"], ' ');
  EXPECT_EQ(vocabulary["\u010a"], '\n');
  EXPECT_EQ(vocabulary["\u00ff"], 255);
  EXPECT_EQ(vocabulary["\u0143"], 0xAD);
  EXPECT_FALSE(exported.ids->eos.has_value());
}

// That of GPT-2's directory.
TEST(ExportTokenizer, ATokenizerJsonStaysAsItIs) {
  const std::string bytes =
      *ReadWholeFile(HfFixture("gpt2_tiny") + "/tokenizer.json", 1 << 20);
  const auto tokenizer = MakeHuggingFaceTokenizer(bytes);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ASSERT_TRUE((*tokenizer)->eos_id().has_value());
  const std::string name = (*tokenizer)->name();
  const ExportedTokenizer alone = Export(name, {{"tokenizer.json", bytes}});
  EXPECT_THAT(Names(alone),
              UnorderedElementsAre("tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(alone.files[0].bytes, bytes);
  ASSERT_TRUE(alone.ids->eos.has_value());
  EXPECT_EQ(*alone.ids->eos, *(*tokenizer)->eos_id());
  const json config = Content(alone, "tokenizer_config.json");
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  // With its own config all stays.
  const ExportedTokenizer own = Export(
      name, {{"tokenizer.json", bytes}, {"tokenizer_config.json", "{}"}});
  EXPECT_FALSE(own.ids.has_value());
  EXPECT_EQ(own.files[1].bytes, "{}");
  // Another's is left out.
  EXPECT_TRUE(Names(Export(name, {{"tokenizer.json", "{}"}})).empty());
}

TEST(ExportTokenizer, AModelThatIsNoneIsRefused) {
  const auto exported = ExportTokenizer(SentencePieceTokenizerName("no model"),
                                        {{"tokenizer.model", "no model"}});
  EXPECT_EQ(exported.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
