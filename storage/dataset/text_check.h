// Whether a file is text: asked before tokens are made of it, since a tokenizer
// takes any bytes, and a model that learned a compressed file learned nothing.
#ifndef TROUPE_STORAGE_DATASET_TEXT_CHECK_H_
#define TROUPE_STORAGE_DATASET_TEXT_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Looks at the file's first bytes and at samples of it, 1 MiB at most, spread
// evenly. InvalidArgument, with what the file is and how to get its text, for
//
//  * compressed and packed files, and formats that are known by their first
//    bytes: safetensors, Parquet, PDF, token files, ...;
//  * zero bytes, which no text has, or another encoding than UTF-8: more than
//    1 % of the bytes are not valid UTF-8;
//  * JSON: by the file's name, where its first lines are JSON objects, or where
//    it begins as one document with an object in it.
//
// An empty file is not refused. Errors of the disk name the path.
absl::Status CheckText(const std::string& path);

// The same of a text of which only the beginning is at hand, as of a compressed
// file. `is_all`: nothing follows it.
absl::Status CheckTextBeginning(const std::string& path,
                                absl::string_view begin, bool is_all);

// Whether the beginning of a file of JSON lines is that of a binary format.
absl::Status CheckNotBinary(const std::string& path, absl::string_view begin);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_TEXT_CHECK_H_
