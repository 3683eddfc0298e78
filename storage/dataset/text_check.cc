#include "storage/dataset/text_check.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/troupe_file.h"
#include "storage/dataset/utf8.h"
#include "storage/engine/little_endian.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr uint64_t kHeadBytes = 512;
constexpr uint64_t kJsonBytes = 256 << 10;  // searched for JSON
constexpr int kJsonLinesMax = 8;            // as many are looked at
constexpr uint64_t kSampleBytes = 64 << 10;
constexpr uint64_t kSamples = 16;
// Of a thousand bytes. A text from the web has a few broken characters, one in
// another encoding of Western languages some percent.
constexpr uint64_t kInvalidPermilleMax = 10;

struct TextFormatRow {
  size_t offset;
  absl::string_view magic;
  absl::string_view what;
  absl::string_view advice;  // FILE is the path
};

constexpr absl::string_view kUnpack = "unpack it, and give the text in it";
constexpr absl::string_view kTextTable =
    "write its column of text to a file, with pandas or pyarrow";
constexpr absl::string_view kParquet =
    "python3 -m troupe.parquet FILE | troupe data prepare - --format jsonl";
constexpr absl::string_view kNoText = "give a text";

constexpr TextFormatRow kTextFormats[] = {
    {0, "\x1f\x8b", "compressed (gzip)", "gunzip -k FILE"},
    {0, "\x28\xb5\x2f\xfd", "compressed (zstd)", "zstd -d FILE"},
    {0,
     "\xfd"
     "7zXZ",
     "compressed (xz)", "xz -dk FILE"},
    {4, "1AY&SY", "compressed (bzip2)", "bunzip2 -k FILE"},
    {0, "\x04\x22\x4d\x18", "compressed (lz4)", "lz4 -d FILE"},
    {0, "PK\x03\x04", "a zip archive (as .docx, .npz and .pt are)", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c", "a 7z archive", kUnpack},
    {0, "Rar!\x1a\x07", "a rar archive", kUnpack},
    {257, "ustar", "a tar archive", "tar -xf FILE"},
    {0, "PAR1", "a Parquet file", kParquet},
    {0, "ARROW1", "an Arrow file", kTextTable},
    {0, "\xff\xff\xff\xff", "an Arrow stream, or other binary data",
     kTextTable},
    {0, "\x89HDF", "an HDF5 file", kNoText},
    {0, "SQLite format 3", "an SQLite database", "write its text to a file"},
    {0, "%PDF-", "a PDF", "pdftotext FILE"},
    {0, "\xd0\xcf\x11\xe0", "a document of an office program",
     "save it as plain text, in UTF-8"},
    {0, "{\\rtf", "a document in RTF", "save it as plain text, in UTF-8"},
    {0, "\x93NUMPY", "a NumPy array", kNoText},
    {0, "GGUF", "a model's weights (GGUF)", kNoText},
    {0,
     "\x7f"
     "ELF",
     "a program", kNoText},
    {0, "\x89PNG", "a picture", kNoText},
    {0, "\xff\xd8\xff", "a picture", kNoText},
    {0, kTokenFileMagic, "a token file already", "name it as data.tokens"},
    {0, "MMIDIDX", "an index of Megatron-LM's tokens",
     "name it as data.tokens"},
    {0, "\xff\xfe", "in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"},
    {0, "\xfe\xff", "in UTF-16", "iconv -f UTF-16 -t UTF-8 FILE > FILE.txt"},
};

absl::Status Refuse(const std::string& path, absl::string_view what,
                    absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is ", what, ", not text; ",
                   absl::StrReplaceAll(advice, {{"FILE", path}})));
}

// The length of a header in JSON, and its first bytes.
bool IsSafetensors(absl::string_view head) {
  constexpr uint64_t kHeaderMax = 100'000'000;
  if (head.size() < 10) return false;
  const uint64_t bytes = LoadLittleEndian<uint64_t>(head.data());
  return bytes >= 2 && bytes <= kHeaderMax &&
         (head.substr(8, 2) == "{\"" || head.substr(8, 2) == "{}");
}

absl::Status CheckHead(const std::string& path, absl::string_view head) {
  if (IsSafetensors(head)) {
    return Refuse(path, "a model's weights (safetensors)", kNoText);
  }
  for (const TextFormatRow& row : kTextFormats) {
    if (head.size() < row.offset ||
        !absl::StartsWith(head.substr(row.offset), row.magic)) {
      continue;
    }
    return Refuse(path, row.what, row.advice);
  }
  return absl::OkStatus();
}

constexpr absl::string_view kTakeOutText =
    "a model would learn its keys and braces: make JSON lines of it, as in  "
    "jq -c '.[]' FILE > FILE.jsonl";

absl::Status CheckName(const std::string& path) {
  if (!absl::EndsWith(absl::AsciiStrToLower(path), ".json")) {
    return absl::OkStatus();
  }
  return Refuse(path, "named as JSON (.json)", kTakeOutText);
}

bool IsJsonObject(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  return absl::StartsWith(line, "{") &&
         nlohmann::json::accept(line.begin(), line.end());
}

// JSON lines are text by their bytes. `begin`: of the file, `whole` or not.
absl::Status CheckLines(const std::string& path, absl::string_view begin,
                        bool whole) {
  int lines = 0;
  while (!begin.empty() && lines < kJsonLinesMax) {
    const size_t end = begin.find('\n');
    if (end == begin.npos && !whole) break;  // cut off
    const absl::string_view line = begin.substr(0, end);
    begin.remove_prefix(std::min(begin.size(), line.size() + 1));
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    if (!IsJsonObject(line)) return absl::OkStatus();
    ++lines;
  }
  if (lines == 0) return absl::OkStatus();
  return Refuse(
      path, "JSON lines (its first lines are JSON objects)",
      "a model would learn its keys and braces: give --format jsonl, which "
      "takes their texts, or --any-content, which takes the file as it is");
}

// Counts the keys of a document's beginning, and notes where it is no JSON.
class KeyCount : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool key(string_t&) override {
    ++keys_;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    wrong_at_ = position;
    return false;
  }

  int keys() const { return keys_; }
  // The number of the byte, from 1; one more than there are: JSON that is cut
  // off. 0: it is whole.
  size_t wrong_at() const { return wrong_at_; }

 private:
  int keys_ = 0;
  size_t wrong_at_ = 0;
};

// One document: an object, or a list of them, over many lines or in a long one.
absl::Status CheckDocument(const std::string& path, absl::string_view begin) {
  absl::ConsumePrefix(&begin, "\xef\xbb\xbf");
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(begin);
  if (!absl::StartsWith(text, "{") && !absl::StartsWith(text, "[")) {
    return absl::OkStatus();
  }
  KeyCount json;
  nlohmann::json::sax_parse(text.begin(), text.end(), &json);
  const bool is_json = json.wrong_at() == 0 || json.wrong_at() > text.size();
  if (!is_json || json.keys() == 0) return absl::OkStatus();
  return Refuse(
      path, "JSON (an object, or a list of objects)",
      absl::StrCat(kTakeOutText, "; --any-content takes it as it is"));
}

struct ByteCounts {
  uint64_t bytes = 0;
  uint64_t invalid = 0;  // that are no UTF-8
};

// A sample may begin and end within a character.
ByteCounts CountInvalid(absl::string_view sample) {
  ByteCounts counts = {.bytes = sample.size()};
  for (int i = 0; i < 3 && !sample.empty() && (sample[0] & 0xC0) == 0x80; ++i) {
    sample.remove_prefix(1);
  }
  sample.remove_suffix(UnfinishedBytes(sample));
  while (!sample.empty()) {
    const size_t character = CharacterBytes(sample);
    counts.invalid += character == 0;
    sample.remove_prefix(std::max<size_t>(1, character));
  }
  return counts;
}

// Zero bytes in a piece of a text that begins at byte `at`.
absl::Status CheckNoZero(const std::string& path, absl::string_view piece,
                         uint64_t at) {
  const size_t zero = piece.find('\0');
  if (zero == piece.npos) return absl::OkStatus();
  return Refuse(path, absl::StrCat("binary: byte ", at + zero, " is zero"),
                "give a text in UTF-8, or --any-content to take it as it is");
}

absl::Status CheckUtf8(const std::string& path, const ByteCounts& all) {
  if (all.invalid * 1000 <= all.bytes * kInvalidPermilleMax) {
    return absl::OkStatus();
  }
  return Refuse(
      path,
      absl::StrFormat("not in UTF-8: %.1f %% of its bytes are not valid in it",
                      100.0 * static_cast<double>(all.invalid) /
                          static_cast<double>(all.bytes)),
      "if it is a text in another encoding:  iconv -f latin1 -t UTF-8 FILE > "
      "FILE.txt; --any-content takes it as it is");
}

absl::Status CheckSamples(const std::string& path, const PosixFile& file,
                          uint64_t bytes) {
  ByteCounts all;
  std::string sample;
  const uint64_t size = std::min(bytes, kSampleBytes);
  const uint64_t samples =
      std::min(kSamples, (bytes + kSampleBytes - 1) / kSampleBytes);
  for (uint64_t i = 0; i < samples; ++i) {
    const uint64_t at = samples == 1 ? 0 : (bytes - size) * i / (samples - 1);
    sample.resize(size);
    RETURN_IF_ERROR(file.ReadAt(at, size, sample.data()));
    RETURN_IF_ERROR(CheckNoZero(path, sample, at));
    const ByteCounts counts = CountInvalid(sample);
    all.bytes += counts.bytes;
    all.invalid += counts.invalid;
  }
  return CheckUtf8(path, all);
}

absl::Status CheckNoJson(const std::string& path, absl::string_view begin,
                         bool is_all) {
  RETURN_IF_ERROR(CheckName(path));
  RETURN_IF_ERROR(CheckLines(path, begin, is_all));
  return CheckDocument(path, begin);
}

}  // namespace

absl::Status CheckText(const std::string& path) {
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  if (bytes == 0) return absl::OkStatus();
  std::string head(std::min(bytes, kHeadBytes), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, head.size(), head.data()));
  RETURN_IF_ERROR(CheckHead(path, head));
  RETURN_IF_ERROR(CheckSamples(path, file, bytes));
  std::string begin(std::min(bytes, kJsonBytes), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, begin.size(), begin.data()));
  return CheckNoJson(path, begin, begin.size() == bytes);
}

absl::Status CheckTextBeginning(const std::string& path,
                                absl::string_view begin, bool is_all) {
  if (begin.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNotBinary(path, begin));
  RETURN_IF_ERROR(CheckUtf8(path, CountInvalid(begin)));
  const absl::string_view looked_at = begin.substr(0, kJsonBytes);
  return CheckNoJson(path, looked_at, is_all && looked_at == begin);
}

absl::Status CheckNotBinary(const std::string& path, absl::string_view begin) {
  RETURN_IF_ERROR(CheckHead(path, begin.substr(0, kHeadBytes)));
  return CheckNoZero(path, begin, 0);
}

}  // namespace troupe
