// The token files of llm.c (dev/data/data_common.py of karpathy/llm.c):
//
//   offset  bytes  field (all little-endian)
//        0      4  magic: 20240520 for GPT-2's tokens, 20240801 for Llama 3's
//        4      4  version: 1, and 7
//        8      4  number of tokens, N, signed
//       12   1012  zeros
//     1024         N tokens: of 2 bytes, and of 4; nothing after them
//
// They say nothing of vocabulary and documents.
#ifndef TROUPE_STORAGE_DATASET_LLMC_FILE_H_
#define TROUPE_STORAGE_DATASET_LLMC_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/token_layout.h"

namespace troupe {

// Whether it begins with one of the magics.
bool IsLlmcFile(const std::string& path);
// DataLoss with the path and the offset where version, count and the file's
// size do not fit each other.
absl::StatusOr<TokenLayout> ReadLlmcFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_LLMC_FILE_H_
