// The tokenizer files of a Hugging Face directory, and whether they belong to
// given tokens. A job may train a directory's model on tokens that another
// tokenizer made. The directory's files then give wrong ids: text would be
// encoded wrongly, and would end at the id of a common piece. Checkpoints do
// not carry such files, exports replace them, and generation ignores their
// end-of-text ids: all three ask here.
#ifndef TROUPE_STORAGE_DATASET_TOKENIZER_FILES_H_
#define TROUPE_STORAGE_DATASET_TOKENIZER_FILES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// Their contents; empty where a file is absent.
struct TokenizerFiles {
  std::string model;      // tokenizer.model, of SentencePiece
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json
};

// Whether a file of this name says how text becomes ids, or which ids are
// special: these three, vocab.json, generation_config.json and others.
// config.json, which says more than that, is not among them.
bool IsTokenizerFile(absl::string_view name);

// What made the tokens.
struct TokensOrigin {
  std::string tokenizer;  // its name (make_tokenizer.h); empty: not known
  // Its tokenizer.model, of SentencePiece; empty: only `files` may have it.
  std::string model;
};

// Decides by content. Where a tokenizer.json made the tokens, the directory's
// must be the same, byte for byte. Where a SentencePiece model made them:
//
//  * a tokenizer.json must have the pieces of the tokens' model under the same
//    ids;
//  * without one, the directory's tokenizer.model must be the tokens' model,
//    and its tokenizer_config.json of a class that reads such models, with the
//    same special tokens.
//
// True where the tokens' tokenizer is not known, or of no kind that Troupe has:
// nothing contradicts the files.
// False for `bytes`, which no directory has.
bool BelongToTokens(const TokenizerFiles& files, const TokensOrigin& origin);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKENIZER_FILES_H_
