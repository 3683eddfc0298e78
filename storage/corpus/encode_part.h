// A part of a corpus as tokens.
#ifndef TROUPE_STORAGE_CORPUS_ENCODE_PART_H_
#define TROUPE_STORAGE_CORPUS_ENCODE_PART_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/corpus/record_encoder.h"
#include "storage/corpus/text_parts.h"
#include "storage/dataset/part_encoder.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct PartRules {
  std::string field = "text";  // of JSON lines
  uint64_t line_bytes_max = 64 << 20;
  bool skip_bad_lines = false;
  // In place of `field`: lines are records of which some tokens count.
  // Borrowed; null: they are texts.
  const RecordEncoder* records = nullptr;
  // Of records: a longer one is a bad line; 0: any length.
  uint64_t sequence_length = 0;
};

// Appends the ids of a part's documents, the tokenizer's EOS behind each where
// it has one, and where they end. InvalidArgument, with file and line, for a
// line that is no document or record, unless such are left out and counted.
absl::Status EncodeTextPart(const Tokenizer& tokenizer, const PartRules& rules,
                            const TextPart& part, EncodedPart& out);

// The texts of a part that has lines: of each its document. Returns how many
// lines were left out; errors as above, and those of `each`.
absl::StatusOr<int64_t> ForEachDocument(
    const PartRules& rules, const TextPart& part,
    absl::FunctionRef<absl::Status(absl::string_view text)> each);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_ENCODE_PART_H_
