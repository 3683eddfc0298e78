// Reads samples of a token file by number, in the global order: inputs and
// targets of one window, ready for the embedding and the loss.
//
//   ASSIGN_OR_RETURN(auto reader, SampleReader::Create(path, options));
//   RETURN_IF_ERROR(reader.Read(step * global_batch + j, tokens, targets));
#ifndef TROUPE_STORAGE_DATASET_SAMPLE_READER_H_
#define TROUPE_STORAGE_DATASET_SAMPLE_READER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/dataset/data_order.h"
#include "storage/dataset/token_file.h"

namespace troupe {

struct SampleReaderOptions {
  uint64_t sequence_length = 0;
  double validation_fraction = 0;
  uint64_t seed = 0;
  uint64_t vocab_size = 0;  // of the model; 0: as in TokenFileOptions
};

// Where a sample goes; each span holds sequence_length ids.
struct SampleOut {
  absl::Span<int32_t> tokens;
  absl::Span<int32_t> targets;  // the tokens one place later
};

// Thread-safe.
class SampleReader {
 public:
  // Errors of TokenFile::Open and DataOrder::Create, with the path.
  static absl::StatusOr<SampleReader> Create(
      const std::string& path, const SampleReaderOptions& options);

  const TokenFile& file() const { return file_; }
  const DataOrder& order() const { return order_; }

  // The training sample of this number; epoch follows epoch. OutOfRange past
  // kEpochsMax of them: only a damaged position in the data is that far.
  absl::Status Read(uint64_t number, const SampleOut& out) const;
  // OutOfRange for index >= order().validation_windows().
  absl::Status ReadValidation(uint64_t index, const SampleOut& out) const;

 private:
  SampleReader(TokenFile file, const DataOrder& order)
      : file_(std::move(file)), order_(order) {}
  absl::Status ReadWindow(uint64_t first_token, const SampleOut& out) const;

  TokenFile file_;
  DataOrder order_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_SAMPLE_READER_H_
