// A file of questions (choice_record.h), one on each line, plain, .gz or .zst.
// It is read twice, in bounded memory: first to check it and to learn how long
// its rows are, then to write the rows as a token file on which a model is
// evaluated, a window for each row.
//
//   ASSIGN_OR_RETURN(CorpusFile file, FindChoiceFile("arc.jsonl"));
//   ASSIGN_OR_RETURN(ChoiceSet set, ReadChoices(file, encoder));
//   RETURN_IF_ERROR(WriteChoiceRows(file, encoder,
//       {.path = "rows.tokens", .sequence_length = set.longest.tokens}));
#ifndef TROUPE_STORAGE_CORPUS_CHOICE_FILE_H_
#define TROUPE_STORAGE_CORPUS_CHOICE_FILE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/corpus/choice_record.h"
#include "storage/corpus/corpus_files.h"

namespace troupe {

struct ChoiceItem {
  int64_t line = 0;  // of the file, from 1
  int answer = 0;
  struct Choice {
    int32_t characters = 0;
    int32_t bytes = 0;
    int32_t tokens = 0;
    // The place of the first choice with the same text, where that is another.
    int32_t same_as = kNone;
    static constexpr int32_t kNone = -1;
  };
  std::vector<Choice> choices;
};

struct ChoiceSet {
  std::vector<ChoiceItem> items;  // in the order of the file
  int64_t rows = 0;               // the choices of all items
  struct Longest {
    int64_t tokens = 0;
    int64_t line = 0;
    int choice = 0;
  };
  Longest longest;  // row
  // Items that have a choice twice.
  int64_t with_duplicates = 0;
  // Whether nowhere white space stands between prompt and choice, as it does in
  // most languages.
  bool joins_words = false;
};

// Asked now and then with the bytes of the file that were read; false: the user
// leaves, and the call ends with Cancelled.
using ChoiceProgress = std::function<bool(uint64_t bytes)>;

// NotFound where there is no such file; InvalidArgument where it is a folder or
// cannot be read twice.
absl::StatusOr<CorpusFile> FindChoiceFile(const std::string& path);

// InvalidArgument, with file, line and field, for the first line that is no
// record, for the one with which there are more than `rows_max` choices, and
// for a file without any. Empty lines are passed over.
absl::StatusOr<ChoiceSet> ReadChoices(
    const CorpusFile& file, const ChoiceEncoder& encoder,
    const ChoiceProgress& progress = nullptr,
    int64_t rows_max = std::numeric_limits<int64_t>::max());

struct ChoiceRowsOptions {
  std::string path;
  uint64_t sequence_length = 0;  // REQUIRES that of the longest row, or more
};

// Only the tokens of choices count. Rows are padded with token 0. Where the
// file has changed since FindChoiceFile, FailedPrecondition.
absl::Status WriteChoiceRows(const CorpusFile& file,
                             const ChoiceEncoder& encoder,
                             const ChoiceRowsOptions& options,
                             const ChoiceProgress& progress = nullptr);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_CHOICE_FILE_H_
