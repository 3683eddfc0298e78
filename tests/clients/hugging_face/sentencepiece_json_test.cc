// Encodes texts by the JSON as the `tokenizers` package does, and compares the
// ids with those of the SentencePiece library.
#include "clients/hugging_face/sentencepiece_json.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "storage/dataset/utf8.h"
#include "tests/storage/dataset/sentencepiece/library.h"

namespace troupe {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;
using Stretches = std::vector<std::string>;

size_t FirstBytes(absl::string_view text) {
  return std::max<size_t>(1, CharacterBytes(text));
}

std::regex Regex(const std::string& pattern) {
  return std::regex(absl::StrReplaceAll(
      pattern, {{"\\A", "^"}, {"\\z", "$"}, {"[ \u2581]", "(?: |\u2581)"}}));
}

// What the package does with the parts of its format that SentencePieceJson
// uses: normalizers/, pre_tokenizers/split.rs, models/{bpe,unigram}/model.rs.
class JsonEncoder {
 public:
  explicit JsonEncoder(json file) : file_(std::move(file)) {
    const json& model = file_["model"];
    byte_fallback_ = model["byte_fallback"];
    if (model["type"] == "Unigram") {
      least_ = std::numeric_limits<double>::max();
      for (const json& entry : model["vocab"]) {
        const double score = entry[1];
        scores_.push_back(score);
        least_ = std::min(least_, score);
        ids_.emplace(entry[0], static_cast<int32_t>(ids_.size()));
      }
      unknown_ = model["unk_id"];
      return;
    }
    for (const auto& [text, id] : model["vocab"].items()) ids_[text] = id;
    unknown_ = ids_.at(model["unk_token"]);
    for (const json& merge : model["merges"]) {
      const int rank = static_cast<int>(ranks_.size());
      ranks_[{merge[0], merge[1]}] = rank;
    }
  }

  Ids Encode(const std::string& text) const {
    Stretches stretches = {Normalize(text)};
    for (const json& split : List("pre_tokenizer", "pretokenizers")) {
      stretches = Split(split, stretches);
    }
    Ids ids;
    for (const std::string& stretch : stretches) {
      const Ids of = scores_.empty() ? Bpe(stretch) : Unigram(stretch);
      ids.insert(ids.end(), of.begin(), of.end());
    }
    return ids;
  }

 private:
  json List(const char* key, const char* items) const {
    const json& step = file_[key];
    if (step.is_null()) return json::array();
    return step["type"] == "Sequence" ? step[items] : json::array({step});
  }

  std::string Normalize(std::string text) const {
    for (const json& step : List("normalizer", "normalizers")) {
      if (step["type"] == "Prepend") {
        if (!text.empty()) text = step["prepend"].get<std::string>() + text;
        continue;
      }
      EXPECT_EQ(step["type"], "Replace");
      const std::string by = step["content"];
      if (step["pattern"].contains("String")) {
        const std::string from = step["pattern"]["String"];
        text = absl::StrReplaceAll(text, {{from, by}});
      } else {
        text = std::regex_replace(text, Regex(step["pattern"]["Regex"]), by);
      }
    }
    return text;
  }

  static Stretches Split(const json& split, const Stretches& stretches) {
    EXPECT_EQ(split["behavior"], "Isolated");
    const std::regex pattern = Regex(split["pattern"]["Regex"]);
    Stretches out;
    const auto add = [&](const std::string& stretch) {
      if (!stretch.empty()) out.push_back(stretch);
    };
    for (const std::string& stretch : stretches) {
      size_t begin = 0;
      for (std::sregex_iterator it(stretch.begin(), stretch.end(), pattern),
           end;
           it != end; ++it) {
        add(stretch.substr(begin, it->position() - begin));
        add(it->str());
        begin = it->position() + it->length();
      }
      add(stretch.substr(begin));
    }
    return out;
  }

  // Appends the ids of characters that are no piece.
  void AddUnknown(const std::string& text, bool joined, Ids& ids) const {
    if (!byte_fallback_) {
      if (!joined) ids.push_back(unknown_);
      return;
    }
    for (const char byte : text) {
      ids.push_back(ids_.at(
          absl::StrFormat("<0x%02X>", static_cast<unsigned char>(byte))));
    }
  }

  Ids Bpe(const std::string& text) const {
    if (file_["model"]["ignore_merges"].get<bool>() && ids_.count(text) > 0) {
      return {ids_.at(text)};
    }
    std::vector<std::string> symbols;
    for (size_t at = 0; at < text.size(); at += symbols.back().size()) {
      symbols.push_back(
          text.substr(at, FirstBytes(absl::string_view(text).substr(at))));
    }
    while (true) {
      auto best = ranks_.end();
      size_t place = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const auto found = ranks_.find({symbols[i], symbols[i + 1]});
        if (found == ranks_.end()) continue;
        if (best != ranks_.end() && best->second <= found->second) continue;
        best = found;
        place = i;
      }
      if (best == ranks_.end()) break;
      symbols[place] += symbols[place + 1];
      symbols.erase(symbols.begin() + place + 1);
    }
    Ids ids;
    bool unknown = false;
    for (const std::string& symbol : symbols) {
      const auto found = ids_.find(symbol);
      if (found != ids_.end()) {
        ids.push_back(found->second);
      } else {
        AddUnknown(symbol, unknown, ids);
      }
      unknown = found == ids_.end();
    }
    return ids;
  }

  Ids Unigram(const std::string& text) const {
    constexpr double kUnknownPenalty = 10;
    struct Node {
      double score = std::numeric_limits<double>::lowest();
      size_t begin = 0;
      int32_t id = 0;
    };
    std::vector<Node> best(text.size() + 1);
    best[0].score = 0;
    for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
      bytes = FirstBytes(absl::string_view(text).substr(at));
      bool has_character = false;
      const auto propose = [&](size_t size, double score, int32_t id) {
        Node& end = best[at + size];
        score += best[at].score;
        if (score > end.score) end = {score, at, id};
        has_character |= size == bytes;
      };
      for (size_t size = 1; at + size <= text.size(); ++size) {
        const auto found = ids_.find(text.substr(at, size));
        if (found == ids_.end()) continue;
        propose(size, scores_[found->second], found->second);
      }
      if (!has_character) propose(bytes, least_ - kUnknownPenalty, unknown_);
    }
    std::vector<std::pair<std::string, int32_t>> path;
    for (size_t end = text.size(); end > 0; end = best[end].begin) {
      const size_t begin = best[end].begin;
      path.emplace_back(text.substr(begin, end - begin), best[end].id);
    }
    Ids ids;
    bool unknown = false;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      if (it->second == unknown_) {
        AddUnknown(it->first, unknown, ids);
      } else {
        ids.push_back(it->second);
      }
      unknown = it->second == unknown_;
    }
    return ids;
  }

  const json file_;
  bool byte_fallback_ = false;
  std::map<std::string, int32_t> ids_;
  int32_t unknown_ = 0;
  std::vector<double> scores_;  // by id, of unigram
  double least_ = 0;
  std::map<std::pair<std::string, std::string>, int> ranks_;  // of bpe
};

// Of the training text and beside it; what special pieces spell, too.
std::vector<std::string> Texts() {
  std::vector<std::string> texts = {
      "",      " ",       "   ",     "a",     "\n",         "x\ny\n\n",
      "</s>",  "KEEP",    "<s></s>", "<unk>", "KEEP</s>",   "</s>KEEP<0x0A>",
      "KEEPs", "<0x0A>>", "KEEP<s>", "KEEP ", "a </s> KEEP"};
  std::mt19937 random(7);
  const std::vector<std::string> lines = TrainingLines();
  const std::string odd[] = {
      "\n",   "  ",   "zq",           "\xc3\x9f",
      "</s>", "KEEP", "\xe6\x9d\xb1", "\xf0\x9f\xa6\x8a"};
  for (int i = 0; i < 100; ++i) {
    std::string text;
    while (random() % 4 != 0) {
      const std::string& line = lines[random() % lines.size()];
      size_t begin = random() % line.size();
      while ((line[begin] & 0xC0) == 0x80) --begin;
      size_t end = std::min(line.size(), begin + random() % 40);
      while (end > begin && end < line.size() && (line[end] & 0xC0) == 0x80) {
        --end;
      }
      absl::StrAppend(&text, line.substr(begin, end - begin),
                      odd[random() % std::size(odd)]);
    }
    texts.push_back(text);
  }
  return texts;
}

class SentencePieceJsonTest : public testing::TestWithParam<TrainingArguments> {
};

TEST_P(SentencePieceJsonTest, GivesTheIdsOfTheLibrary) {
  const std::string bytes = SmallModel(GetParam());
  const SentencePieceLibrary library(bytes);
  const auto model = ParseSentencePieceModel(bytes);
  ASSERT_TRUE(model.ok()) << model.status();
  const JsonEncoder encoder(SentencePieceJson(*model));
  for (const std::string& text : Texts()) {
    EXPECT_EQ(encoder.Encode(text), library.Encode(text))
        << "\"" << text << "\"";
  }
}

TrainingArguments With(TrainingArguments base, TrainingArguments more) {
  more.insert(base.begin(), base.end());
  return more;
}

INSTANTIATE_TEST_SUITE_P(
    Models, SentencePieceJsonTest,
    testing::Values(
        LikeLlama("unigram"), LikeLlama("bpe"),
        With(LikeLlama("bpe"), {{"user_defined_symbols", "KEEP,\xe6\x9d\xb1"}}),
        With(LikeLlama("unigram"), {{"user_defined_symbols", "KEEP,fox"}}),
        With(LikeLlama("bpe"), {{"user_defined_symbols", "KEEP,zq"},
                                {"add_dummy_prefix", "false"}}),
        With(LikeLlama("unigram"), {{"add_dummy_prefix", "false"}}),
        // All that "</s>" consists of is pieces.
        With(LikeLlama("unigram"), {{"required_chars", "</>"}}),
        // Spaces squeezed.
        TrainingArguments{{"model_type", "bpe"},
                          {"byte_fallback", "true"},
                          {"normalization_rule_name", "identity"}}));

}  // namespace
}  // namespace troupe
