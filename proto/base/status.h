// Errors of the world travel as absl::Status. These macros hand one on;
// Annotate adds context, once, at the boundary that knows it:
//
//   ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(path));
//   RETURN_IF_ERROR(Annotate(file.Verify(), absl::StrCat("job ", job.name())));
//
// The world failed -> Status; we failed -> CHECK (check.h); the user asked the
// impossible -> InvalidArgument with the numbers and the way out.
#ifndef TROUPE_PROTO_BASE_STATUS_H_
#define TROUPE_PROTO_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace troupe {

// The same code and payloads with "<context>: " before the message; OK stays
// OK.
inline absl::Status Annotate(const absl::Status& status,
                             absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(),
                         absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) {
        annotated.SetPayload(type, payload);
      });
  return annotated;
}

}  // namespace troupe

#define TROUPE_CONCAT_INNER_(a, b) a##b
#define TROUPE_CONCAT_(a, b) TROUPE_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (absl::Status troupe_status_ = (expression); !troupe_status_.ok()) { \
      return troupe_status_;                                                \
    }                                                                       \
  } while (false)

// Evaluates an absl::StatusOr; declares (or assigns) the left side with its
// value, or returns its status from the enclosing function.
#define ASSIGN_OR_RETURN(left, expression)                            \
  ASSIGN_OR_RETURN_INNER_(TROUPE_CONCAT_(troupe_or_, __LINE__), left, \
                          expression)

#define ASSIGN_OR_RETURN_INNER_(result, left, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return result.status();               \
  left = std::move(result).value()

#endif  // TROUPE_PROTO_BASE_STATUS_H_
