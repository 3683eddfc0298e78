// A tokenizer from a file or directory that others made.
#ifndef TROUPE_STORAGE_DATASET_OPEN_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_OPEN_TOKENIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct OpenedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string model;  // the bytes of which it is made (make_tokenizer.h)
};

// `path`: a tokenizer.json, a SentencePiece tokenizer.model, or a Hugging Face
// directory that has one of them, the former first. The eos_token of a
// directory's tokenizer_config.json ends a document. NotFound where there is
// none; InvalidArgument, with the file, where it is damaged or not known.
absl::StatusOr<OpenedTokenizer> OpenTokenizer(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_OPEN_TOKENIZER_H_
