// A text file, tokenized into a token file in bounded memory.
#ifndef TROUPE_STORAGE_DATASET_TOKENIZE_FILE_H_
#define TROUPE_STORAGE_DATASET_TOKENIZE_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/dataset/tokenizer.h"
#include "storage/dataset/troupe_file.h"

namespace troupe {

struct TokenizeFileOptions {
  std::string text_path;
  std::string path;  // the token file; replaced where it exists
  // Each line that is not empty is a document: encoded without its line end (LF
  // or CR LF) and followed by the tokenizer's EOS. Else the file is one text,
  // and nothing is inserted.
  bool eos_per_line = false;
  // The bytes of the tokenizer's model, where it has one: put beside the token
  // file when all tokens are on the disk, so that the tokens that were there
  // keep theirs until then. Where it has none, a file of that name stays,
  // whoever it is from; it is not these tokens'.
  std::optional<std::string> model = std::nullopt;
  // That encode; the tokens do not depend on how many there are.
  int threads = 1;
  // Told now and then how many bytes of the text are done. An error ends it,
  // and is returned; then nothing of it is left.
  std::function<absl::Status(uint64_t done, uint64_t total)> progress = nullptr;
};

// InvalidArgument where eos_per_line is asked of a tokenizer without EOS, where
// there is no text or the token file would replace it, or where 64 MiB of the
// text have no place at which they may be cut.
absl::StatusOr<TokenFileHeader> TokenizeFile(
    const Tokenizer& tokenizer, const TokenizeFileOptions& options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TOKENIZE_FILE_H_
