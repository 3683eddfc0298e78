// A part of a text that stands for all of it, to train a tokenizer on: all of a
// short text, of a long one pieces from its beginning to its end at even
// distances. The same for the same file.
#ifndef TROUPE_STORAGE_DATASET_TEXT_SAMPLE_H_
#define TROUPE_STORAGE_DATASET_TEXT_SAMPLE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

struct TextSampleOptions {
  uint64_t bytes_max = 0;
  uint64_t piece_bytes = 1 << 18;  // of one piece, at least 1
};

// Whole lines, where lines are shorter than a piece.
absl::StatusOr<std::string> SampleText(const std::string& path,
                                       const TextSampleOptions& options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TEXT_SAMPLE_H_
