#include "storage/dataset/hugging_face/bpe_trainer.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/dataset/hugging_face/bpe_merges.h"
#include "storage/dataset/hugging_face/tokenizer.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr char kFolder[] = "tests/oracle/tokenizers/";

json ReadJson(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return json::parse(file);
}

std::string TrainOn(const std::vector<std::string>& texts,
                    const BpeTrainingOptions& options) {
  auto trainer = BpeTrainer::Create(options);
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  for (const std::string& text : texts) {
    EXPECT_TRUE((*trainer)->Add(text).ok());
  }
  auto file = (*trainer)->Train();
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

std::vector<std::string> OracleTexts() {
  std::vector<std::string> texts;
  for (const json& text : ReadJson("texts.json")) {
    EXPECT_TRUE(
        absl::Base64Unescape(text.get<std::string>(), &texts.emplace_back()));
  }
  return texts;
}

// The vocabulary and the merges are those of the library's trainer.
TEST(BpeTrainer, TrainsWhatTheLibraryTrains) {
  const json ours = json::parse(TrainOn(OracleTexts(), {.vocab_size = 800}));
  const json theirs = ReadJson("trained.json");
  ASSERT_GT(theirs["model"]["merges"].size(), 500u);
  EXPECT_EQ(ours["model"]["vocab"], theirs["model"]["vocab"]);
  EXPECT_EQ(ours["model"]["merges"], theirs["model"]["merges"]);
  EXPECT_EQ(ours["added_tokens"], theirs["added_tokens"]);
}

TEST(BpeTrainer, TheFileIsATokenizer) {
  const std::vector<std::string> texts = OracleTexts();
  const std::string file = TrainOn(texts, {.vocab_size = 600});
  const auto tokenizer = MakeHuggingFaceTokenizer(file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocab_size(), 600u);
  EXPECT_EQ((*tokenizer)->eos_id(), 0);
  for (const char* text : {"All human beings", "\xf0\x9f\x91\x8d\n\t x"}) {
    std::vector<int32_t> ids;
    ASSERT_TRUE((*tokenizer)->Encode(text, ids).ok());
    EXPECT_EQ(*(*tokenizer)->Decode(ids), text);
  }
  EXPECT_EQ(TrainOn(texts, {.vocab_size = 600}), file);
}

TEST(BpeTrainer, EndsWhereNothingComesTwice) {
  const json file = json::parse(TrainOn({"abc abd"}, {.vocab_size = 1000}));
  EXPECT_EQ(file["model"]["merges"], json::parse(R"([["a", "b"]])"));
  EXPECT_EQ(file["model"]["vocab"].size(), 258u);
  auto nothing = BpeTrainer::Create({.vocab_size = 300});
  ASSERT_TRUE((*nothing)->Add("").ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*nothing)->Train().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      BpeTrainer::Create({.vocab_size = 256}).status()));
}

// What is rare is forgotten, and what is frequent is not.
TEST(BpeTrainer, MemoryIsBounded) {
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i) {
    texts.push_back(absl::StrCat("w", i, " often again"));
  }
  texts.push_back(std::string(1 << 20, 'x'));
  const json file =
      json::parse(TrainOn(texts, {.vocab_size = 275, .words_max = 1000}));
  EXPECT_EQ(file["model"]["vocab"].count("\xc4\xa0often"), 1u);
  EXPECT_EQ(file["model"]["vocab"].count("xx"), 0u);
}

// The merges by counting all pairs anew each time.
std::vector<BpeMerge> NaiveMerges(int64_t merges_max,
                                  std::vector<CountedWord> words, int32_t id) {
  std::vector<BpeMerge> merges;
  while (static_cast<int64_t>(merges.size()) < merges_max) {
    std::map<std::pair<int32_t, int32_t>, int64_t> counts;
    for (const CountedWord& word : words) {
      for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
        counts[{word.symbols[i], word.symbols[i + 1]}] += word.count;
      }
    }
    std::pair<int32_t, int32_t> best;
    int64_t most = 0;
    for (const auto& [pair, count] : counts) {
      if (count > most) std::tie(best, most) = std::tie(pair, count);
    }
    if (most == 0) return merges;
    merges.push_back({best.first, best.second, id});
    for (CountedWord& word : words) {
      std::vector<int32_t> merged;
      for (size_t i = 0; i < word.symbols.size(); ++i) {
        const bool found = i + 1 < word.symbols.size() &&
                           word.symbols[i] == best.first &&
                           word.symbols[i + 1] == best.second;
        merged.push_back(found ? id : word.symbols[i]);
        i += found;
      }
      word.symbols = std::move(merged);
    }
    ++id;
  }
  return merges;
}

// Runs of one symbol are counted by changes as the library counts them, which
// is another number than all pairs: none repeats here.
TEST(BpeMerges, AreThoseOfCountingAnew) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    std::vector<CountedWord> words(40);
    for (CountedWord& word : words) {
      word.count = 1 + random() % 5;
      std::vector<int32_t> symbols(2 + random() % 12);
      std::iota(symbols.begin(), symbols.end(), 0);
      std::shuffle(symbols.begin(), symbols.end(), random);
      word.symbols = symbols;
    }
    const std::vector<BpeMerge> want = NaiveMerges(60, words, 100);
    int32_t next = 100;
    const std::vector<BpeMerge> found = FindBpeMerges(
        {.merges_max = 60, .id_of = [&](int32_t, int32_t) { return next++; }},
        words);
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(found[i].left, want[i].left) << round << " " << i;
      ASSERT_EQ(found[i].right, want[i].right) << round << " " << i;
    }
  }
}

}  // namespace
}  // namespace troupe
