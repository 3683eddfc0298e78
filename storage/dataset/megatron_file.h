// The token files of Megatron-LM (megatron/core/datasets/indexed_dataset.py): a
// .bin with ids and nothing else, and an .idx beside it that says where the
// sequences lie in it.
//
//   offset  bytes  field of the .idx (all little-endian)
//        0      9  magic "MMIDIDX", 0, 0
//        9      8  version, 1
//       17      1  type of an id: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64,
//                  6 float64, 7 float32, 8 uint16
//       18      8  number of sequences, S
//       26      8  length of the document index, D
//       34    4 S  tokens of each sequence, int32
//             8 S  where each begins in the .bin, bytes, int64
//             8 D  the document index: the sequence at which each document
//                  begins and, last, S
//             1 S  only where the data is multimodal: a mode for each sequence
//
// Sequences are read as one stream of tokens in the order of the .idx, wherever
// they lie in the .bin. Nothing is put between documents: those who want an
// end-of-document token made the files with --append-eod.
#ifndef TROUPE_STORAGE_DATASET_MEGATRON_FILE_H_
#define TROUPE_STORAGE_DATASET_MEGATRON_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "storage/dataset/token_layout.h"

namespace troupe {

// `path` is the .idx, the .bin, or what both have in common. True where the
// .idx is there and begins with the magic.
bool IsMegatronFile(const std::string& path);
// DataLoss, with the file and the offset, where the two files do not fit each
// other; NotFound without the .bin; Unimplemented for ids that are no integers,
// and for multimodal data.
absl::StatusOr<TokenLayout> ReadMegatronFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_MEGATRON_FILE_H_
