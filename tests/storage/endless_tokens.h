// A token file of four tebibytes that takes no room: code that reads all of it
// is not done while a test runs.
#ifndef TROUPE_TESTS_STORAGE_ENDLESS_TOKENS_H_
#define TROUPE_TESTS_STORAGE_ENDLESS_TOKENS_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "storage/dataset/troupe_file.h"
#include "tests/storage/temp_dir.h"

namespace troupe {

// Its tokens are all 0; its checksum is not theirs.
inline void WriteEndlessTokens(const std::string& path, uint64_t vocab_size) {
  constexpr uint64_t kBytes = uint64_t{1} << 42;
  const uint32_t width = BytesPerToken(vocab_size);
  WriteText(path, FormatTokenFileHeader({.bytes_per_token = width,
                                         .vocab_size = vocab_size,
                                         .token_count = kBytes / width,
                                         .data_crc32c = 1,
                                         .tokenizer = "bytes"}));
  std::filesystem::resize_file(path, kTokenFileHeaderBytes + kBytes);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_ENDLESS_TOKENS_H_
