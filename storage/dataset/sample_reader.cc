#include "storage/dataset/sample_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/dataset/file_order.h"

namespace troupe {
namespace {

// Sources of one size are not shuffled alike. The first one's order is that of
// a job that has no other.
uint64_t SeedOf(uint64_t seed, size_t source) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  return seed + source * kGoldenRatio;
}

// Makes targets -1 that do not count; `first` is the number of the first one.
absl::Status LeaveOut(const TokenFile& file, uint64_t first,
                      absl::Span<int32_t> targets) {
  if (!file.has_counted()) return absl::OkStatus();
  const auto counts = std::make_unique<bool[]>(targets.size());
  RETURN_IF_ERROR(file.ReadCounted(first, targets.size(), counts.get()));
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!counts[i]) targets[i] = -1;
  }
  return absl::OkStatus();
}

std::vector<double> WeightsOf(const std::vector<SampleSource>& sources) {
  std::vector<double> weights;
  for (const SampleSource& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const SampleReader::Source>> SampleReader::Open(
    const std::string& path, const DataOrderOptions& order,
    uint64_t vocab_size) {
  ASSIGN_OR_RETURN(TokenFile file,
                   TokenFile::Open(path, {.vocab_size = vocab_size}));
  const absl::StatusOr<DataOrder> made = OrderOf(file, order);
  if (!made.ok()) return Annotate(made.status(), path);
  return std::unique_ptr<const Source>(new Source{std::move(file), *made});
}

absl::StatusOr<SampleReader> SampleReader::Create(
    const SampleReaderOptions& options) {
  SampleReader reader(options.isolate_documents);
  if (!options.sources.empty() || options.validation.empty()) {
    ASSIGN_OR_RETURN(reader.mix_, MixOrder::Create(WeightsOf(options.sources)));
  }
  for (size_t i = 0; i < options.sources.size(); ++i) {
    ASSIGN_OR_RETURN(reader.sources_.emplace_back(),
                     Open(options.sources[i].tokens,
                          {.sequence_length = options.sequence_length,
                           .validation_fraction = options.validation_fraction,
                           .validation_blocks = options.validation_blocks,
                           .seed = SeedOf(options.seed, i)},
                          options.vocab_size));
  }
  RETURN_IF_ERROR(reader.OpenValidation(options));
  RETURN_IF_ERROR(reader.FindTokenizer());
  RETURN_IF_ERROR(reader.CheckDocuments());
  reader.Identify(options);
  return reader;
}

absl::Status SampleReader::OpenValidation(const SampleReaderOptions& options) {
  if (options.validation.empty()) {
    std::vector<uint64_t> windows;
    for (const auto& source : sources_) {
      windows.push_back(source->order.validation_windows());
    }
    const bool any = options.validation_fraction > 0;
    validation_windows_ = any ? mix_->LongestWithin(windows) : 0;
    return absl::OkStatus();
  }
  // All of the file, in its order: its windows are those that would train.
  ASSIGN_OR_RETURN(
      validation_,
      Open(options.validation, {.sequence_length = options.sequence_length},
           options.vocab_size));
  validation_windows_ = validation_->order.training_windows();
  return absl::OkStatus();
}

std::vector<const TokenFile*> SampleReader::files() const {
  std::vector<const TokenFile*> files;
  for (const auto& source : sources_) files.push_back(&source->file);
  if (validation_ != nullptr) files.push_back(&validation_->file);
  return files;
}

absl::Status SampleReader::FindTokenizer() {
  for (const TokenFile* file : files()) {
    const std::string& name = file->layout().tokenizer;
    if (name.empty()) continue;
    if (tokenizer_.empty()) {
      tokenizer_ = name;
      tokenizer_path_ = file->path();
    }
    if (name == tokenizer_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": its tokens were made by ", name,
                     ", those of ", tokenizer_path_, " by ", tokenizer_,
                     "; prepare all files with one tokenizer"));
  }
  return absl::OkStatus();
}

absl::Status SampleReader::CheckDocuments() const {
  if (!isolates_documents_) return absl::OkStatus();
  for (const TokenFile* file : files()) {
    if (file->has_document_ends()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file->path(), ": a file of format ", file->layout().format,
        " that does not say where its documents end, which "
        "data.isolate_documents needs; make it anew with `troupe data "
        "prepare`, or leave data.isolate_documents out"));
  }
  return absl::OkStatus();
}

void SampleReader::Identify(const SampleReaderOptions& options) {
  if (sources_.size() < 2) {
    identity_ = files().front()->identity();
  } else {
    identity_ = absl::StrCat("a mix of ", sources_.size());
    for (size_t i = 0; i < sources_.size(); ++i) {
      absl::StrAppendFormat(&identity_, "; %d of %d: %s", mix_->shares()[i],
                            mix_->period(), sources_[i]->file.identity());
    }
  }
  if (options.validation_blocks > 1) {
    absl::StrAppend(&identity_, "; ", options.validation_fraction,
                    " held back in ", options.validation_blocks, " blocks");
  }
}

uint64_t SampleReader::training_windows() const {
  uint64_t windows = 0;
  for (const auto& source : sources_) {
    windows += source->order.training_windows();
  }
  return windows;
}

absl::StatusOr<SampleReader::Window> SampleReader::WindowOf(
    uint64_t number) const {
  CHECK(mix_.has_value()) << "a sample to train on, where nothing trains";
  const MixOrder::Place place = mix_->PlaceOf(number);
  const Source& source = *sources_[place.source];
  if (place.index / source.order.training_windows() >= kEpochsMax) {
    return absl::OutOfRangeError(absl::StrCat(
        source.file.path(), ": sample ", place.index,
        " is past 2^52 epochs of ", source.order.training_windows(),
        " windows; is the checkpoint damaged?"));
  }
  return Window{.source = &source,
                .first_token = source.order.TrainingToken(place.index)};
}

absl::Status SampleReader::Read(uint64_t number, const SampleOut& out) const {
  ASSIGN_OR_RETURN(const Window window, WindowOf(number));
  return ReadWindow(window, out);
}

absl::StatusOr<int64_t> SampleReader::CountTargets(uint64_t first,
                                                   uint64_t samples) const {
  int64_t count = 0;
  for (uint64_t number = first; number < first + samples; ++number) {
    ASSIGN_OR_RETURN(const Window window, WindowOf(number));
    ASSIGN_OR_RETURN(const uint64_t of_window, CountWindow(window));
    count += static_cast<int64_t>(of_window);
  }
  return count;
}

bool SampleReader::counts_all_targets() const {
  return !isolates_documents_ &&
         std::none_of(sources_.begin(), sources_.end(), [](const auto& source) {
           return source->file.has_counted();
         });
}

absl::StatusOr<uint64_t> SampleReader::CountWindow(const Window& window) const {
  const TokenFile& file = window.source->file;
  const uint64_t length = window.source->order.sequence_length();
  uint64_t count = length;
  if (file.has_counted()) {
    ASSIGN_OR_RETURN(count, file.CountCounted(window.first_token + 1, length));
  }
  if (!isolates_documents_) return count;
  ASSIGN_OR_RETURN(const std::vector<uint64_t> ends,
                   file.DocumentEnds(window.first_token, length));
  for (const uint64_t end : ends) {
    // The first token of the next document, which is in the window's targets.
    ASSIGN_OR_RETURN(const uint64_t counted, file.CountCounted(end, 1));
    count -= counted;
  }
  return count;
}

absl::Status SampleReader::ReadValidation(uint64_t index,
                                          const SampleOut& out) const {
  if (index >= validation_windows_) {
    return absl::OutOfRangeError(
        absl::StrCat("validation window ", index, " of ", validation_windows_));
  }
  if (validation_ != nullptr) {
    return ReadWindow(
        {.source = validation_.get(),
         .first_token = index * validation_->order.sequence_length()},
        out);
  }
  const MixOrder::Place place = mix_->PlaceOf(index);
  const Source& source = *sources_[place.source];
  return ReadWindow({.source = &source,
                     .first_token = source.order.ValidationToken(place.index)},
                    out);
}

absl::Status SampleReader::ReadWindow(const Window& window,
                                      const SampleOut& out) const {
  const Source& source = *window.source;
  const uint64_t first_token = window.first_token;
  const uint64_t length = source.order.sequence_length();
  CHECK_EQ(out.tokens.size(), length);
  CHECK_EQ(out.targets.size(), length);
  RETURN_IF_ERROR(source.file.Read(first_token, length, out.tokens.data()));
  std::copy(out.tokens.begin() + 1, out.tokens.end(), out.targets.begin());
  RETURN_IF_ERROR(
      source.file.Read(first_token + length, 1, &out.targets.back()));
  RETURN_IF_ERROR(LeaveOut(source.file, first_token + 1, out.targets));
  if (!isolates_documents_) {
    CHECK(out.documents.empty()) << "documents that are not isolated";
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> ends,
                   source.file.DocumentEnds(first_token, length));
  for (const uint64_t end : ends) out.targets[end - first_token - 1] = -1;
  if (out.documents.empty()) return absl::OkStatus();
  CHECK_EQ(out.documents.size(), length);
  auto from = out.documents.begin();
  int32_t begin = 0;
  for (const uint64_t end : ends) {
    const auto to =
        out.documents.begin() + static_cast<int64_t>(end - first_token);
    std::fill(from, to, begin);
    from = to;
    begin = static_cast<int32_t>(end - first_token);
  }
  std::fill(from, out.documents.end(), begin);
  return absl::OkStatus();
}

}  // namespace troupe
