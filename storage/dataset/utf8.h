// Characters of a text whose bytes may be anything.
#ifndef TROUPE_STORAGE_DATASET_UTF8_H_
#define TROUPE_STORAGE_DATASET_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace troupe {

// Bytes of the character that `text` begins with; 0 where it begins with none:
// no UTF-8, overlong, a surrogate, past U+10FFFF, cut off, or empty.
size_t CharacterBytes(absl::string_view text);

// How many bytes at the end of `text` may be the beginning of a character whose
// rest is still to come: 0 to 3.
size_t UnfinishedBytes(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_UTF8_H_
