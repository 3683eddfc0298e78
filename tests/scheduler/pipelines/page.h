// The parts of docs/pipelines.md that are made from the schedules themselves:
// drawings, and what each schedule costs for some shapes. They stand in the
// page between "<!-- made by tests: NAME -->" and "<!-- end -->".
#ifndef TROUPE_TESTS_SCHEDULER_PIPELINES_PAGE_H_
#define TROUPE_TESTS_SCHEDULER_PIPELINES_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// `page` with those parts made anew.
std::string WithMadeParts(absl::string_view page);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PIPELINES_PAGE_H_
