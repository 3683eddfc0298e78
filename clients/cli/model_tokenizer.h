// The tokenizer of a model that `troupe eval` was given, and what belongs
// before each of its texts.
#ifndef TROUPE_CLIENTS_CLI_MODEL_TOKENIZER_H_
#define TROUPE_CLIENTS_CLI_MODEL_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/bos_rule.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct ModelTokenizerOptions {
  std::string model;  // a Hugging Face directory or a checkpoint
  // In place of its own: "bytes", or a path as OpenTokenizer takes.
  std::string tokenizer;
  // Whether BOS comes before each text; none: as its files say.
  std::optional<bool> adds_bos;
};

struct ModelTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  BosRule bos;
};

// NotFound where the model has no tokenizer, with the way out. InvalidArgument
// where its files are damaged, and where BOS is asked for and there is none.
absl::StatusOr<ModelTokenizer> OpenModelTokenizer(
    const ModelTokenizerOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_MODEL_TOKENIZER_H_
