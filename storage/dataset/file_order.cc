#include "storage/dataset/file_order.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::StatusOr<DataOrder> OrderOf(const TokenFile& file,
                                  DataOrderOptions options) {
  const uint64_t packed = file.layout().packed_length;
  if (packed != 0 && packed != options.sequence_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its records were packed into sequences of ", packed,
        " tokens, but training.sequence_length is ", options.sequence_length,
        "; set training.sequence_length: ", packed,
        ", or prepare the file again with --sequence-length ",
        options.sequence_length));
  }
  options.token_count = file.size();
  options.packed = packed != 0;
  return DataOrder::Create(options);
}

}  // namespace troupe
