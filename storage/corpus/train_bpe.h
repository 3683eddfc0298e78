// A byte-level BPE of a corpus.
#ifndef TROUPE_STORAGE_CORPUS_TRAIN_BPE_H_
#define TROUPE_STORAGE_CORPUS_TRAIN_BPE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/encode_part.h"

namespace troupe {

struct TrainBpeOptions {
  std::vector<CorpusFile> files;
  PartRules rules;
  bool unpack = true;
  int64_t vocab_size = 0;
  // As PrepareTokensOptions::progress.
  std::function<absl::Status(uint64_t done, uint64_t total)> progress = nullptr;
};

// The bytes of a tokenizer.json, of all documents in their order
// (storage/dataset/hugging_face/bpe_trainer.h); bad lines are errors or left
// out, as where tokens are made. InvalidArgument for the standard input, which
// can be read once.
absl::StatusOr<std::string> TrainBpe(const TrainBpeOptions& options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_TRAIN_BPE_H_
