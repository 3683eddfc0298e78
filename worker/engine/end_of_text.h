// The tokens by which a model says that a text ends. Where a model comes from
// says it in different ways: Hugging Face's configs, a tokenizer, or, for
// GPT-2's tokens without either, the vocabulary.
#ifndef TROUPE_WORKER_ENGINE_END_OF_TEXT_H_
#define TROUPE_WORKER_ENGINE_END_OF_TEXT_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct EndOfTextSources {
  // Of the files that the checkpoint carries; empty where it carries none.
  std::string generation_config;  // generation_config.json
  std::string config;             // config.json
  const ModelSpec& model;
  const Tokenizer* tokenizer = nullptr;  // null: not known
};

// All of these, as far as they are in the model's vocabulary:
//
//  * eos_token_id, a number or a list, of generation_config.json; where it is
//    absent there, of config.json; where it is absent there, too, what
//    transformers takes for its model_type;
//  * the tokenizer's own;
//  * where none of them is there to ask: 50256 of a gpt2 with GPT-2's
//  vocabulary.
//
// None: such a text ends when it is long enough. InvalidArgument, with file and
// key, for an eos_token_id that is neither.
absl::StatusOr<std::set<int32_t>> EndOfTextTokens(
    const EndOfTextSources& sources);

// Of a checkpoint. Its configs do not count where the tokenizer files that it
// carries do not belong to the tokens on which it was trained
// (storage/dataset/tokenizer_files.h). Errors as above, or of the disk.
absl::StatusOr<std::set<int32_t>> EndOfTextTokensOf(
    const std::string& checkpoint, const Manifest& manifest,
    const ModelSpec& model, const Tokenizer* tokenizer);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_END_OF_TEXT_H_
