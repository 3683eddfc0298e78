// The order in which a job sees the samples of one token file.
#ifndef TROUPE_STORAGE_DATASET_FILE_ORDER_H_
#define TROUPE_STORAGE_DATASET_FILE_ORDER_H_

#include "absl/status/statusor.h"
#include "storage/dataset/data_order.h"
#include "storage/dataset/token_file.h"

namespace troupe {

// `options` without the fields that the file gives: token_count and packed.
// InvalidArgument where its records were packed for another sequence length;
// errors of DataOrder::Create. Neither names the file.
absl::StatusOr<DataOrder> OrderOf(const TokenFile& file,
                                  DataOrderOptions options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_FILE_ORDER_H_
