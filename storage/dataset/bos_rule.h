// What transformers puts before each text that it encodes: the beginning-of-
// sequence token of Llama and others, or nothing, as with GPT-2. Tokenizer's
// Encode never inserts it. Where it belongs depends on what is done with the
// text; how the model was trained, the files of its tokenizer say:
//
//  * add_bos_token of tokenizer_config.json, with the bos_token there;
//  * else the post-processor of tokenizer.json;
//  * else, of a SentencePiece tokenizer.model: with a LlamaTokenizer or
//    GemmaTokenizer as the config's tokenizer_class, and else nothing.
#ifndef TROUPE_STORAGE_DATASET_BOS_RULE_H_
#define TROUPE_STORAGE_DATASET_BOS_RULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct BosRule {
  std::vector<int32_t> tokens;  // empty: the tokenizer has no such token
  bool adds = false;            // before each text
};

// Of the tokenizer that is made of `model`, the bytes of a tokenizer.json or of
// a SentencePiece model; empty: of none. `config`: the bytes of
// tokenizer_config.json; empty: there is none. InvalidArgument, with file and
// place, where what they say of this is damaged, or names a token that the
// tokenizer lacks.
struct TokenizerBytes {
  absl::string_view model;
  absl::string_view config;
};
absl::StatusOr<BosRule> FindBosRule(const TokenizerBytes& files,
                                    const Tokenizer& tokenizer);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_BOS_RULE_H_
