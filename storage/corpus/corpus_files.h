// The files of a corpus, in the one order in which their documents become
// tokens: arguments as they were given; the files of a folder, its subfolders'
// among them, by the bytes of their paths.
//
// Of a folder all files are taken whose names end in .txt, .jsonl or .ndjson,
// packed (.gz, .zst) or not. Names that begin with a dot are passed over, and
// links to folders are not followed. A file that is named itself is a text,
// unless its name says JSON lines.
#ifndef TROUPE_STORAGE_CORPUS_CORPUS_FILES_H_
#define TROUPE_STORAGE_CORPUS_CORPUS_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

enum class TextFormat {
  kText,   // a document
  kLines,  // each line that is not empty is a document
  kJsonl,  // each line is an object, of which one field is a document
};

struct CorpusFile {
  std::string path;  // "-": the standard input
  TextFormat format = TextFormat::kText;
  // When it was found; 0: not known, as of the standard input.
  uint64_t size = 0;
  int64_t modified_ns = 0;

  // The standard input or a pipe, which can be read once.
  bool is_stream() const { return modified_ns == 0; }
};

struct CorpusFiles {
  std::vector<CorpusFile> files;
  // Of folders: what was passed over, by the ends of names.
  std::map<std::string, int64_t> passed_over;
};

struct CorpusFilesOptions {
  std::vector<std::string> inputs;   // files, folders, "-"
  std::optional<TextFormat> format;  // of all files; else by their names
};

// NotFound with the path of what is not there; InvalidArgument where a folder
// has no such file, where "-" is given twice, and for Parquet files, with the
// way to read them.
absl::StatusOr<CorpusFiles> FindCorpusFiles(const CorpusFilesOptions& options);

// InvalidArgument for the standard input and pipes: a tokenizer is trained
// before the text is encoded.
absl::Status CheckCanBeReadTwice(const CorpusFile& file);

// By the end of its name, without .gz or .zst.
std::optional<TextFormat> FormatOfName(absl::string_view name);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_CORPUS_FILES_H_
