// Any text as a job file. What parses is printed and read back: no text may
// crash the client, and what it prints is what it read. (job_message.cc goes on
// to the scheduler.)
// Comments
// "# --set PATH=VALUE" are overrides.
#include "clients/job_file/job_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "clients/job_file/print_job.h"
#include "proto/base/check.h"

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

void ReadBack(const JobSpec& job) {
  const std::string text = JobYaml(job);
  if (text.empty()) return;
  const absl::StatusOr<JobFile> again =
      ParseJob({.name = "printed", .folder = "/", .text = text});
  CHECK_OK(again.status());
  CHECK_EQ(again->spec.SerializeAsString(), job.SerializeAsString()) << text;
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
  return 0;
}
