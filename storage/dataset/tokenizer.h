// Text to token ids and back: what every tokenizer is. make_tokenizer.h finds
// one by its name, which token files and checkpoints carry.
#ifndef TROUPE_STORAGE_DATASET_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_TOKENIZER_H_

#include <cstdint>
#include <optional>
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
  // At most 24 bytes.
  virtual std::string name() const = 0;
  virtual uint64_t vocab_size() const = 0;
  // What ends a document; none where the vocabulary has no such token.
  virtual std::optional<int32_t> eos_id() const = 0;

  // Appends the ids of a whole text to `ids`; no BOS, no EOS.
  virtual absl::Status Encode(absl::string_view text,
                              std::vector<int32_t>& ids) const = 0;

  // For a text that is too long to be held: the ids of all its parts, the first
  // by Encode, the others by EncodeLater, are those of the whole where each
  // part but the last ends at CutPoint.
  virtual absl::Status EncodeLater(absl::string_view text,
                                   std::vector<int32_t>& ids) const = 0;
  // How many bytes of `text`, the beginning of something longer, may be a part;
  // 0: more must be read to find out. Places before byte `searched` are not
  // tried again. Where there is none, `searched` becomes how far that is known
  // whatever follows, so that a text which grows is searched once: begin with
  // 0, and again after each cut.
  virtual size_t CutPoint(absl::string_view text, size_t& searched) const = 0;

  // The bytes for which a token stands within a text; empty for one that stands
  // for none (BOS, EOS). They may be a part of a character only.
  // InvalidArgument for an id outside the vocabulary.
  virtual absl::StatusOr<std::string> TokenText(int32_t id) const = 0;

  // A whole text. The bytes need not be valid UTF-8: a model may stop within a
  // character. Errors as above.
  virtual absl::StatusOr<std::string> Decode(
      absl::Span<const int32_t> ids) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKENIZER_H_
