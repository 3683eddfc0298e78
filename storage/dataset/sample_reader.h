// Reads samples by number, in the global order: inputs and targets of one
// window, ready for the embedding and the loss. The samples are those of a
// token file, or of several that are mixed (mix_order.h), each shuffled by
// itself epoch for epoch (data_order.h). What a sample is does not depend on
// its reader: any rank of any plan finds it by its number.
//
//   ASSIGN_OR_RETURN(auto reader, SampleReader::Create(
//       {.sources = {{"a.tokens", 0.7}, {"b.tokens", 0.3}}, ...}));
//   RETURN_IF_ERROR(reader.Read(step * global_batch + j, {tokens, targets}));
#ifndef TROUPE_STORAGE_DATASET_SAMPLE_READER_H_
#define TROUPE_STORAGE_DATASET_SAMPLE_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "storage/dataset/data_order.h"
#include "storage/dataset/mix_order.h"
#include "storage/dataset/token_file.h"

namespace troupe {

struct SampleSource {
  std::string tokens;  // the path of a token file
  double weight = 1;
};

struct SampleReaderOptions {
  std::vector<SampleSource> sources;  // none: nothing trains, REQUIRES the next
  // A token file to validate on; empty: what is held back of each source.
  std::string validation = "";
  uint64_t sequence_length = 0;
  double validation_fraction = 0;
  uint64_t validation_blocks = 1;
  uint64_t seed = 0;
  uint64_t vocab_size = 0;  // of the model; 0: as in TokenFileOptions
  // A document does not predict the first token of the next one: the target of
  // its last token is -1, which counts for nothing. What a window has of a
  // document that is longer, or begins before it, is a document of its own.
  bool isolate_documents = false;
};

// Where a sample goes; each span holds sequence_length ids. Where a file says
// which tokens count, a target that does not is -1.
struct SampleOut {
  absl::Span<int32_t> tokens;
  absl::Span<int32_t> targets;  // the tokens one place later; -1: none
  // Empty, or: where in the sample the document of each token begins. REQUIRES
  // isolate_documents.
  absl::Span<int32_t> documents = {};
};

// Move-only, thread-safe.
class SampleReader {
 public:
  // Errors of TokenFile::Open, DataOrder::Create and MixOrder::Create, with the
  // path; InvalidArgument where two files name different tokenizers, where a
  // file does not say where its documents end and these are to be isolated, and
  // where one was packed for another sequence length.
  static absl::StatusOr<SampleReader> Create(
      const SampleReaderOptions& options);

  // The token files, each once: the sources in their order, then the one that
  // validates, where there is one. They stay where they are.
  std::vector<const TokenFile*> files() const;

  // The tokenizer that made the tokens, by name, and the path of the token file
  // that says so; empty where none does.
  const std::string& tokenizer() const { return tokenizer_; }
  const std::string& tokenizer_path() const { return tokenizer_path_; }

  // What tells this data, and the order in which it is read, from others, as a
  // line for people. Of one file whose tail validates, or of one that nothing
  // trains on: TokenFile::identity().
  const std::string& identity() const { return identity_; }

  // Windows of one epoch: of all sources together. Zero where nothing trains.
  uint64_t training_windows() const;
  // Zero where nothing validates.
  uint64_t validation_windows() const { return validation_windows_; }

  // The training sample of this number; epoch follows epoch. OutOfRange past
  // kEpochsMax of them: only a damaged position in the data is that far.
  // REQUIRES sources.
  absl::Status Read(uint64_t number, const SampleOut& out) const;
  // Whether no target of a training sample is -1.
  bool counts_all_targets() const;
  // How many targets that count, none of them -1, the training samples [first,
  // first + samples) have. Reads no tokens.
  absl::StatusOr<int64_t> CountTargets(uint64_t first, uint64_t samples) const;
  // OutOfRange for index >= validation_windows().
  absl::Status ReadValidation(uint64_t index, const SampleOut& out) const;

 private:
  struct Source {
    TokenFile file;
    DataOrder order;
  };

  static absl::StatusOr<std::unique_ptr<const Source>> Open(
      const std::string& path, const DataOrderOptions& order,
      uint64_t vocab_size);
  // The source of a training sample, and the sample's first token there.
  struct Window {
    const Source* source = nullptr;
    uint64_t first_token = 0;
  };
  absl::StatusOr<Window> WindowOf(uint64_t number) const;
  absl::Status ReadWindow(const Window& window, const SampleOut& out) const;
  absl::StatusOr<uint64_t> CountWindow(const Window& window) const;
  absl::Status CheckDocuments() const;

  explicit SampleReader(bool isolates) : isolates_documents_(isolates) {}
  absl::Status OpenValidation(const SampleReaderOptions& options);
  absl::Status FindTokenizer();
  void Identify(const SampleReaderOptions& options);

  absl::optional<MixOrder> mix_;  // none where nothing trains
  bool isolates_documents_ = false;
  std::vector<std::unique_ptr<const Source>> sources_;
  std::unique_ptr<const Source> validation_;  // null: of the sources
  uint64_t validation_windows_ = 0;
  std::string tokenizer_;
  std::string tokenizer_path_;
  std::string identity_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SAMPLE_READER_H_
