// Any text as a job file. What parses is printed and read back, then planned:
// no text may crash the client or the scheduler, however large its numbers.
// Comments
// "# --set PATH=VALUE" are overrides.
#include "clients/job_file/job_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "tests/fuzz/plan_job.h"

namespace troupe {
namespace {

std::vector<std::string> Overrides(absl::string_view text) {
  constexpr absl::string_view kMark = "# --set ";
  std::vector<std::string> overrides;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, kMark)) continue;
    overrides.emplace_back(line.substr(kMark.size()));
  }
  return overrides;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<troupe::JobFile> job =
      troupe::ParseJob({.name = "job.yaml",
                        .folder = "/",
                        .text = text,
                        .overrides = troupe::Overrides(text)});
  if (!job.ok()) {
    CHECK(!job.status().message().empty());
    return 0;
  }
  troupe::ReadBack(job->spec);
  troupe::PlanJob(job->spec);
  return 0;
}
