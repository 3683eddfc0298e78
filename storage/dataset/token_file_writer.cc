#include "storage/dataset/token_file_writer.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/crc32c.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/new_file.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint64_t kWrittenEndBytes = 8;
constexpr uint64_t kStateBytesMax = 1 << 20;
constexpr uint64_t kSourceBytesMax = uint64_t{1} << 30;
constexpr char kSource[] = "source";
constexpr char kTokens[] = "tokens";
constexpr char kEnds[] = "ends";
constexpr char kCounted[] = "counted";
constexpr char kState[] = "state";
// How the file `source` begins, by which the folder is known.
constexpr char kSourceLine[] = "An unfinished token file of Troupe's.\n";

absl::Status CheckOptions(const TokenFileWriterOptions& options) {
  if (options.vocab_size < 1 || options.vocab_size > uint64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path, ": vocabulary size ", options.vocab_size,
                     "; it must be 1 to 2^31"));
  }
  if (options.tokenizer.empty() ||
      options.tokenizer.size() > kTokenizerNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.path, ": tokenizer name \"", options.tokenizer,
        "\"; it must have 1 to ", kTokenizerNameBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

bool Exists(const std::string& path) {
  struct stat info;
  return LstatPath(path, &info) == 0;
}

// The checksum of a file's bytes [from, from + bytes).
absl::StatusOr<uint32_t> ChecksumOf(const PosixFile& file, uint64_t from,
                                    uint64_t bytes) {
  std::string chunk(kBufferBytes, '\0');
  uint32_t crc = 0;
  for (uint64_t done = 0; done < bytes; done += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), bytes - done));
    RETURN_IF_ERROR(file.ReadAt(from + done, chunk.size(), chunk.data()));
    crc = ExtendCrc32c(crc, chunk);
  }
  return crc;
}

// What Save keeps, as a line of JSON and one with its checksum.
struct SavedState {
  uint64_t tokens = 0;
  uint32_t tokens_crc32c = 0;
  uint64_t documents = 0;
  uint32_t ends_crc32c = 0;
  uint64_t last_end = 0;
  uint64_t counted_tokens = 0;
  uint32_t counted_crc32c = 0;  // of whole bytes of bits
  uint32_t last_bits = 0;       // behind them
  std::string position;
};

std::string FormatState(const SavedState& state) {
  const std::string line = nlohmann::json{
      {"tokens", state.tokens},
      {"tokens_crc32c", state.tokens_crc32c},
      {"documents", state.documents},
      {"ends_crc32c", state.ends_crc32c},
      {"last_end", state.last_end},
      {"counted_tokens", state.counted_tokens},
      {"counted_crc32c", state.counted_crc32c},
      {"last_bits", state.last_bits},
      {"position",
       state.position}}.dump();
  return absl::StrFormat("%s\n%08x\n", line, Crc32c(line));
}

absl::StatusOr<SavedState> ParseState(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  if (text != absl::StrFormat("%s\n%08x\n", line, Crc32c(line))) {
    return absl::DataLossError("its state is damaged");
  }
  const auto json = nlohmann::json::parse(line, nullptr, false);
  // What has this checksum was written by FormatState.
  return SavedState{.tokens = json.value("tokens", uint64_t{0}),
                    .tokens_crc32c = json.value("tokens_crc32c", uint32_t{0}),
                    .documents = json.value("documents", uint64_t{0}),
                    .ends_crc32c = json.value("ends_crc32c", uint32_t{0}),
                    .last_end = json.value("last_end", uint64_t{0}),
                    .counted_tokens = json.value("counted_tokens", uint64_t{0}),
                    .counted_crc32c = json.value("counted_crc32c", uint32_t{0}),
                    .last_bits = json.value("last_bits", uint32_t{0}),
                    .position = json.value("position", std::string())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFileWriter>> TokenFileWriter::Create(
    const TokenFileWriterOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(std::string target, ReplaceablePath(options.path));
  std::unique_ptr<TokenFileWriter> writer(
      new TokenFileWriter(options, std::move(target)));
  RETURN_IF_ERROR(writer->Open());
  return writer;
}

TokenFileWriter::TokenFileWriter(const TokenFileWriterOptions& options,
                                 std::string target)
    : options_(options),
      target_(std::move(target)),
      folder_(absl::StrCat(target_, ".partial")),
      header_({.bytes_per_token = BytesPerToken(options.vocab_size),
               .vocab_size = options.vocab_size,
               .tokenizer = options.tokenizer}) {
  if (options.says_what_counts) {
    header_.counted = {.sequence_length = options.packed_length};
  }
}

TokenFileWriter::~TokenFileWriter() {
  if (is_ours_ && !saved_) (void)RemoveTree(folder_);
}

std::string TokenFileWriter::InFolder(absl::string_view name) const {
  return absl::StrCat(folder_, "/", name);
}

absl::Status TokenFileWriter::Open() {
  absl::StatusOr<FileLock> lock =
      FileLock::Take(absl::StrCat(folder_, ".lock"), ThisProcessName());
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.path, ": is being written by ",
                     lock.status().message(), "; wait for it, or end it"));
  }
  // Without locks two writers at once are not noticed; one alone is as well.
  if (lock.ok()) {
    lock_ = *std::move(lock);
  } else if (!absl::IsUnimplemented(lock.status())) {
    return lock.status();
  }
  if (!Exists(folder_)) return Begin();
  const absl::StatusOr<std::string> source =
      ReadWholeFile(InFolder(kSource), kSourceBytesMax);
  std::vector<std::string> names;
  const bool is_empty = ListPath(folder_, names) == 0 && names.empty();
  if (!is_empty && !(source.ok() && absl::StartsWith(*source, kSourceLine))) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder_,
        ": is there, and is no unfinished token file; what is written "
        "until ",
        options_.path,
        " is complete would be put there: move it "
        "away, or give another name"));
  }
  is_ours_ = true;
  if (is_empty || options_.source.empty() || !Exists(InFolder(kState))) {
    return Begin();  // nothing was saved, or nothing is to be continued
  }
  if (*source != absl::StrCat(kSourceLine, options_.source)) {
    begun_anew_ = "it is of other texts, another tokenizer or other settings";
    return Begin();
  }
  const absl::Status continued = Continue();
  if (continued.ok()) return continued;
  begun_anew_ = std::string(continued.message());
  return Begin();
}

absl::Status TokenFileWriter::OpenTails() {
  ASSIGN_OR_RETURN(tokens_.file,
                   PosixFile::Open(InFolder(kTokens), IoMode::kReadWrite));
  ASSIGN_OR_RETURN(ends_.file,
                   PosixFile::Open(InFolder(kEnds), IoMode::kReadWrite));
  tokens_.offset = kTokenFileHeaderBytes;
  if (!header_.counted.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(counted_.file,
                   PosixFile::Open(InFolder(kCounted), IoMode::kReadWrite));
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Begin() {
  header_.token_count = header_.documents = last_end_ = 0;
  tokens_ = {};
  ends_ = {};
  counted_ = {};
  last_bits_ = 0;
  if (header_.counted.has_value()) header_.counted->tokens = 0;
  RETURN_IF_ERROR(RemoveTree(folder_));
  if (MkdirPath(folder_, 0777) != 0) {
    return ErrnoStatus(errno, absl::StrCat(folder_, ": mkdir"));
  }
  is_ours_ = true;
  RETURN_IF_ERROR(ReplaceFile(InFolder(kSource),
                              absl::StrCat(kSourceLine, options_.source)));
  return OpenTails();
}

absl::Status TokenFileWriter::Continue() {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(InFolder(kState), kStateBytesMax));
  ASSIGN_OR_RETURN(SavedState state, ParseState(text));
  RETURN_IF_ERROR(OpenTails());
  const uint64_t bytes = state.tokens * header_.bytes_per_token;
  absl::StatusOr<uint32_t> tokens_crc =
      ChecksumOf(*tokens_.file, kTokenFileHeaderBytes, bytes);
  absl::StatusOr<uint32_t> ends_crc =
      ChecksumOf(*ends_.file, 0, state.documents * kWrittenEndBytes);
  absl::StatusOr<uint32_t> counted_crc = state.counted_crc32c;
  if (header_.counted.has_value()) {
    counted_crc = ChecksumOf(*counted_.file, 0, state.tokens / 8);
  }
  for (const auto* crc : {&tokens_crc, &ends_crc, &counted_crc}) {
    if (!crc->ok() && !absl::IsOutOfRange(crc->status())) return crc->status();
  }
  if (!tokens_crc.ok() || *tokens_crc != state.tokens_crc32c ||
      !ends_crc.ok() || *ends_crc != state.ends_crc32c || !counted_crc.ok() ||
      *counted_crc != state.counted_crc32c) {
    return absl::DataLossError("what was written of it is damaged");
  }
  if (header_.counted.has_value()) {
    header_.counted->tokens = state.counted_tokens;
    counted_.offset = state.tokens / 8;
    counted_.crc32c = state.counted_crc32c;
    last_bits_ = static_cast<uint8_t>(state.last_bits);
  }
  header_.token_count = state.tokens;
  header_.documents = state.documents;
  last_end_ = state.last_end;
  tokens_.offset += bytes;
  tokens_.crc32c = state.tokens_crc32c;
  ends_.offset = state.documents * kWrittenEndBytes;
  ends_.crc32c = state.ends_crc32c;
  position_ = std::move(state.position);
  saved_ = true;
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Append(absl::Span<const int32_t> tokens,
                                     absl::Span<const uint8_t> counts) {
  CHECK(header_.counted.has_value() && counts.size() == tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool begins_document = header_.token_count == last_end_;
    RETURN_IF_ERROR(Append(tokens.subspan(i, 1)));
    RETURN_IF_ERROR(AddBit(counts[i] != 0 && !begins_document));
  }
  return absl::OkStatus();
}

// Of the token that was appended last.
absl::Status TokenFileWriter::AddBit(bool counts) {
  const uint64_t place = (header_.token_count - 1) % 8;
  if (counts) {
    last_bits_ = static_cast<uint8_t>(last_bits_ | 1u << place);
    ++header_.counted->tokens;
  }
  if (place < 7) return absl::OkStatus();
  counted_.buffer.push_back(static_cast<char>(std::exchange(last_bits_, 0)));
  return counted_.buffer.size() >= kBufferBytes ? Flush(counted_)
                                                : absl::OkStatus();
}

absl::Status TokenFileWriter::WriteLastBits() {
  if (!header_.counted.has_value() || header_.token_count % 8 == 0) {
    return absl::OkStatus();
  }
  counted_.buffer.push_back(static_cast<char>(last_bits_));
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Append(absl::Span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<uint64_t>(token) >= header_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          options_.path, ": token number ", header_.token_count, " is ", token,
          ", the vocabulary has ", header_.vocab_size));
    }
    char bytes[4];
    StoreLittleEndian<uint32_t>(static_cast<uint32_t>(token), bytes);
    tokens_.buffer.append(bytes, header_.bytes_per_token);
    ++header_.token_count;
    if (tokens_.buffer.size() >= kBufferBytes) RETURN_IF_ERROR(Flush(tokens_));
  }
  return absl::OkStatus();
}

absl::Status TokenFileWriter::EndDocument() {
  if (header_.token_count == last_end_) return absl::OkStatus();
  last_end_ = header_.token_count;
  char bytes[kWrittenEndBytes];
  StoreLittleEndian<uint64_t>(last_end_, bytes);
  ends_.buffer.append(bytes, sizeof(bytes));
  ++header_.documents;
  return ends_.buffer.size() >= kBufferBytes ? Flush(ends_) : absl::OkStatus();
}

absl::Status TokenFileWriter::Flush(Tail& tail) {
  RETURN_IF_ERROR(tail.file->WriteAt(tail.offset, tail.buffer));
  tail.crc32c = ExtendCrc32c(tail.crc32c, tail.buffer);
  tail.offset += tail.buffer.size();
  tail.buffer.clear();
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Sync() {
  for (Tail* const tail : {&tokens_, &ends_, &counted_}) {
    if (!tail->file.has_value()) continue;
    RETURN_IF_ERROR(Flush(*tail));
    RETURN_IF_ERROR(tail->file->Sync());
  }
  return absl::OkStatus();
}

absl::Status TokenFileWriter::Save(absl::string_view position) {
  CHECK(!options_.source.empty()) << "nothing could continue " << folder_;
  RETURN_IF_ERROR(Sync());
  const uint64_t counted =
      header_.counted.has_value() ? header_.counted->tokens : 0;
  RETURN_IF_ERROR(ReplaceFile(
      InFolder(kState), FormatState({.tokens = header_.token_count,
                                     .tokens_crc32c = tokens_.crc32c,
                                     .documents = header_.documents,
                                     .ends_crc32c = ends_.crc32c,
                                     .last_end = last_end_,
                                     .counted_tokens = counted,
                                     .counted_crc32c = counted_.crc32c,
                                     .last_bits = last_bits_,
                                     .position = std::string(position)})));
  saved_ = true;
  return absl::OkStatus();
}

absl::Status TokenFileWriter::AppendTail(const Tail& tail, uint64_t& offset) {
  std::string chunk(kBufferBytes, '\0');
  for (uint64_t at = 0; at < tail.offset; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), tail.offset - at));
    RETURN_IF_ERROR(tail.file->ReadAt(at, chunk.size(), chunk.data()));
    RETURN_IF_ERROR(tokens_.file->WriteAt(offset, chunk));
    offset += chunk.size();
  }
  return absl::OkStatus();
}

// Puts the ends of documents behind the tokens, then which tokens count.
absl::Status TokenFileWriter::AppendTails() {
  uint64_t offset = DocumentEndsOffset(header_);
  const uint64_t padding = offset - tokens_.offset;
  RETURN_IF_ERROR(
      tokens_.file->WriteAt(tokens_.offset, std::string(padding, '\0')));
  RETURN_IF_ERROR(AppendTail(ends_, offset));
  RETURN_IF_ERROR(AppendTail(counted_, offset));
  // A writer that was killed may have written more than it saved.
  return tokens_.file->Truncate(offset);
}

absl::StatusOr<TokenFileHeader> TokenFileWriter::Finish() {
  // What no end follows is a document as well, where there are any.
  if (header_.documents > 0) RETURN_IF_ERROR(EndDocument());
  RETURN_IF_ERROR(WriteLastBits());
  for (Tail* const tail : {&tokens_, &ends_, &counted_}) {
    if (tail->file.has_value()) RETURN_IF_ERROR(Flush(*tail));
  }
  header_.data_crc32c = tokens_.crc32c;
  header_.ends_crc32c = ends_.crc32c;
  if (header_.counted.has_value()) header_.counted->crc32c = counted_.crc32c;
  RETURN_IF_ERROR(AppendTails());
  RETURN_IF_ERROR(tokens_.file->WriteAt(0, FormatTokenFileHeader(header_)));
  RETURN_IF_ERROR(tokens_.file->Sync());
  RETURN_IF_ERROR(tokens_.file->Close());
  if (RenamePath(InFolder(kTokens), target_) != 0) {
    return ErrnoStatus(
        errno, absl::StrCat(InFolder(kTokens), ": rename to ", target_));
  }
  saved_ = false;  // the rest of the folder is of no use
  RETURN_IF_ERROR(SyncName(target_));
  return header_;
}

}  // namespace troupe
