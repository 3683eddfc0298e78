// A SentencePiece model as a tokenizer.json, the format of Hugging Face's
// `tokenizers` library, which gives the same ids.
//
// That library has no types of pieces: all that its vocabulary has may be found
// in a text. Troupe, as SentencePiece, never makes "</s>" or "<0x0A>" of a text
// that spells them; here they get scores with which they are never chosen, and
// no merges. Nor does it map characters quite alike where a model has a table
// of them (nfkc and its kin): it goes by grapheme, SentencePiece by the longest
// entry, so half-width katakana with sound marks come out differently.
// tests/oracle/check_tokenizer.py compares them.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_SENTENCEPIECE_JSON_H_
#define TROUPE_CLIENTS_HUGGING_FACE_SENTENCEPIECE_JSON_H_

#include <nlohmann/json.hpp>

#include "storage/dataset/sentencepiece/model.h"

namespace troupe {

nlohmann::json SentencePieceJson(const SentencePieceModel& model);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_SENTENCEPIECE_JSON_H_
