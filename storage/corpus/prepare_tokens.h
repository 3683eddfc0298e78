// A corpus, tokenized into a token file: in bounded memory, on several threads,
// with the same bytes whatever their number, and continued where an earlier
// call was killed.
//
// Records of which some tokens count (PartRules::records) are packed where
// there is a sequence length: each into the sequence that is being filled,
// where it has room, else into the next one. What is left of a sequence is
// filled with tokens that do not count, EOS or 0, as a part of its last record;
// a further one follows the last sequence, which is its last target.
#ifndef TROUPE_STORAGE_CORPUS_PREPARE_TOKENS_H_
#define TROUPE_STORAGE_CORPUS_PREPARE_TOKENS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/encode_part.h"
#include "storage/dataset/tokenizer.h"
#include "storage/dataset/troupe_file.h"

namespace troupe {

struct PrepareTokensOptions {
  std::vector<CorpusFile> files;
  std::string path;  // the token file; replaced where it exists
  PartRules rules;
  bool unpack = true;  // files that are compressed
  // The bytes of the tokenizer's model, where it has one: put beside the token
  // file when all tokens are on the disk, so that the tokens that were there
  // keep theirs until then. Where it has none, a file of that name stays,
  // wherever it is from; it is not these tokens'.
  std::optional<std::string> model = std::nullopt;
  // That encode; the tokens do not depend on how many there are.
  int threads = 1;
  // After as many bytes of text what was done is saved, so that it is not done
  // again.
  uint64_t save_every_bytes = 64 << 20;
  // Told now and then how many bytes of the files are done; `total` is 0 where
  // that is not known. An error ends it, and is returned.
  std::function<absl::Status(uint64_t done, uint64_t total)> progress = nullptr;
  // Told once, where an unfinished file was there: that it is continued, or why
  // not.
  std::function<void(const std::string& line)> note = nullptr;
};

struct PreparedTokens {
  TokenFileHeader header;
  int64_t skipped_lines = 0;
  uint64_t padding = 0;  // tokens that fill sequences up
};

// InvalidArgument where a corpus of lines is asked of a tokenizer without EOS,
// where there is no text, where records are asked of files that are no JSON
// lines, or where the token file would replace a file of the corpus; the errors
// of TextParts, EncodeTextPart and TokenFileWriter. What was saved until an
// error is kept, and the message says so; otherwise nothing is left.
absl::StatusOr<PreparedTokens> PrepareTokens(
    const Tokenizer& tokenizer, const PrepareTokensOptions& options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_PREPARE_TOKENS_H_
