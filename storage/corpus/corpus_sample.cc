#include "storage/corpus/corpus_sample.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/corpus/byte_source.h"
#include "storage/corpus/text_parts.h"
#include "storage/dataset/data_file.h"
#include "storage/dataset/text_sample.h"

namespace troupe {
namespace {

constexpr uint64_t kFileBytesMin = 4096;

bool IsPlainText(const CorpusFile& file) {
  return file.format != TextFormat::kJsonl &&
         CompressionOf(FirstBytes(file.path, 4)) == Compression::kNone;
}

// Adds up to `bytes` of the file's documents.
absl::Status AddDocuments(const CorpusFile& file, PartRules rules,
                          uint64_t bytes, std::string& sample) {
  rules.skip_bad_lines = true;
  const std::vector<CorpusFile> files = {file};
  TextParts parts(
      files, nullptr,
      {.line_bytes_max = rules.line_bytes_max, .skip_bad_lines = true}, {});
  const size_t end = sample.size() + bytes;
  const auto add = [&](absl::string_view text) {
    if (sample.size() < end) absl::StrAppend(&sample, text, "\n");
    return absl::OkStatus();
  };
  while (sample.size() < end) {
    ASSIGN_OR_RETURN(const std::optional<TextPart> part, parts.Next());
    if (!part.has_value()) break;
    if (file.format == TextFormat::kText) {
      RETURN_IF_ERROR(add(part->text));
    } else {
      RETURN_IF_ERROR(ForEachDocument(rules, *part, add).status());
    }
  }
  // Whole documents, but for a long last one.
  sample.resize(std::min(sample.size(), end));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> SampleCorpus(const std::vector<CorpusFile>& files,
                                         const PartRules& rules,
                                         uint64_t bytes_max) {
  uint64_t total = 0;
  for (const CorpusFile& file : files) {
    RETURN_IF_ERROR(CheckCanBeReadTwice(file));
    total += file.size;
  }
  if (files.size() == 1 && IsPlainText(files[0])) {
    return SampleText(files[0].path, {.bytes_max = bytes_max});
  }
  std::string sample;
  for (const CorpusFile& file : files) {
    if (sample.size() >= bytes_max) break;
    const double share =
        static_cast<double>(file.size) / std::max<uint64_t>(1, total);
    const uint64_t bytes = std::min<uint64_t>(
        bytes_max - sample.size(),
        std::max(kFileBytesMin, static_cast<uint64_t>(
                                    share * static_cast<double>(bytes_max))));
    RETURN_IF_ERROR(AddDocuments(file, rules, bytes, sample));
  }
  return sample;
}

}  // namespace troupe
