// The SentencePiece library, to compare with: models that it trains on a small
// text, and what it makes of texts with them. Its headers and absl's cannot
// meet in one file, so this has neither.
#ifndef TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_LIBRARY_H_
#define TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

using TrainingArguments = std::unordered_map<std::string, std::string>;

// The text on which SmallModel trains.
std::vector<std::string> TrainingLines();

// The bytes of a model; `arguments` are added to those of a small one.
std::string SmallModel(TrainingArguments arguments);

// Of the kind that `troupe data prepare` trains: unigram or bpe.
TrainingArguments LikeLlama(const char* model_type);

class SentencePieceLibrary {
 public:
  explicit SentencePieceLibrary(const std::string& model);
  ~SentencePieceLibrary();

  uint64_t vocab_size() const;
  int32_t eos_id() const;
  std::vector<int32_t> Encode(const std::string& text) const;
  std::string Decode(const std::vector<int32_t>& ids) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DATASET_SENTENCEPIECE_LIBRARY_H_
