#include "storage/dataset/hugging_face/bpe_trainer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/bpe_merges.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/description.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kEnd[] = "<|endoftext|>";
constexpr size_t kWordBytesMax = 4096;

// What a tokenizer.json says beside the vocabulary.
Json FileWith(Json vocabulary, Json merges) {
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  const Json end = {
      {"id", 0},         {"content", kEnd}, {"single_word", false},
      {"lstrip", false}, {"rstrip", false}, {"normalized", false},
      {"special", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", Json::array({end})},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", std::move(vocabulary)},
            {"merges", std::move(merges)}}}};
}

// Tokens by id, and ids by token, as the file writes them.
class Tokens {
 public:
  Tokens() {
    IdOf(kEnd);
    std::vector<std::pair<uint32_t, uint8_t>> bytes;
    for (int byte = 0; byte < 256; ++byte) {
      bytes.emplace_back(ByteCharacter(static_cast<uint8_t>(byte)),
                         static_cast<uint8_t>(byte));
    }
    std::sort(bytes.begin(), bytes.end());
    for (const auto& [character, byte] : bytes) {
      of_byte_[byte] = IdOf(CharacterText(character));
    }
  }

  int32_t OfByte(char byte) const {
    return of_byte_[static_cast<uint8_t>(byte)];
  }
  int32_t IdOf(const std::string& text) {
    const auto [found, is_new] =
        ids_.try_emplace(text, static_cast<int32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int32_t> ids_;
  int32_t of_byte_[256] = {};
};

class Trainer final : public BpeTrainer {
 public:
  Trainer(const BpeTrainingOptions& options, TokenizerDescription description)
      : options_(options), description_(std::move(description)) {}

  absl::Status Add(absl::string_view text) override {
    std::string storage;
    ASSIGN_OR_RETURN(const SplitText* const split,
                     description_.pre_tokenizer.Split(
                         ValidText(text, storage), {.at_start = true},
                         patterns_, first_, second_));
    for (const TextSpan& span : split->spans) {
      const size_t bytes = span.end - span.begin;
      if (bytes > kWordBytesMax) continue;
      ++counts_[split->text.substr(span.begin, bytes)];
      if (counts_.size() > options_.words_max) Forget();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Train() override {
    if (counts_.empty()) {
      return absl::InvalidArgumentError(
          "there are no words to train a tokenizer on; give more text");
    }
    Tokens tokens;
    std::vector<CountedWord> words = TakeWords(tokens);
    // A merge that spells a token which is there makes none.
    int64_t room = options_.vocab_size - kBpeVocabSizeMin;
    Json merges = Json::array();
    while (room > 0) {
      const std::vector<BpeMerge> found =
          FindBpeMerges({.merges_max = room,
                         .min_count = options_.min_count,
                         .id_of =
                             [&tokens](int32_t left, int32_t right) {
                               return tokens.IdOf(tokens.texts()[left] +
                                                  tokens.texts()[right]);
                             }},
                        words);
      for (const BpeMerge& merge : found) {
        merges.push_back(Json::array(
            {tokens.texts()[merge.left], tokens.texts()[merge.right]}));
      }
      room = options_.vocab_size - static_cast<int64_t>(tokens.texts().size());
      if (found.empty()) break;
    }
    Json vocabulary = Json::object();
    for (size_t id = 0; id < tokens.texts().size(); ++id) {
      vocabulary[tokens.texts()[id]] = id;
    }
    return FileWith(std::move(vocabulary), std::move(merges)).dump(1) + "\n";
  }

 private:
  // The words that were seen least, until at most half are left.
  void Forget() {
    for (; counts_.size() > options_.words_max / 2; ++rare_) {
      absl::erase_if(counts_,
                     [this](const auto& word) { return word.second <= rare_; });
    }
  }

  // In the order of their bytes, so that hashing has no influence.
  std::vector<CountedWord> TakeWords(const Tokens& tokens) {
    std::vector<std::pair<std::string, int64_t>> sorted(counts_.begin(),
                                                        counts_.end());
    counts_ = {};
    std::sort(sorted.begin(), sorted.end());
    std::vector<CountedWord> words;
    words.reserve(sorted.size());
    for (const auto& [text, count] : sorted) {
      CountedWord& word = words.emplace_back();
      word.count = count;
      word.symbols.reserve(text.size());
      for (const char byte : text) word.symbols.push_back(tokens.OfByte(byte));
    }
    return words;
  }

  const BpeTrainingOptions options_;
  const TokenizerDescription description_;
  PatternScratch patterns_;
  SplitText first_;
  SplitText second_;
  absl::flat_hash_map<std::string, int64_t> counts_;
  int64_t rare_ = 1;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTrainer>> BpeTrainer::Create(
    const BpeTrainingOptions& options) {
  if (options.vocab_size < kBpeVocabSizeMin) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a vocabulary of ", options.vocab_size,
        "; the bytes and the end of a document alone are ", kBpeVocabSizeMin));
  }
  // The splits are those of the file that comes out.
  Json vocabulary = Json::object();
  vocabulary[kEnd] = 0;
  ASSIGN_OR_RETURN(TokenizerDescription description,
                   ParseTokenizerDescription(
                       FileWith(std::move(vocabulary), Json::array()).dump()));
  return std::make_unique<Trainer>(options, std::move(description));
}

}  // namespace troupe
