// Questions with several answers, of which a model is to find the likeliest: a
// line of JSON each,
//
//   {"prompt": "The capital of France is", "choices": [" Rome", " Paris"],
//    "answer": 1}
//
// "query" and "gold" are other names of "prompt" and "answer", those of
// documents in lm-evaluation-harness. Other fields are not read. The answer is
// the place of the right choice, from 0.
#ifndef TROUPE_STORAGE_CORPUS_CHOICE_RECORD_H_
#define TROUPE_STORAGE_CORPUS_CHOICE_RECORD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct ChoiceRecord {
  std::string prompt;                // may be empty
  std::vector<std::string> choices;  // two or more, none of them empty
  int answer = 0;                    // index into them
};

// Choices of one record; more are a mistake in the file.
inline constexpr size_t kChoicesMax = 1024;

// InvalidArgument, with the field, what is wrong and what to do, where the line
// is no such record.
absl::StatusOr<ChoiceRecord> ParseChoiceRecord(absl::string_view line);

// Code points. REQUIRES UTF-8.
int64_t CharacterCount(absl::string_view text);

// A prompt with one of its choices, as the model reads it. The tokens from
// `first_counted` on are the choice's: at least one, and never the first of
// all.
struct ChoiceRow {
  std::vector<int32_t> ids;
  size_t first_counted = 0;
};

struct ChoiceEncoderOptions {
  std::vector<int32_t> bos;  // before each text; empty: nothing
  // In place of a prompt without any token: something must come before the
  // choice. Empty: there is nothing.
  std::vector<int32_t> in_place_of_prompt;
  std::string delimiter;  // between prompt and choice; the choice's
};

// Which tokens are the choice's, as lm-evaluation-harness
// (lm_eval/api/model.py, _encode_pair) has it: white space at the end of the
// prompt goes to the choice; then prompt and choice are encoded as one text,
// and what is left behind as many tokens as the prompt alone has is the choice.
// The model reads the tokens of the prompt alone before them.
//
// Borrows the tokenizer. Immutable; thread-safe.
class ChoiceEncoder {
 public:
  ChoiceEncoder(const Tokenizer& tokenizer, ChoiceEncoderOptions options)
      : tokenizer_(&tokenizer), options_(std::move(options)) {}

  // A row for each choice. InvalidArgument, with the field, where a choice adds
  // no token to its prompt, and where nothing comes before it.
  absl::StatusOr<std::vector<ChoiceRow>> Encode(
      const ChoiceRecord& record) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& delimiter() const { return options_.delimiter; }

 private:
  // The ids of a text, with BOS before them unless the text begins with it.
  absl::StatusOr<std::vector<int32_t>> IdsOf(absl::string_view text) const;

  const Tokenizer* tokenizer_;
  ChoiceEncoderOptions options_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_CHOICE_RECORD_H_
