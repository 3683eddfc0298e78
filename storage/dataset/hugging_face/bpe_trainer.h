// Trains a byte-level BPE and writes it as a tokenizer.json, which this reader
// and the `tokenizers` library read alike (Sennrich et al., "Neural machine
// translation of rare words with subword units", 2016; bytes as in GPT-2).
//
//   ASSIGN_OR_RETURN(auto trainer, BpeTrainer::Create({.vocab_size = 8000}));
//   RETURN_IF_ERROR(trainer->Add(text));  // for each text
//   ASSIGN_OR_RETURN(std::string json, trainer->Train());
//
// Texts are split into words by GPT-2's pattern, and words are counted. From
// single bytes on, the pair of neighbours that is most frequent becomes a
// token, again and again; of pairs as frequent the one whose ids are least, the
// left one's first. That is the rule of the library's BpeTrainer, whose merges
// these are for the same texts. Ids: <|endoftext|> is 0, then the 256 bytes in
// the order of the characters that stand for them, then tokens as they are
// made.
//
// The result is a function of the texts and their order alone. Memory is
// bounded: where there are more than eight million different words, those that
// were seen least are forgotten, and pieces of more than 4096 bytes, which are
// no words, do not count.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_TRAINER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// <|endoftext|> and the bytes.
inline constexpr int64_t kBpeVocabSizeMin = 257;

struct BpeTrainingOptions {
  int64_t vocab_size = 0;  // at least kBpeVocabSizeMin
  int64_t min_count = 2;   // of a pair that becomes a token
  uint64_t words_max = 8'000'000;
};

class BpeTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<BpeTrainer>> Create(
      const BpeTrainingOptions& options);
  virtual ~BpeTrainer() = default;

  // Counts the words of a text, any bytes; those that are not UTF-8 count as
  // U+FFFD, as where they are encoded.
  virtual absl::Status Add(absl::string_view text) = 0;

  // The bytes of tokenizer.json. Fewer tokens than asked for where no pair is
  // frequent enough. InvalidArgument where there are no words. Call once.
  virtual absl::StatusOr<std::string> Train() = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_BPE_TRAINER_H_
