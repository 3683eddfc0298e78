// Any bytes as a file of a corpus, plain or compressed: what it unpacks to does
// not depend on how much is read at once, the parts of its lines are all of it,
// and each line is JSON with a text or is refused.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"
#include "storage/corpus/byte_source.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/json_field.h"
#include "storage/corpus/text_parts.h"
#include "storage/dataset/utf8.h"
#include "tests/fuzz/scratch_dir.h"

namespace troupe {
namespace {

constexpr size_t kBytesMax = 1 << 18;  // that are unpacked of an input

struct Unpacked {
  std::string bytes;  // kBytesMax at most
  absl::Status end;   // OK: the file ends there, or goes on beyond them
};

Unpacked Unpack(const std::string& path, size_t at_once) {
  Unpacked unpacked;
  auto source = OpenByteSource({.path = path});
  if (!source.ok()) return {"", source.status()};
  std::string piece(at_once, '\0');
  while (unpacked.bytes.size() < kBytesMax) {
    const absl::StatusOr<size_t> read =
        (*source)->Read(piece.data(), piece.size());
    if (!read.ok()) {
      unpacked.end = read.status();
      break;
    }
    if (*read == 0) break;
    CHECK_LE(*read, piece.size());
    unpacked.bytes.append(piece, 0, *read);
  }
  unpacked.bytes.resize(std::min(unpacked.bytes.size(), kBytesMax));
  return unpacked;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// The parts of the file's lines, one behind the other.
std::string Parts(const std::string& path) {
  const absl::StatusOr<CorpusFiles> found =
      FindCorpusFiles({.inputs = {path}, .format = TextFormat::kLines});
  CHECK_OK(found.status());
  TextParts parts(found->files, nullptr, {}, {});
  std::string text;
  while (text.size() < kBytesMax) {
    const absl::StatusOr<std::optional<TextPart>> part = parts.Next();
    if (!part.ok() || !part->has_value()) break;
    text += (*part)->text;
  }
  return text;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const troupe::ScratchDir scratch;
  const std::string path = scratch.Write(
      "a", absl::string_view(reinterpret_cast<const char*>(data), size));
  const troupe::Unpacked whole = troupe::Unpack(path, 4096);
  const troupe::Unpacked pieces = troupe::Unpack(path, 1 + size % 97);
  CHECK_EQ(whole.end.ok(), pieces.end.ok());
  // Where it is damaged, one may have more of what lies before that.
  const size_t both = std::min(whole.bytes.size(), pieces.bytes.size());
  CHECK(whole.bytes.compare(0, both, pieces.bytes, 0, both) == 0);
  if (whole.end.ok()) CHECK_EQ(whole.bytes.size(), pieces.bytes.size());
  const std::string parts = troupe::Parts(path);
  absl::string_view lines = whole.bytes;
  absl::ConsumePrefix(&lines, "\xef\xbb\xbf");  // a byte order mark is no text
  const size_t seen = std::min(parts.size(), lines.size());
  CHECK(lines.substr(0, seen) == absl::string_view(parts).substr(0, seen));
  for (const absl::string_view line : absl::StrSplit(whole.bytes, '\n')) {
    const auto text = troupe::JsonTextField(line, "text");
    if (text.ok()) CHECK(troupe::IsUtf8(*text));
  }
  return 0;
}
