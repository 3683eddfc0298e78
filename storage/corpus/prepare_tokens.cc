#include "storage/corpus/prepare_tokens.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/text_parts.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/part_encoder.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

absl::Status CheckFiles(const Tokenizer& tokenizer,
                        const PrepareTokensOptions& options) {
  for (const CorpusFile& file : options.files) {
    if (file.format == TextFormat::kLines && !tokenizer.eos_id().has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the tokenizer ", tokenizer.name(),
          " has no token that ends a document; use another, or do without "
          "--append-eos-per-line"));
    }
    if (file.format != TextFormat::kJsonl && options.rules.records != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path,
          ": is a text; records with completions are lines of JSON: name the "
          "file .jsonl, or give --format jsonl"));
    }
    std::error_code none;  // where the token file is not there yet
    if (!fs::equivalent(file.path, options.path, none)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(options.path,
                     ": is one of the texts, which the token file would "
                     "replace; give another --out"));
  }
  return absl::OkStatus();
}

// All that tokens depend on. Empty where it cannot be known, as of the standard
// input: then nothing is continued. Threads and leaving out bad lines are no
// part of it: what was done until a bad line is right either way.
std::string SourceOf(const Tokenizer& tokenizer,
                     const PrepareTokensOptions& options) {
  nlohmann::json files = nlohmann::json::array();
  for (const CorpusFile& file : options.files) {
    if (file.is_stream()) return "";
    std::error_code unknown;
    const std::string path = fs::absolute(file.path, unknown).string();
    files.push_back(
        {path, static_cast<int>(file.format), file.size, file.modified_ns});
  }
  const nlohmann::json source = {
      {"tokenizer", tokenizer.name()},
      {"vocabulary", tokenizer.vocab_size()},
      {"field", options.rules.field},
      {"records", options.rules.records == nullptr
                      ? nlohmann::json()
                      : nlohmann::json(options.rules.records->identity())},
      {"sequence_length", options.rules.sequence_length},
      {"line_bytes_max", options.rules.line_bytes_max},
      {"unpack", options.unpack},
      {"files", std::move(files)}};
  // Names of files need not be UTF-8.
  return source.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Preparation {
 public:
  Preparation(const Tokenizer& tokenizer, const PrepareTokensOptions& options,
              TokenFileWriter& writer, const CorpusPosition& start,
              bool can_save)
      : tokenizer_(tokenizer),
        options_(options),
        writer_(writer),
        parts_(options.files, &tokenizer,
               {.unpack = options.unpack,
                .line_bytes_max = options.rules.line_bytes_max,
                .skip_bad_lines = options.rules.skip_bad_lines},
               start),
        can_save_(can_save),
        skipped_(start.skipped),
        padding_(start.padding) {
    for (const CorpusFile& file : options.files) total_ += file.size;
    const bool known =
        std::all_of(options.files.begin(), options.files.end(),
                    [](const CorpusFile& file) { return !file.is_stream(); });
    if (!known) total_ = 0;
  }

  absl::Status Run() {
    PartEncoder encoder(options_.threads);
    while (true) {
      absl::StatusOr<std::optional<TextPart>> part = parts_.Next();
      if (!part.ok() || !part->has_value()) {
        // An error in what was read before comes first.
        RETURN_IF_ERROR(encoder.Finish());
        return part.ok() ? EndRecords() : part.status();
      }
      const auto text = std::make_shared<const TextPart>(*std::move(*part));
      RETURN_IF_ERROR(encoder.Add(
          [this, text](EncodedPart& out) {
            return EncodeTextPart(tokenizer_, options_.rules, *text, out);
          },
          [this, text](const EncodedPart& done) { return Put(*text, done); }));
      if (options_.progress) {
        RETURN_IF_ERROR(options_.progress(parts_.taken(), total_));
      }
    }
  }

  // Of lines that were encoded; those too long to be held are in the position.
  int64_t skipped() const { return skipped_; }
  uint64_t padding() const { return padding_; }

 private:
  // The tokens that the sequence which is being filled has room for; 0: it is
  // empty, or records are not packed.
  uint64_t Room() const {
    const uint64_t length = options_.rules.sequence_length;
    if (length == 0) return 0;
    return (length - writer_.header().token_count % length) % length;
  }

  absl::Status Pad(uint64_t tokens) {
    const std::vector<int32_t> ids(tokens, tokenizer_.eos_id().value_or(0));
    padding_ += tokens;
    return writer_.Append(ids, std::vector<uint8_t>(tokens, 0));
  }

  // A record ends where the next one begins, so padding is a part of it.
  absl::Status PutRecords(const EncodedPart& done) {
    const auto ids = absl::MakeConstSpan(done.ids);
    const auto counts = absl::MakeConstSpan(done.counts);
    size_t begin = 0;
    for (const size_t end : done.ends) {
      const size_t tokens = end - begin;
      const uint64_t room = Room();
      if (tokens > room) RETURN_IF_ERROR(Pad(room));
      RETURN_IF_ERROR(writer_.EndDocument());
      RETURN_IF_ERROR(writer_.Append(ids.subspan(begin, tokens),
                                     counts.subspan(begin, tokens)));
      begin = end;
    }
    return absl::OkStatus();
  }

  absl::Status EndRecords() {
    if (options_.rules.records == nullptr ||
        writer_.header().token_count == 0) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Pad(Room()));
    if (options_.rules.sequence_length > 0) RETURN_IF_ERROR(Pad(1));
    return writer_.EndDocument();
  }

  absl::Status PutTexts(const EncodedPart& done) {
    size_t begin = 0;
    for (const size_t end : done.ends) {
      RETURN_IF_ERROR(writer_.Append(
          absl::MakeConstSpan(done.ids).subspan(begin, end - begin)));
      RETURN_IF_ERROR(writer_.EndDocument());
      begin = end;
    }
    return writer_.Append(absl::MakeConstSpan(done.ids).subspan(begin));
  }

  absl::Status Put(const TextPart& part, const EncodedPart& done) {
    RETURN_IF_ERROR(options_.rules.records != nullptr ? PutRecords(done)
                                                      : PutTexts(done));
    bad_lines_ += done.skipped;
    skipped_ = part.after.skipped + bad_lines_;
    unsaved_bytes_ += part.text.size();
    if (!can_save_ || unsaved_bytes_ < options_.save_every_bytes) {
      return absl::OkStatus();
    }
    unsaved_bytes_ = 0;
    CorpusPosition after = part.after;
    after.skipped = skipped_;
    after.padding = padding_;
    return writer_.Save(FormatPosition(after));
  }

  const Tokenizer& tokenizer_;
  const PrepareTokensOptions& options_;
  TokenFileWriter& writer_;
  TextParts parts_;
  const bool can_save_;
  uint64_t total_ = 0;  // bytes of the files; 0: not known
  int64_t bad_lines_ = 0;
  int64_t skipped_;
  uint64_t padding_;
  uint64_t unsaved_bytes_ = 0;
};

absl::Status NoText(const PrepareTokensOptions& options) {
  const size_t files = options.files.size();
  return absl::InvalidArgumentError(
      files == 1
          ? absl::StrCat(options.files[0].path,
                         ": is empty; there is no text in it")
          : absl::StrCat("there is no text in any of the ", files, " files"));
}

std::string UnfinishedName(const PrepareTokensOptions& options) {
  return absl::StrCat(options.path, ".partial");
}

// Where the writer's unfinished file ends.
absl::StatusOr<CorpusPosition> StartOf(const TokenFileWriter& writer,
                                       const PrepareTokensOptions& options) {
  const auto note = [&](const std::string& line) {
    if (options.note) options.note(absl::StrCat(UnfinishedName(options), line));
  };
  if (!writer.begun_anew().empty()) {
    note(absl::StrCat(": ", writer.begun_anew(), "; beginning anew"));
  }
  if (writer.position().empty()) return CorpusPosition();
  note(absl::StrCat(": continuing behind its ", writer.header().token_count,
                    " tokens"));
  return ParsePosition(writer.position());
}

}  // namespace

absl::StatusOr<PreparedTokens> PrepareTokens(
    const Tokenizer& tokenizer, const PrepareTokensOptions& options) {
  RETURN_IF_ERROR(CheckFiles(tokenizer, options));
  const std::string source = SourceOf(tokenizer, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TokenFileWriter> writer,
                   TokenFileWriter::Create(
                       {.path = options.path,
                        .vocab_size = tokenizer.vocab_size(),
                        .tokenizer = tokenizer.name(),
                        .source = source,
                        .says_what_counts = options.rules.records != nullptr,
                        .packed_length = options.rules.sequence_length}));
  ASSIGN_OR_RETURN(const CorpusPosition start, StartOf(*writer, options));
  Preparation preparation(tokenizer, options, *writer, start,
                          /*can_save=*/!source.empty());
  const absl::Status done = preparation.Run();
  if (!done.ok() && writer->saved() && !absl::IsCancelled(done)) {
    return absl::Status(
        done.code(),
        absl::StrCat(done.message(), "; what was done until then is in ",
                     UnfinishedName(options),
                     ", and the same command continues it"));
  }
  RETURN_IF_ERROR(done);
  if (writer->header().token_count == 0) return NoText(options);
  // Where the tokens are, what they mean is too. Should the machine go down
  // between the two, the model's checksum in the old tokens' name of their
  // tokenizer does not fit, and each reader says so.
  if (options.model.has_value()) {
    RETURN_IF_ERROR(writer->Sync());
    RETURN_IF_ERROR(WriteTokenizerModel(options.path, *options.model));
  }
  PreparedTokens prepared = {.skipped_lines = preparation.skipped(),
                             .padding = preparation.padding()};
  ASSIGN_OR_RETURN(prepared.header, writer->Finish());
  return prepared;
}

}  // namespace troupe
