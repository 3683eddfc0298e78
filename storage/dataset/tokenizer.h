// Text to token ids and back. A tokenizer is found by its name, which token
// files and checkpoints carry; tokenizer.cc lists them in one table, and a new
// one is one more row there.
#ifndef TROUPE_STORAGE_DATASET_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe {

// Immutable; thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual absl::string_view name() const = 0;
  virtual uint64_t vocab_size() const = 0;
  // Appends the ids of `text` to `ids`.
  virtual absl::Status Encode(absl::string_view text,
                              std::vector<int32_t>& ids) const = 0;
  // InvalidArgument for an id outside the vocabulary. The bytes need not be
  // valid UTF-8: a model may stop within a character.
  virtual absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const = 0;
};

// "bytes": each byte is a token, 256 in all. InvalidArgument, with the names
// that exist, for another name.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(
    absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKENIZER_H_
