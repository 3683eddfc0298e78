// The files that a job's checkpoints carry (storage/checkpoint/assets.h), so
// that text can be generated from them, and they be exported, wherever they are
// moved to. Of each name the first that is there:
//
//   1. <data.tokens>.model as tokenizer.model or tokenizer.json: the model by
//      which the tokens were made (docs/formats.md), unless they were made
//      without;
//   2. the config, tokenizer and chat template of the directory `model.hf`;
//   3. what the checkpoint carries from which the job resumed.
//
// Tokenizer files of 2 and 3 are left out where they do not belong to the
// tokens (storage/dataset/tokenizer_files.h).
#ifndef TROUPE_WORKER_ENGINE_CARRIED_FILES_H_
#define TROUPE_WORKER_ENGINE_CARRIED_FILES_H_

#include <string>
#include <vector>

#include "storage/checkpoint/assets.h"

namespace troupe {

// The model of SentencePiece among them.
inline constexpr char kTokenizerModelAsset[] = "tokenizer.model";

struct CarriedFilesOptions {
  std::string tokens;        // data.tokens; empty: none
  std::string tokenizer;     // that made them, by name; empty: not known
  std::string hf;            // model.hf; empty: none
  std::string resumed_from;  // a checkpoint's directory; empty: none
};

// What cannot be read is left out, with a warning in the log: training does not
// need it.
std::vector<CarriedFile> CollectCarriedFiles(
    const CarriedFilesOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CARRIED_FILES_H_
