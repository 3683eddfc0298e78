// The text of a corpus in parts that can be encoded by themselves: some lines
// of a file, or a piece of a long text that ends where the tokenizer allows a
// cut. Which text lies in which part has no influence on the tokens.
#ifndef TROUPE_STORAGE_CORPUS_TEXT_PARTS_H_
#define TROUPE_STORAGE_CORPUS_TEXT_PARTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/corpus/byte_source.h"
#include "storage/corpus/corpus_files.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

// Up to where a corpus is done.
struct CorpusPosition {
  uint64_t file = 0;    // its number; those before are done
  uint64_t offset = 0;  // bytes of it, unpacked
  int64_t lines = 0;    // of it
  int64_t skipped = 0;  // bad lines, of all files
  bool within = false;  // a text of which a part is done
  uint64_t padding = 0;  // tokens that fill sequences up, of all files
};

// "3 1048576 2000 0 1 0" and back; InvalidArgument for another text.
std::string FormatPosition(const CorpusPosition& position);
absl::StatusOr<CorpusPosition> ParsePosition(absl::string_view text);

struct TextPart {
  std::string text;  // of lines: with their ends
  const CorpusFile* file = nullptr;
  int64_t first_line = 1;  // the number of the first line, from 1
  // Of a document over several parts.
  bool begins = true;
  bool ends = true;
  CorpusPosition after;
};

struct TextPartsOptions {
  bool unpack = true;
  // A longer line is an error, or is left out and counted.
  uint64_t line_bytes_max = 64 << 20;
  bool skip_bad_lines = false;
};

class TextParts {
 public:
  // Borrows all but `start`. Texts are cut where `tokenizer` allows it; without
  // one (nullptr) before a single space or line's end.
  TextParts(const std::vector<CorpusFile>& files, const Tokenizer* tokenizer,
            const TextPartsOptions& options, const CorpusPosition& start);

  // None at the end. Errors of ByteSource, and, of what can be read once,
  // CheckBeginning; InvalidArgument, with file and line, for a line that is too
  // long, and for 64 MiB of a text without a place where it may be cut.
  absl::StatusOr<std::optional<TextPart>> Next();

  // Bytes of the files that were taken, before unpacking.
  uint64_t taken() const;

 private:
  absl::Status OpenFile();
  absl::Status CheckStream();
  absl::Status Fill();
  // How much of what waits may be a part; 0: more is needed.
  absl::StatusOr<size_t> Complete();
  absl::StatusOr<size_t> CompleteLines();
  size_t CutOfText();
  absl::Status DropLine();
  TextPart Cut(size_t bytes, bool at_end);
  const CorpusFile& file() const { return files_[at_.file]; }

  const std::vector<CorpusFile>& files_;
  const Tokenizer* const tokenizer_;
  const TextPartsOptions options_;
  CorpusPosition at_;
  std::unique_ptr<ByteSource> source_;  // of the file at_; null: not open
  uint64_t taken_before_ = 0;           // of the files before it
  std::string waiting_;                 // behind at_
  size_t searched_ = 0;                 // bytes of it that have no place to cut
  bool file_ends_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_TEXT_PARTS_H_
