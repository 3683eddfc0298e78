// A token file of texts, in one call.
#ifndef TROUPE_TESTS_STORAGE_CORPUS_PREPARE_H_
#define TROUPE_TESTS_STORAGE_CORPUS_PREPARE_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/base/status.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/prepare_tokens.h"

namespace troupe {

struct PrepareCall {
  std::vector<std::string> inputs;
  std::string path;
  bool lines = false;  // of texts: each is a document
  PrepareTokensOptions options = {};
};

inline absl::StatusOr<PreparedTokens> Prepare(const Tokenizer& tokenizer,
                                              const PrepareCall& call) {
  ASSIGN_OR_RETURN(CorpusFiles found, FindCorpusFiles({.inputs = call.inputs}));
  PrepareTokensOptions options = call.options;
  for (CorpusFile& file : found.files) {
    if (call.lines && file.format == TextFormat::kText) {
      file.format = TextFormat::kLines;
    }
  }
  options.files = std::move(found.files);
  options.path = call.path;
  return PrepareTokens(tokenizer, options);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_CORPUS_PREPARE_H_
