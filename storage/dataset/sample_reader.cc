#include "storage/dataset/sample_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<SampleReader> SampleReader::Create(
    const std::string& path, const SampleReaderOptions& options) {
  ASSIGN_OR_RETURN(TokenFile file,
                   TokenFile::Open(path, {.vocab_size = options.vocab_size}));
  absl::StatusOr<DataOrder> order =
      DataOrder::Create({.token_count = file.size(),
                         .sequence_length = options.sequence_length,
                         .validation_fraction = options.validation_fraction,
                         .seed = options.seed});
  if (!order.ok()) return Annotate(order.status(), path);
  return SampleReader(std::move(file), *order);
}

absl::Status SampleReader::Read(uint64_t number, const SampleOut& out) const {
  if (number / order_.training_windows() >= kEpochsMax) {
    return absl::OutOfRangeError(absl::StrCat(
        file_.path(), ": sample ", number, " is past 2^52 epochs of ",
        order_.training_windows(), " windows; is the checkpoint damaged?"));
  }
  return ReadWindow(order_.TrainingToken(number), out);
}

absl::Status SampleReader::ReadValidation(uint64_t index,
                                          const SampleOut& out) const {
  if (index >= order_.validation_windows()) {
    return absl::OutOfRangeError(
        absl::StrCat(file_.path(), ": validation window ", index, " of ",
                     order_.validation_windows()));
  }
  return ReadWindow(order_.ValidationToken(index), out);
}

absl::Status SampleReader::ReadWindow(uint64_t first_token,
                                      const SampleOut& out) const {
  const uint64_t length = order_.sequence_length();
  CHECK_EQ(out.tokens.size(), length);
  CHECK_EQ(out.targets.size(), length);
  RETURN_IF_ERROR(file_.Read(first_token, length, out.tokens.data()));
  std::copy(out.tokens.begin() + 1, out.tokens.end(), out.targets.begin());
  return file_.Read(first_token + length, 1, &out.targets.back());
}

}  // namespace troupe
