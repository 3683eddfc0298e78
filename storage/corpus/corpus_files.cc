#include "storage/corpus/corpus_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/corpus/byte_source.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool IsParquet(absl::string_view path) {
  return absl::EndsWith(absl::AsciiStrToLower(path), ".parquet");
}

absl::Status RefuseParquet(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": is a Parquet file, which the Python client turns into JSON "
      "lines: python3 -m troupe.parquet ",
      path,
      " | troupe data prepare - "
      "--format jsonl"));
}

std::string EndOfName(const fs::path& path) {
  const std::string name = path.filename().string();
  absl::string_view stem = name;
  std::string packing;
  for (const absl::string_view end : {".gz", ".zst"}) {
    if (absl::ConsumeSuffix(&stem, end)) packing = std::string(end);
  }
  const size_t dot = stem.rfind('.');
  if (dot == stem.npos) return packing.empty() ? "no ending" : packing;
  return absl::StrCat(stem.substr(dot), packing);
}

class Finder {
 public:
  explicit Finder(const CorpusFilesOptions& options) : options_(options) {}

  absl::Status Add(const std::string& input) {
    if (input == kStandardInput) return AddStandardInput();
    std::error_code error;
    if (fs::is_directory(input, error)) return AddFolder(input);
    if (IsParquet(input)) return RefuseParquet(input);
    return AddFile(input, FormatOfName(input).value_or(TextFormat::kText));
  }

  CorpusFiles Take() { return std::move(found_); }

 private:
  absl::Status AddStandardInput() {
    for (const CorpusFile& file : found_.files) {
      if (file.path != kStandardInput) continue;
      return absl::InvalidArgumentError(
          "- is given twice; the standard input can be read once");
    }
    found_.files.push_back(
        {.path = std::string(kStandardInput),
         .format = options_.format.value_or(TextFormat::kText)});
    return absl::OkStatus();
  }

  absl::Status AddFile(const std::string& path, TextFormat by_name) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      return ErrnoStatus(errno, absl::StrCat(path, ": open"));
    }
    CorpusFile file = {.path = path,
                       .format = options_.format.value_or(by_name)};
    if (S_ISREG(info.st_mode)) {  // a pipe has neither
      file.size = static_cast<uint64_t>(info.st_size);
      file.modified_ns =
          int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    }
    found_.files.push_back(std::move(file));
    return absl::OkStatus();
  }

  absl::Status AddFolder(const std::string& folder) {
    std::vector<std::string> paths;
    std::error_code error;
    fs::recursive_directory_iterator at(folder, error);
    for (; !error && at != fs::recursive_directory_iterator();
         at.increment(error)) {
      if (absl::StartsWith(at->path().filename().string(), ".")) {
        at.disable_recursion_pending();
        continue;
      }
      std::error_code unknown;
      if (!at->is_directory(unknown)) paths.push_back(at->path().string());
    }
    if (error)
      return ErrnoStatus(error.value(), absl::StrCat(folder, ": list"));
    std::sort(paths.begin(), paths.end());
    const size_t had = found_.files.size();
    for (const std::string& path : paths) {
      if (IsParquet(path)) return RefuseParquet(path);
      const std::optional<TextFormat> format = FormatOfName(path);
      if (format.has_value()) {
        RETURN_IF_ERROR(AddFile(path, *format));
      } else {
        ++found_.passed_over[EndOfName(path)];
      }
    }
    if (found_.files.size() > had) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(folder,
                     ": no file in it ends in .txt, .jsonl or .ndjson, with or "
                     "without .gz or .zst; name its files themselves"));
  }

  const CorpusFilesOptions& options_;
  CorpusFiles found_;
};

}  // namespace

std::optional<TextFormat> FormatOfName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  absl::string_view stem = lower;
  if (!absl::ConsumeSuffix(&stem, ".gz")) absl::ConsumeSuffix(&stem, ".zst");
  if (absl::EndsWith(stem, ".txt")) return TextFormat::kText;
  if (absl::EndsWith(stem, ".jsonl") || absl::EndsWith(stem, ".ndjson")) {
    return TextFormat::kJsonl;
  }
  return std::nullopt;
}

absl::Status CheckCanBeReadTwice(const CorpusFile& file) {
  if (!file.is_stream()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file.path,
      ": can be read once, and a tokenizer is trained before the "
      "text is encoded; give files, or a tokenizer that is there"));
}

absl::StatusOr<CorpusFiles> FindCorpusFiles(const CorpusFilesOptions& options) {
  Finder finder(options);
  for (const std::string& input : options.inputs) {
    RETURN_IF_ERROR(finder.Add(input));
  }
  return finder.Take();
}

}  // namespace troupe
