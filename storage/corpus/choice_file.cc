#include "storage/corpus/choice_file.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/byte_source.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

constexpr size_t kChoiceReadBytes = 1 << 18;
constexpr size_t kChoiceLineBytesMax = 16 << 20;
constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";

// The lines of a file without their ends.
class ChoiceLines {
 public:
  static absl::StatusOr<ChoiceLines> Open(const CorpusFile& file) {
    ChoiceLines lines(file.path);
    ASSIGN_OR_RETURN(lines.source_,
                     OpenByteSource({.path = file.path,
                                     .size = file.size,
                                     .modified_ns = file.modified_ns}));
    return lines;
  }

  // False at the end. The line is there until the next call.
  absl::StatusOr<bool> Next(absl::string_view& line) {
    size_t end = buffer_.find('\n', begin_);
    while (end == std::string::npos && !at_end_) {
      const size_t searched = buffer_.size() - begin_;
      RETURN_IF_ERROR(Fill());
      end = buffer_.find('\n', begin_ + searched);
    }
    const bool is_last = end == std::string::npos;
    if (is_last) end = buffer_.size();
    if (is_last && begin_ == end) return false;
    line = absl::string_view(buffer_).substr(begin_, end - begin_);
    begin_ = is_last ? end : end + 1;
    if (++number_ == 1 && absl::StartsWith(line, kUtf8Mark)) {
      line.remove_prefix(kUtf8Mark.size());
    }
    return true;
  }

  int64_t number() const { return number_; }  // of the last line, from 1
  uint64_t taken() const { return source_->taken(); }

 private:
  explicit ChoiceLines(std::string path) : path_(std::move(path)) {}

  absl::Status Fill() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t had = buffer_.size();
    if (had > kChoiceLineBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ":", number_ + 1, ": the line has more than ",
          kChoiceLineBytesMax >> 20,
          " MiB; each line is one question, so break the file into lines"));
    }
    buffer_.resize(had + kChoiceReadBytes);
    const absl::StatusOr<size_t> got =
        source_->Read(buffer_.data() + had, kChoiceReadBytes);
    buffer_.resize(had + (got.ok() ? *got : 0));
    RETURN_IF_ERROR(got.status());
    at_end_ = *got == 0;
    return absl::OkStatus();
  }

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line
  int64_t number_ = 0;
  bool at_end_ = false;
};

struct EncodedChoices {
  int64_t line = 0;
  ChoiceRecord record;
  std::vector<ChoiceRow> rows;
};

// Each item in turn. Errors of a line name it.
absl::Status ForEachItem(
    const CorpusFile& file, const ChoiceEncoder& encoder,
    const ChoiceProgress& progress,
    const std::function<absl::Status(const EncodedChoices&)>& take) {
  constexpr int64_t kLookEvery = 64;
  ASSIGN_OR_RETURN(ChoiceLines lines, ChoiceLines::Open(file));
  absl::string_view line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return absl::OkStatus();
    if (progress != nullptr && lines.number() % kLookEvery == 1 &&
        !progress(lines.taken())) {
      return absl::CancelledError("interrupted");
    }
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::string place = absl::StrCat(file.path, ":", lines.number());
    EncodedChoices item = {.line = lines.number()};
    absl::StatusOr<ChoiceRecord> record = ParseChoiceRecord(line);
    if (!record.ok()) return Annotate(record.status(), place);
    item.record = *std::move(record);
    absl::StatusOr<std::vector<ChoiceRow>> rows = encoder.Encode(item.record);
    if (!rows.ok()) return Annotate(rows.status(), place);
    item.rows = *std::move(rows);
    RETURN_IF_ERROR(take(item));
  }
}

// Sets `same_as` of each choice. True: there are equal ones.
bool FindDuplicates(const ChoiceRecord& record, ChoiceItem& item) {
  std::map<absl::string_view, int32_t> first;
  for (size_t i = 0; i < record.choices.size(); ++i) {
    const auto place = static_cast<int32_t>(i);
    const auto [at, is_new] = first.emplace(record.choices[i], place);
    if (!is_new) item.choices[i].same_as = at->second;
  }
  return first.size() < record.choices.size();
}

// Whether white space stands between the prompt and any choice, or nothing that
// it could divide. What is no ASCII may be a text without spaces.
bool DividesWords(const ChoiceRecord& record, absl::string_view delimiter) {
  const std::string before = absl::StrCat(record.prompt, delimiter);
  if (before.empty()) return true;
  const auto is_word = [](char byte) { return absl::ascii_isalnum(byte); };
  const char last = before.back();
  return std::none_of(record.choices.begin(), record.choices.end(),
                      [&](const std::string& choice) {
                        return is_word(choice.front()) &&
                               !absl::ascii_isspace(last);
                      });
}

}  // namespace

absl::StatusOr<CorpusFile> FindChoiceFile(const std::string& path) {
  if (path == kStandardInput) {
    return absl::InvalidArgumentError(
        "--choices: the standard input can be read once, and the questions are "
        "read twice; give a file");
  }
  ASSIGN_OR_RETURN(
      const CorpusFiles found,
      FindCorpusFiles({.inputs = {path}, .format = TextFormat::kJsonl}));
  if (found.files.size() != 1 || found.files[0].path != path ||
      found.files[0].is_stream()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": is no file that can be read twice; give one file of questions, "
        "a JSON object on each line"));
  }
  return found.files[0];
}

absl::StatusOr<ChoiceSet> ReadChoices(const CorpusFile& file,
                                      const ChoiceEncoder& encoder,
                                      const ChoiceProgress& progress,
                                      int64_t rows_max) {
  ChoiceSet set = {.joins_words = true};
  RETURN_IF_ERROR(ForEachItem(
      file, encoder, progress, [&](const EncodedChoices& read) -> absl::Status {
        set.rows += static_cast<int64_t>(read.rows.size());
        if (set.rows > rows_max) {
          return absl::InvalidArgumentError(absl::StrCat(
              file.path, ":", read.line, ": the questions up to here have ",
              set.rows, " choices, and one evaluation measures at most ",
              rows_max, "; evaluate the file in parts"));
        }
        ChoiceItem& item = set.items.emplace_back();
        item.line = read.line;
        item.answer = read.record.answer;
        for (size_t i = 0; i < read.rows.size(); ++i) {
          const ChoiceRow& row = read.rows[i];
          const std::string& text = read.record.choices[i];
          item.choices.push_back(
              {.characters = static_cast<int32_t>(CharacterCount(text)),
               .bytes = static_cast<int32_t>(text.size()),
               .tokens =
                   static_cast<int32_t>(row.ids.size() - row.first_counted)});
          const auto tokens = static_cast<int64_t>(row.ids.size());
          if (tokens > set.longest.tokens) {
            set.longest = {tokens, read.line, static_cast<int>(i)};
          }
        }
        set.with_duplicates += FindDuplicates(read.record, item);
        set.joins_words &= !DividesWords(read.record, encoder.delimiter());
        return absl::OkStatus();
      }));
  if (!set.items.empty()) return set;
  return absl::InvalidArgumentError(
      absl::StrCat(file.path,
                   ": has no question; each line is one: {\"prompt\": \"...\", "
                   "\"choices\": [\"...\", \"...\"], \"answer\": 0}"));
}

absl::Status WriteChoiceRows(const CorpusFile& file,
                             const ChoiceEncoder& encoder,
                             const ChoiceRowsOptions& options,
                             const ChoiceProgress& progress) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TokenFileWriter> writer,
      TokenFileWriter::Create({.path = options.path,
                               .vocab_size = encoder.tokenizer().vocab_size(),
                               .tokenizer = encoder.tokenizer().name(),
                               .says_what_counts = true,
                               .packed_length = options.sequence_length}));
  std::vector<uint8_t> counts;
  const auto append = [&](const std::vector<int32_t>& ids) -> absl::Status {
    RETURN_IF_ERROR(writer->Append(ids, counts));
    return writer->EndDocument();
  };
  RETURN_IF_ERROR(ForEachItem(
      file, encoder, progress, [&](const EncodedChoices& item) -> absl::Status {
        for (const ChoiceRow& row : item.rows) {
          if (row.ids.size() > options.sequence_length) {
            return absl::InternalError(absl::StrCat(
                file.path, ":", item.line, ": a row of ", row.ids.size(),
                " tokens in sequences of ", options.sequence_length));
          }
          counts.assign(row.ids.size(), 0);
          std::fill(counts.begin() + static_cast<int64_t>(row.first_counted),
                    counts.end(), 1);
          RETURN_IF_ERROR(append(row.ids));
          counts.assign(options.sequence_length - row.ids.size(), 0);
          RETURN_IF_ERROR(append(std::vector<int32_t>(counts.size(), 0)));
        }
        return absl::OkStatus();
      }));
  // A token follows the last window (token_layout.h).
  counts.assign(1, 0);
  RETURN_IF_ERROR(append({0}));
  return writer->Finish().status();
}

}  // namespace troupe
