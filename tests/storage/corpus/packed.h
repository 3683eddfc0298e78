// Bytes as gzip and zstd pack them.
#ifndef TROUPE_TESTS_STORAGE_CORPUS_PACKED_H_
#define TROUPE_TESTS_STORAGE_CORPUS_PACKED_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// One member; one frame.
std::string Gzipped(absl::string_view bytes);
std::string Zstded(absl::string_view bytes);

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_CORPUS_PACKED_H_
