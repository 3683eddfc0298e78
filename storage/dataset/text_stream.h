// The text of tokens as they come: each call gives the characters that are
// complete, and what may be the beginning of one waits for its rest.
//
//   TextStream stream(tokenizer);
//   ASSIGN_OR_RETURN(std::string text, stream.Add(id));
//   ...
//   std::string rest = stream.Finish();
#ifndef TROUPE_STORAGE_DATASET_TEXT_STREAM_H_
#define TROUPE_STORAGE_DATASET_TEXT_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

class TextStream {
 public:
  // Borrows it. What comes continues a text: spaces at its beginning stay.
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Errors of Tokenizer::TokenText.
  absl::StatusOr<std::string> Add(int32_t id);
  // The bytes that still wait.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  std::string waiting_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TEXT_STREAM_H_
