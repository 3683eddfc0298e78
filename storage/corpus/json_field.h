// One text of a line of JSON.
#ifndef TROUPE_STORAGE_CORPUS_JSON_FIELD_H_
#define TROUPE_STORAGE_CORPUS_JSON_FIELD_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// The value of `field` of the object that `line` is. InvalidArgument, with what
// is wrong and the column, where the line is no JSON in UTF-8, is no object, or
// has no such field or another value than a text in it. Of a field that appears
// twice, the last one.
absl::StatusOr<std::string> JsonTextField(absl::string_view line,
                                          absl::string_view field);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_JSON_FIELD_H_
