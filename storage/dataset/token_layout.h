// What a token file of any format comes down to: a file of data, the type of an
// id in it, and where in it the ids lie. Each format (troupe_file,
// megatron_file, llmc_file) is a function that checks its files and returns
// this; TokenFile reads ids by it, and is the only one that does.
#ifndef TROUPE_STORAGE_DATASET_TOKEN_LAYOUT_H_
#define TROUPE_STORAGE_DATASET_TOKEN_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/dataset/data_file.h"

namespace troupe {

// Little-endian, of 1, 2, 4 or 8 bytes.
struct TokenType {
  uint32_t bytes = 1;
  bool is_signed = false;
};

// Ids that lie one after the other: from number `first_token` on, up to the
// next run or the end.
struct TokenRun {
  uint64_t first_token = 0;
  uint64_t offset = 0;  // bytes, in `data`
};

// Where each document ends: 8 bytes each, the number of the token behind its
// last one; they ascend, and the last one is the number of tokens.
struct DocumentEnds {
  uint64_t offset = 0;  // bytes, in `data`
  uint32_t crc32c = 0;  // of all of them
};

// Which tokens count: a bit each, bit i mod 8 of byte i / 8 for token i.
struct CountedBits {
  uint64_t offset = 0;  // bytes, in `data`
  uint64_t tokens = 0;  // how many count
  uint32_t crc32c = 0;  // of all bytes of bits
};

struct TokenLayout {
  std::string format;            // "troupe", "megatron", "llm.c"
  std::optional<DataFile> data;  // there; all runs lie in it
  TokenType type;
  uint64_t token_count = 0;
  std::vector<TokenRun> runs;  // by first_token, the first at 0; none if empty
  uint64_t vocab_size = 0;     // 0: the format does not say
  uint64_t documents = 0;      // 0: the format does not say
  std::optional<DocumentEnds> document_ends;  // where the file has them
  std::optional<CountedBits> counted;         // none: all tokens count
  // The sequence length for which records were packed: no document lies in two
  // windows of it, and a token follows the last window. 0: they were not.
  uint64_t packed_length = 0;
  std::string tokenizer;  // by name; empty: the format does not say
  std::optional<uint32_t> data_crc32c;  // of the one run, where there is one
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKEN_LAYOUT_H_
