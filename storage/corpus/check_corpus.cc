#include "storage/corpus/check_corpus.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/byte_source.h"
#include "storage/dataset/data_file.h"
#include "storage/dataset/text_check.h"

namespace troupe {
namespace {

constexpr size_t kBeginBytes = 1 << 20;
constexpr size_t kJsonBeginBytes = 4096;

// That a name does not promise another compression than there is.
absl::Status CheckCompression(const std::string& path,
                              Compression compression) {
  const bool gzip = absl::EndsWith(path, ".gz");
  if (compression != Compression::kNone ||
      !(gzip || absl::EndsWith(path, ".zst"))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is not compressed (", gzip ? "gzip" : "zstd",
      "), although its name says so; rename it, or get the file again"));
}

absl::Status CheckFile(const CorpusFile& file) {
  const std::string head = FirstBytes(file.path, 4);
  const Compression compression = CompressionOf(head);
  RETURN_IF_ERROR(CheckCompression(file.path, compression));
  if (compression == Compression::kNone && file.format != TextFormat::kJsonl)
    return CheckText(file.path);
  const size_t bytes = CheckedBytes(file.format);
  ASSIGN_OR_RETURN(const std::string begin,
                   FirstUnpackedBytes(file.path, bytes));
  return CheckBeginning(file, begin, begin.size() < bytes);
}

}  // namespace

absl::Status CheckCorpus(const std::vector<CorpusFile>& files) {
  for (const CorpusFile& file : files) {
    if (file.is_stream() || file.size == 0) continue;
    RETURN_IF_ERROR(CheckFile(file));
  }
  return absl::OkStatus();
}

size_t CheckedBytes(TextFormat format) {
  return format == TextFormat::kJsonl ? kJsonBeginBytes : kBeginBytes;
}

absl::Status CheckBeginning(const CorpusFile& file, absl::string_view begin,
                            bool is_all) {
  return file.format == TextFormat::kJsonl
             ? CheckNotBinary(file.path, begin)
             : CheckTextBeginning(file.path, begin, is_all);
}

}  // namespace troupe
