// "bytes": each byte is a token, 256 in all. Needs no model, and every text
// comes back as it was.
#ifndef TROUPE_STORAGE_DATASET_BYTES_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_BYTES_TOKENIZER_H_

#include <memory>

#include "storage/dataset/tokenizer.h"

namespace troupe {

std::unique_ptr<Tokenizer> MakeBytesTokenizer();

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_BYTES_TOKENIZER_H_
