// Token files as other programs write them, byte by byte and without a line of
// ours that reads them.
#ifndef TROUPE_TESTS_STORAGE_DATASET_FOREIGN_FILES_H_
#define TROUPE_TESTS_STORAGE_DATASET_FOREIGN_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "storage/engine/little_endian.h"

namespace troupe {

// The lowest `bytes` bytes of each value, as numpy's tobytes writes them.
inline std::string Packed(const std::vector<int64_t>& values, size_t bytes) {
  std::string out;
  for (const int64_t value : values) {
    char all[8];
    StoreLittleEndian<uint64_t>(static_cast<uint64_t>(value), all);
    out.append(all, bytes);
  }
  return out;
}

// Megatron-LM's .idx.
struct MegatronIndex {
  int64_t version = 1;
  int code = 8;  // uint16
  std::vector<int64_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> documents = {0};
};
inline std::string MegatronIndexBytes(const MegatronIndex& index) {
  return std::string("MMIDIDX\0\0", 9) + Packed({index.version}, 8) +
         Packed({index.code}, 1) +
         Packed({static_cast<int64_t>(index.lengths.size()),
                 static_cast<int64_t>(index.documents.size())},
                8) +
         Packed(index.lengths, 4) + Packed(index.pointers, 8) +
         Packed(index.documents, 8);
}

// llm.c's .bin.
struct LlmcHeader {
  int64_t magic = 20240520;
  int64_t version = 1;
  int64_t tokens = 0;
};
inline std::string LlmcHeaderBytes(const LlmcHeader& header) {
  return Packed({header.magic, header.version, header.tokens}, 4) +
         std::string(1024 - 12, '\0');
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_DATASET_FOREIGN_FILES_H_
